// Answers questions as the search of the built site does: with its own worker and its own index.
// usage: node search.mjs SITE QUESTION...; prints a line of JSON for each question: the places that are found, in order.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { runInThisContext } from "node:vm";

const [START, READY, QUERY, RESULT] = [0, 1, 2, 3];
const NO_FILTER = {
  input: { type: "operator", data: { operator: "and", operands: [] } },
  aggregation: { input: [{ type: "term", data: { field: "tags" } }] },
};

const [site, ...questions] = process.argv.slice(2);
const index = JSON.parse(readFileSync(join(site, "search.json"), "utf8"));
const workers = join(site, "assets", "javascripts", "workers");
const [program] = readdirSync(workers).filter((name) => name.startsWith("search."));

let receive;
globalThis.self = { postMessage: (message) => receive(message) };
runInThisContext(readFileSync(join(workers, program), "utf8"));

async function ask(type, data, expected) {
  const answer = await new Promise((resolve) => {
    receive = resolve;
    self.onmessage({ data: structuredClone({ type, data }) }); // as postMessage does
  });
  if (answer.type !== expected) throw new Error(`the worker answered ${JSON.stringify(answer)}`);
  return answer.data;
}

await ask(START, index, READY);
for (const question of questions) {
  const { items } = await ask(QUERY, { input: question, filter: NO_FILTER }, RESULT);
  console.log(JSON.stringify(items.map(({ id }) => index.items[id].location)));
}
