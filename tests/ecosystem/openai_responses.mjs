// The openai SDK against the fake of Responses; nothing is stored there, so all is sent again.
import OpenAI from "openai";
import { assert, description, fails, fakes, picture, question, record, schema, system } from "./case.mjs";

const client = (fake) => new OpenAI({ baseURL: fake.base_url, apiKey: fake.key, maxRetries: 0 });
const tools = [{ type: "function", name: "python", description, parameters: schema, strict: true }];
const include = ["reasoning.encrypted_content"];

async function loop(fake, ask, what) {
  const seen = record();
  const input = [{ role: "user", content: [{ type: "input_text", text: question }] }];
  for (;;) {
    const reply = await ask(client(fake),
                            { model: fake.model, instructions: system, tools, input, include, store: false });
    assert.equal(reply.status, "completed");
    assert.equal(reply.usage.input_tokens_details.cached_tokens, 4000);
    const calls = reply.output.filter((item) => item.type === "function_call");
    if (!calls.length) return seen.end(reply.output_text, what);
    seen.add(calls.map((call) => JSON.parse(call.arguments).code));
    assert.equal(reply.output[0].type, "reasoning");
    const output = [{ type: "input_text", text: "42" },
                    { type: "input_image", image_url: `data:image/png;base64,${picture}`, detail: "auto" }];
    const items = reply.output.map(({ parsed_arguments, parsed, ...item }) =>
      item.type === "message" ? { ...item, content: item.content.map(({ parsed: _, ...part }) => part) } : item);
    input.push(...items, ...calls.map((call) => ({ type: "function_call_output", call_id: call.call_id, output })));
  }
}

const whole = (c, request) => c.responses.create(request);
const streamed = (c, request) => c.responses.stream(request).finalResponse();
await loop(fakes.responses, whole, "whole");
await loop(fakes.responses, streamed, "streamed");
// No "noise": this SDK's helper refuses events that it does not know, which a client should not.
for (const name of ["split", "crlf"]) await loop(fakes[`responses_${name}`], streamed, name);

const first = { model: fakes.responses.model, input: question };
await fails(whole(client({ ...fakes.responses, key: "wrong" }), first), OpenAI.AuthenticationError, 401);
await fails(whole(client(fakes.responses), { ...first, model: "gone" }), OpenAI.NotFoundError, 404);
await fails(whole(client(fakes.responses), { ...first, max_output_tokens: 1 }), OpenAI.BadRequestError, 400);
await fails(whole(client(fakes.responses_rate), first), OpenAI.RateLimitError, 429);
await fails(whole(client(fakes.responses_overloaded), first), OpenAI.InternalServerError, 503);
await fails(streamed(client(fakes.responses_error_event), first), OpenAI.APIError);
await fails(streamed(client(fakes.responses_cut), first), Error);
