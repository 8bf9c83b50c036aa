// @anthropic-ai/sdk against the fake of Anthropic Messages.
import Anthropic from "@anthropic-ai/sdk";
import { assert, description, expected, fails, fakes, picture, question, record, schema, system } from "./case.mjs";

const client = (fake, options = {}) =>
  new Anthropic({ baseURL: fake.url, apiKey: fake.key, maxRetries: 0, ...options });
const tools = [{ name: "python", description, input_schema: schema }];

function results(message) {
  return message.content.filter((block) => block.type === "tool_use").map((block) => ({
    type: "tool_result", tool_use_id: block.id, content: [
      { type: "text", text: "42" },
      { type: "image", source: { type: "base64", media_type: "image/png", data: picture } }],
  }));
}

async function loop(fake, ask, what) {
  const seen = record();
  const messages = [{ role: "user", content: question }];
  for (;;) {
    const reply = await ask(client(fake), { model: fake.model, max_tokens: 1000, system, tools, messages });
    assert.equal(reply.usage.cache_read_input_tokens, 4000);
    const texts = reply.content.filter((block) => block.type === "text").map((block) => block.text);
    if (reply.stop_reason !== "tool_use") return seen.end(texts.join(""), what);
    seen.add(reply.content.filter((block) => block.type === "tool_use").map((block) => block.input.code));
    assert.equal(reply.content[0].type, "thinking");
    messages.push({ role: "assistant", content: reply.content }, { role: "user", content: results(reply) });
  }
}

const whole = (c, request) => c.messages.create(request);
const streamed = (c, request) => c.messages.stream(request).finalMessage();
await loop(fakes.anthropic, whole, "whole");
await loop(fakes.anthropic, streamed, "streamed");
await loop(fakes.anthropic_split, streamed, "byte by byte");
await loop(fakes.anthropic_crlf, streamed, "CRLF");
await loop(fakes.anthropic_noise, streamed, "noise");

const first = { model: fakes.anthropic.model, max_tokens: 100, messages: [{ role: "user", content: question }] };
const counted = await client(fakes.anthropic).messages.countTokens({ model: first.model, messages: first.messages });
assert.ok(counted.input_tokens > 0);
const names = [];
for await (const model of client(fakes.anthropic).models.list()) names.push(model.id);
assert.ok(names.includes(first.model));

const wrongKey = { ...fakes.anthropic, key: "wrong" };
await fails(client(wrongKey).messages.create(first), Anthropic.AuthenticationError, 401);
await fails(client(fakes.anthropic).messages.create({ ...first, model: "gone" }), Anthropic.NotFoundError, 404);
await fails(client(fakes.anthropic).messages.create({ ...first, temperature: 1 }), Anthropic.BadRequestError, 400);
const limited = await fails(client(fakes.anthropic_rate).messages.create(first), Anthropic.RateLimitError, 429);
assert.equal(limited.headers.get("retry-after"), "0");
await fails(client(fakes.anthropic_overloaded).messages.create(first), Anthropic.InternalServerError, 529);
await fails(streamed(client(fakes.anthropic_error_event), first), Anthropic.APIError);
await fails(streamed(client(fakes.anthropic_cut), first), Error);
await fails(streamed(client(fakes.anthropic_no_end), first), Error);
const refused = await whole(client(fakes.anthropic_refusal), first);
assert.equal(refused.stop_reason, "refusal");
assert.ok(expected.text);
