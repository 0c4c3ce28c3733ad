import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, describe, it } from "node:test";
import { RunRefusedError } from "../src/index.js";
import { eventsOf, httpAgent, inputOf, textOf } from "./agents.js";
import { withRelay } from "./fixtures.js";
import { listen } from "./scripted.js";
import { type Server, startServer } from "./server.js";

/** The value of that header. */
function lastEventId(request: string): string | undefined {
  return /^last-event-id: (.+)$/im.exec(request)?.[1];
}

describe("requests of a ResumableHttpAgent", () => {
  let server: Server;

  before(async () => {
    server = await startServer();
  });
  after(() => server.stop());

  it("carry the token, the session id and the headers, also those that are changed later", () =>
    withRelay(server.port, async (relay) => {
      const sessionId = "session-1234567890-1234567890-1234567890";
      const agent = httpAgent(relay, { token: () => "secret", sessionId, headers: { "X-One": "1" } });
      agent.headers["X-Two"] = "2";
      await eventsOf(agent, inputOf("hello"));
      const request = (relay.requests[0] ?? "").toLowerCase();
      assert.match(request, /^post \/invocations /);
      assert.match(request, /authorization: bearer secret/);
      assert.ok(request.includes(`x-amzn-bedrock-agentcore-runtime-session-id: ${sessionId}`));
      assert.match(request, /x-one: 1/);
      assert.match(request, /x-two: 2/);
    }));

  it("name the last event in Last-Event-ID when they attach after a drop", () =>
    withRelay(server.port, async (relay) => {
      relay.cuts.push({ after: 4 });
      const events = await eventsOf(httpAgent(relay), inputOf("calculate 1+1"));
      assert.equal(textOf(events), "The result of calculate is 2.");
      assert.deepEqual(relay.requests.map(lastEventId), [undefined, "4"]);
    }));

  it("of a page do not name it to another origin, which may not allow the header", async (t) => {
    t.after(() => Reflect.deleteProperty(globalThis, "location"));
    for (const isForeign of [true, false]) {
      await withRelay(server.port, async (relay) => {
        const href = isForeign ? "https://example.com/chat" : relay.http;
        Object.defineProperty(globalThis, "location", { value: new URL(href), configurable: true });
        relay.cuts.push({ after: 4 });
        await eventsOf(httpAgent(relay), inputOf("calculate 1+1"));
        assert.deepEqual(relay.requests.map(lastEventId), [undefined, isForeign ? undefined : "4"]);
      });
    }
  });

  it("answer commands", () =>
    withRelay(server.port, async (relay) => {
      const agent = httpAgent(relay);
      assert.equal((await agent.getCapabilities()).transport?.streaming, true);
      await eventsOf(agent, inputOf("hello", { threadId: "listed" }));
      const { title } = await agent.command({ type: "threads.get", threadId: "listed", messages: false });
      assert.equal(title, "hello");
    }));

  for (const frozenAt of ["the beginning", "TEXT_MESSAGE_CONTENT"]) {
    it(`are sent again when the network is dead from ${frozenAt} on, because the server would send comments`, () =>
      withRelay(server.port, async (relay) => {
        const thaw = () => {
          relay.isFrozen = false;
        };
        const agent = httpAgent(relay, { silenceTimeoutMs: 300, onReconnect: thaw });
        relay.isFrozen = frozenAt === "the beginning";
        let isFirst = true;
        const events = await eventsOf(agent, inputOf("wait 0.2"), ({ type }) => {
          relay.isFrozen = isFirst && type === frozenAt;
          isFirst = type !== frozenAt;
        });
        assert.equal(textOf(events), "Waiting 0.2 s. Done.");
        assert.ok(relay.requests.length >= 2); // on a busy machine the second one may be silent as well
      }));
  }

  for (const last of [403, 200]) {
    it(`are sent again when a gateway has no server just now, and fail for its page with status ${last}`, async () => {
      const statuses = [502, 503, last];
      const page = { "Content-Type": "text/html" };
      const gateway = createServer((_, response) => response.writeHead(statuses.shift() ?? 500, page).end("<html>"));
      const port = await listen(gateway);
      const agent = httpAgent({ http: `http://127.0.0.1:${port}/invocations` });
      await assert.rejects(eventsOf(agent, inputOf("hello")), (error) => {
        assert.ok(error instanceof RunRefusedError);
        assert.equal(error.code, `HTTP_${last}`);
        return true;
      });
      assert.deepEqual(statuses, []);
      gateway.close();
    });
  }
});
