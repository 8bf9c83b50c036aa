// The loop that every client goes through: two steps with tool calls, then an answer.
// What the fakes are to say is in drive.py; it comes here as FAKES, a JSON object by name:
// {"url", "base_url", "key", "model"}.
import assert from "node:assert/strict";

export { assert };
export const fakes = JSON.parse(process.env.FAKES);
export const question = "What is six times seven? Show me.";
export const system = "You write Python.";
export const schema = {
  type: "object", properties: { code: { type: "string" } }, required: ["code"], additionalProperties: false,
};
export const description = "Run Python";
export const picture = fakes.picture;
export const expected = fakes.expected; // {calls: [[code, ...], ...], text}

/** A loop's record: what each turn asked to run, and the last words. */
export function record() {
  const calls = [];
  return {
    add: (codes) => calls.push(codes),
    end: (text, what) => assert.deepEqual({ calls, text }, expected, what),
  };
}

/** The call must fail as the SDK's own class of error. */
export async function fails(promise, kind, status) {
  const error = await promise.then(() => assert.fail("it did not fail"), (e) => e);
  assert.ok(error instanceof kind, `${error.constructor.name}, not ${kind.name}: ${error.message}`);
  if (status) assert.equal(error.status, status);
  return error;
}
