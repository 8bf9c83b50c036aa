// The openai SDK against the fake of Chat Completions, strict and as a server at home.
import OpenAI from "openai";
import { assert, description, expected, fails, fakes, picture, question, record, schema, system } from "./case.mjs";

const client = (fake) => new OpenAI({ baseURL: fake.base_url, apiKey: fake.key ?? "none", maxRetries: 0 });
const tools = [{ type: "function", function: { name: "python", description, parameters: schema, strict: true } }];

function results(message) {
  const answers = message.tool_calls.map((call) => ({ role: "tool", tool_call_id: call.id, content: "42" }));
  const image_url = { url: `data:image/png;base64,${picture}` };
  return [...answers, { role: "user", content: [{ type: "text", text: "As drawn:" }, { type: "image_url", image_url }] }];
}

async function loop(fake, ask, what) {
  const seen = record();
  const messages = [{ role: "system", content: system }, { role: "user", content: question }];
  for (;;) {
    const reply = await ask(client(fake), { model: fake.model, max_completion_tokens: 1000, tools, messages });
    const { message, finish_reason } = reply.choices[0];
    if (reply.usage) assert.equal(reply.usage.prompt_tokens_details.cached_tokens, 4000);
    if (finish_reason !== "tool_calls") return seen.end(message.content, what);
    seen.add(message.tool_calls.map((call) => JSON.parse(call.function.arguments).code));
    const { role, content, tool_calls } = message;
    const sent = tool_calls.map(({ id, type, function: { name, arguments: text } }) =>
      ({ id, type, function: { name, arguments: text } }));
    messages.push({ role, content, tool_calls: sent }, ...results(message));
  }
}

const whole = (c, request) => c.chat.completions.create(request);
const streamed = (c, request) =>
  c.chat.completions.stream({ ...request, stream_options: { include_usage: true } }).finalChatCompletion();
for (const [what, fake] of [["strict", fakes.chat], ["at home", fakes.chat_home]]) {
  await loop(fake, whole, what);
  await loop(fake, streamed, `${what}, streamed`);
}
for (const name of ["split", "crlf", "noise", "no_done"]) await loop(fakes[`chat_${name}`], streamed, name);

const parse = JSON.parse;
const runner = client(fakes.chat).chat.completions.runTools({
  model: fakes.chat.model, messages: [{ role: "user", content: question }],
  tools: [{ type: "function", function: { name: "python", description, parameters: schema, parse,
                                          function: async () => "42" } }],
});
assert.equal(await runner.finalContent(), expected.text);

const first = { model: fakes.chat.model, messages: [{ role: "user", content: question }] };
const names = [];
for await (const model of client(fakes.chat).models.list()) names.push(model.id);
assert.ok(names.includes(first.model));
await fails(whole(client({ ...fakes.chat, key: "wrong" }), first), OpenAI.AuthenticationError, 401);
await fails(whole(client(fakes.chat), { ...first, model: "gone" }), OpenAI.NotFoundError, 404);
await fails(whole(client(fakes.chat), { ...first, max_tokens: 9 }), OpenAI.BadRequestError, 400);
await fails(whole(client(fakes.chat), { ...first, messages: [{ role: "tool", tool_call_id: "x", content: "" }] }),
            OpenAI.BadRequestError, 400);
await fails(whole(client(fakes.chat_rate), first), OpenAI.RateLimitError, 429);
const quota = await fails(whole(client(fakes.chat_quota), first), OpenAI.RateLimitError, 429);
assert.equal(quota.code, "credit_balance_exhausted");
await fails(whole(client(fakes.chat_overloaded), first), OpenAI.InternalServerError, 503);
await fails(streamed(client(fakes.chat_error_event), first), OpenAI.APIError);
await fails(streamed(client(fakes.chat_cut), first), Error);
