// cupel's HTTP API with fetch: node api.mjs URL TOKEN
const [url, token] = process.argv.slice(2);

async function ask(method, path, body, accept = "application/json") {
    const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json", Accept: accept };
    const answer = await fetch(url + path, { method, headers, body: body && JSON.stringify(body) });
    if (!answer.ok) throw new Error((await answer.json()).error.message);
    return answer;
}

const result = await (await ask("POST", "/v1/run", { code: "print('hello'); 6 * 7" })).json();
console.log(result.status, JSON.stringify(result.stdout), result.text);

// The same run as a stream: one JSON object a line, the last has the result.
const stream = await ask("POST", "/v1/run", { code: "for i in range(3): print(i, flush=True)" }, "application/x-ndjson");
let rest = "";
for await (const piece of stream.body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + piece).split("\n");
    rest = lines.pop();
    for (const event of lines.map((line) => JSON.parse(line))) console.log(event.event, ...(event.text ?? "").split(/\s/));
}
