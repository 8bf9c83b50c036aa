// One call of each kind by the types that openapi-typescript makes of api/openapi.json: node call.js URL TOKEN
import type { components, paths } from "./openapi.js";

declare const process: { argv: string[] };
const [url, token] = process.argv.slice(2);
type RunRequest = paths["/v1/run"]["post"]["requestBody"]["content"]["application/json"];
type Result = paths["/v1/run"]["post"]["responses"]["200"]["content"]["application/json"];
type Refusal = components["schemas"]["Error"];

async function ask<T>(method: string, path: keyof paths, body?: unknown): Promise<T> {
    const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
    const answer = await fetch(url + path, { method, headers, body: body ? JSON.stringify(body) : undefined });
    if (!answer.ok) throw new Error(((await answer.json()) as Refusal).error.message);
    return (await answer.json()) as T;
}

const request: RunRequest = { code: "print('typed'); 6 * 7", language: "python", limits: { timeout_s: 5 } };
const result = await ask<Result>("POST", "/v1/run", request);
const status: "ok" | "error" | string = result.status;
const languages = await ask<components["schemas"]["Languages"]>("GET", "/v1/languages");
const session = await ask<components["schemas"]["Session"]>("POST", "/v1/sessions", { language: "python" });
console.log(status, result.stdout.trim(), result.text, languages.languages[0].name, session.session.slice(0, 2));
