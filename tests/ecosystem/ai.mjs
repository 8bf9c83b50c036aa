// Vercel's ai SDK, which validates what it reads, against all three fakes.
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";
import { description, fakes, question, record, schema, system } from "./case.mjs";

const provider = (create, fake, rest = {}) => create({ baseURL: fake.base_url, apiKey: fake.key, ...rest });
const models = {
  anthropic: provider(createAnthropic, fakes.anthropic)(fakes.anthropic.model),
  responses: provider(createOpenAI, fakes.responses).responses(fakes.responses.model),
  chat: provider(createOpenAI, fakes.chat).chat(fakes.chat.model),
  home: provider(createOpenAICompatible, fakes.chat_home, { name: "home" })(fakes.chat_home.model),
};
const stateless = { store: false, include: ["reasoning.encrypted_content"] };
const python = tool({ description, inputSchema: jsonSchema(schema), execute: async () => "42" });

for (const [name, model] of Object.entries(models)) {
  const request = { model, system, prompt: question, tools: { python }, stopWhen: stepCountIs(5), maxRetries: 0,
                    providerOptions: name === "responses" ? { openai: stateless } : {},
                    onError: ({ error }) => { throw error; } };
  const streamed = streamText(request);
  await streamed.consumeStream({ onError: (error) => { throw error; } });
  for (const [how, result] of [["whole", await generateText(request)], ["streamed", streamed]]) {
    const seen = record();
    for (const step of await result.steps)
      if (step.toolCalls.length) seen.add(step.toolCalls.map((call) => call.input.code));
    seen.end(await result.text, `${name}, ${how}`);
  }
}
