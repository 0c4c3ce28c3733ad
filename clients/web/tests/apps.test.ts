import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { server } from "./page";

const { AppSession } = await import("../src/apps/session");
const { forward, readPage } = await import("../src/apps/resource");

type Sent = { id?: number; method?: string; params?: object; result?: unknown; error?: { code: number } };

const CALL = { toolInput: { city: "Berlin" }, result: { content: [{ type: "text", text: "21" }] } };
const SOURCE = { serverId: "weather", serverHash: "weather", resourceUri: "ui://weather/page" };
const sent: Sent[] = [];
const asked: string[] = [];
const forwarded: [string, object][] = [];
const heights: number[] = [];
let isAllowed = true;
let answers: Promise<unknown>[] = [];

const consent = async (text: string) => {
  asked.push(text);
  return isAllowed;
};
const session = () =>
  new AppSession(
    {
      send: (message) => sent.push(message),
      forward: async (method, params) => {
        forwarded.push([method, params]);
        return answers.shift() ?? { from: method };
      },
      say: consent,
      openLink: consent,
      resize: (height) => heights.push(height),
    },
    CALL,
    { theme: "dark" },
  );
const request = (id: number, method: string, params: object = {}) => ({ jsonrpc: "2.0", id, method, params });
const notice = (method: string, params: object = {}) => ({ jsonrpc: "2.0", method, params });

beforeEach(() => {
  server.reset();
  for (const list of [sent, asked, forwarded, heights]) list.length = 0;
  answers = [];
  isAllowed = true;
});

test("an app gets its call once it is ready, and what changes after that", async () => {
  const app = session();
  await app.receive(request(1, "ui/initialize"));
  assert.deepEqual((sent[0]!.result as { hostContext: object }).hostContext, { theme: "dark" });
  app.change({ theme: "light" });
  assert.equal(sent.length, 1);
  await app.receive(notice("ui/notifications/initialized"));
  app.change({ theme: "dark" });
  app.show({ ...CALL, toolInput: { city: "Lisbon" } });
  const told = sent.slice(1).map(({ method, params }) => [method?.split("/").at(-1), params]);
  assert.deepEqual(told, [
    ["tool-input", { arguments: CALL.toolInput }],
    ["tool-result", CALL.result],
    ["host-context-changed", { theme: "dark" }],
    ["tool-input", { arguments: { city: "Lisbon" } }],
    ["tool-result", CALL.result],
  ]);
});

test("an app is answered what it asks, and nothing that the page does not know", async () => {
  const app = session();
  await app.receive(notice("ui/notifications/size-changed", { height: 300 }));
  await app.receive(notice("ui/notifications/size-changed", { height: "300" }));
  await app.receive(request(1, "tools/call", { name: "refresh", arguments: { n: 1 }, _meta: { token: "x" } }));
  await app.receive(request(2, "resources/read", { uri: "ui://other" }));
  await app.receive(request(3, "ui/request-display-mode", { mode: "fullscreen" }));
  await app.receive(request(4, "tools/list"));
  for (const nonsense of [null, "text", 7, [], {}, { method: "ping" }, { jsonrpc: "2.0", id: 1 }])
    await app.receive(nonsense);
  assert.deepEqual(heights, [300]);
  assert.deepEqual(forwarded, [
    ["tools/call", { name: "refresh", arguments: { n: 1 } }],
    ["resources/read", { uri: "ui://other" }],
  ]);
  assert.deepEqual(
    sent.map(({ id, result, error }) => [id, result ?? error?.code]),
    [
      [1, { from: "tools/call" }],
      [2, { from: "resources/read" }],
      [3, { mode: "inline" }],
      [4, -32601],
    ],
  );
});

test("requests of an app go to its server one by one, and not without end", async () => {
  const app = session();
  let release = (_: unknown) => {};
  answers = [new Promise((resolve) => (release = resolve))];
  const all = Array.from({ length: 40 }, (_, id) => app.receive(request(id, "tools/call", { name: String(id) })));
  await Promise.resolve();
  assert.equal(forwarded.length, 1);
  release({});
  await Promise.all(all);
  assert.equal(forwarded.length, 32);
  assert.equal(sent.filter(({ error }) => error !== undefined).length, 8);
});

test("a message or a link needs consent, and is not asked for again once it was refused", async () => {
  const app = session();
  const say = (id: number, text: string) =>
    app.receive(request(id, "ui/message", { content: [{ type: "text", text }] }));
  await say(1, "buy");
  await app.receive(request(2, "ui/open-link", { url: "https://shop.example/" }));
  for (const url of ["javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "shop", 7])
    await app.receive(request(3, "ui/open-link", { url }));
  isAllowed = false;
  await Promise.all([say(4, "again"), say(5, "and again")]);
  isAllowed = true;
  await say(6, "please");
  assert.deepEqual(asked, ["buy", "https://shop.example/", "again"]);
  const refusals = sent.map(({ id, result }) => [id, (result as { isError: boolean }).isError]);
  assert.deepEqual(
    refusals.filter(([, isError]) => !isError).map(([id]) => id),
    [1, 2],
  );
});

test("a request for the server of an app is a run with nothing of the thread", async () => {
  server.ending = () => ({ type: "RUN_FINISHED", result: { ok: true } });
  assert.deepEqual(await forward(SOURCE, "ping", {}, async () => []), { ok: true });
  const [{ messages, tools, forwardedProps }] = server.inputs as [(typeof server.inputs)[0]];
  assert.deepEqual([messages, tools], [[], []]);
  const { resourceUri: _, ...source } = SOURCE;
  assert.deepEqual(forwardedProps, { __proxiedMCPRequest: { ...source, method: "ping", params: {} } });
});

test("what the server has against a request is an error", async () => {
  server.ending = () => ({ type: "RUN_FINISHED", result: { error: "Unknown server: weather" } });
  await assert.rejects(
    forward(SOURCE, "ping", {}, async () => []),
    { message: "Unknown server: weather" },
  );
  server.refusal = { code: "VALIDATION_ERROR", message: "No." };
  await assert.rejects(
    forward(SOURCE, "ping", {}, async () => []),
    { message: "No." },
  );
});

test("the page of an app is HTML as text or bytes, with the domains that it names", async () => {
  const mimeType = "text/html;profile=mcp-app";
  const csp = { connectDomains: ["https://api.example"], resourceDomains: ["https://cdn.example"] };
  const read = async (resource: object) => {
    server.ending = () => ({ type: "RUN_FINISHED", result: { contents: [resource] } });
    return readPage(SOURCE, async () => []);
  };
  const page = await read({ mimeType, text: "<p>é", _meta: { ui: { csp, prefersBorder: false } } });
  assert.deepEqual(page, {
    html: "<p>é",
    frame: `http://server.example/console/app-frame.html?connect=https%3A%2F%2Fapi.example&resource=https%3A%2F%2Fcdn.example`,
    hasBorder: false,
  });
  assert.equal((await read({ mimeType, blob: Buffer.from("<p>é").toString("base64") })).html, "<p>é");
  await assert.rejects(read({ mimeType: "text/html", text: "<p>" }), /not of the type/);
});
