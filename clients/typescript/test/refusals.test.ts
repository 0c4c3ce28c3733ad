import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, before, describe, it } from "node:test";
import { firstValueFrom } from "rxjs";
import { WebSocketServer } from "ws";
import { RunRefusedError } from "../src/index.js";
import { AGENTS, close, eventsOf, inputOf, webSocketAgent } from "./agents.js";
import { typesOf, withRelay } from "./fixtures.js";
import { listen } from "./scripted.js";
import { type Server, startServer } from "./server.js";

const SESSION = "X-Amzn-Bedrock-AgentCore-Runtime-Session-Id";

async function refused(promise: Promise<unknown>): Promise<RunRefusedError> {
  const error = await promise.then(
    () => assert.fail("it was not refused"),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof RunRefusedError, String(error));
  return error;
}

for (const errorStatus of ["http", "stream"]) {
  describe(`a refusal with AGUI_ERROR_STATUS=${errorStatus}`, () => {
    let server: Server;

    before(async () => {
      server = await startServer({ AGUI_ERROR_STATUS: errorStatus, AGUI_MAX_BODY_BYTES: "10000" });
    });
    after(() => server.stop());

    for (const [transport, makeAgent] of Object.entries(AGENTS)) {
      describe(`over ${transport}`, () => {
        it("has the server's code, its sentence and the id of the request", () =>
          withRelay(server.port, async (relay) => {
            const agent = makeAgent(relay);
            const error = await refused(eventsOf(agent, inputOf("hello", { runId: "" })));
            assert.equal(error.code, "VALIDATION_ERROR");
            assert.match(error.message, /^runId: /);
            assert.equal(error.retryable, false);
            assert.ok(error.requestId);
            close(agent);
          }));

        it("of a caller has the server's code and is final, also where a socket hides it", () =>
          withRelay(server.port, async (relay) => {
            const onReconnect = () => assert.fail("the agent tried again");
            const agent = makeAgent(relay, { headers: { [SESSION]: "s".repeat(257) }, onReconnect });
            const error = await refused(eventsOf(agent, inputOf("hello")));
            assert.equal(error.code, "VALIDATION_ERROR");
            assert.match(error.message, /session id has more than 256 characters/);
            assert.ok(error.requestId);
          }));

        it("of a busy thread can be tried again later, and does not change the open run", () =>
          withRelay(server.port, async (relay) => {
            const agent = makeAgent(relay);
            const input = inputOf("wait 600");
            const first = eventsOf(agent, input);
            await firstValueFrom(agent.run(input)); // it has started
            const error = await refused(eventsOf(agent, inputOf("hello", { threadId: input.threadId })));
            assert.equal(error.code, "THREAD_BUSY");
            assert.equal(error.retryable, true);
            await agent.command({ type: "cancel", threadId: input.threadId, runId: input.runId });
            assert.deepEqual((await first).at(-1)?.outcome, { type: "cancelled" });
            close(agent);
          }));

        it("of an input that is too large is final, also where the socket is closed for it", () =>
          withRelay(server.port, async (relay) => {
            for (const size of [11_000, 100_000]) {
              const agent = makeAgent(relay);
              const error = await refused(eventsOf(agent, inputOf("x".repeat(size))));
              assert.equal(error.code, "PAYLOAD_TOO_LARGE");
              close(agent);
            }
          }));

        it("of a command has the server's code", () =>
          withRelay(server.port, async (relay) => {
            const agent = makeAgent(relay);
            const error = await refused(agent.command({ type: "threads.get", threadId: "nowhere" }));
            assert.equal(error.code, "THREAD_NOT_FOUND");
            close(agent);
          }));

        it("is what runAgent() rejects with", (t) =>
          withRelay(server.port, async (relay) => {
            t.mock.method(console, "error", () => {}); // where the official client writes it, too
            const agent = makeAgent(relay);
            agent.addMessage({ id: "m", role: "user", content: "x".repeat(11_000) });
            assert.equal((await refused(agent.runAgent())).code, "PAYLOAD_TOO_LARGE");
            close(agent);
          }));
      });
    }
  });
}

for (const [transport, makeAgent] of Object.entries(AGENTS)) {
  for (const status of [401, 403]) {
    it(`status ${status} of a gateway is a final refusal over ${transport}`, async () => {
      const gateway = createServer((_, response) => response.writeHead(status).end("<html>"));
      gateway.on("upgrade", (_, socket) => socket.end(`HTTP/1.1 ${status} No\r\nContent-Length: 0\r\n\r\n`));
      const port = await listen(gateway);
      const onReconnect = () => assert.fail("the agent tried again");
      const urls = { http: `http://127.0.0.1:${port}/invocations`, ws: `ws://127.0.0.1:${port}/ws` };
      const error = await refused(eventsOf(makeAgent(urls, { token: "bad", onReconnect }), inputOf("hello")));
      assert.deepEqual([error.code, error.retryable], [`HTTP_${status}`, false]);
      gateway.close();
    });
  }
}

describe("a session id that AgentCore refuses", () => {
  const urls = { http: "http://127.0.0.1:1/invocations", ws: "ws://127.0.0.1:1/ws" };
  for (const [transport, makeAgent] of Object.entries(AGENTS)) {
    it(`is refused when an agent over ${transport} is made`, () => {
      for (const length of [0, 1, 32, 257]) {
        assert.throws(() => makeAgent(urls, { sessionId: "s".repeat(length) }), {
          name: "TypeError",
          message: new RegExp(`^sessionId has ${length} characters\\. AgentCore takes 33 to 256`),
        });
      }
      for (const length of [33, 256]) makeAgent(urls, { sessionId: "s".repeat(length) });
    });
  }
});

describe("a handshake that fails", () => {
  it("is explained by a GET with the token, the session id and the headers", async () => {
    const gateway = createServer((_, response) => response.writeHead(401).end());
    gateway.on("upgrade", (_, socket) => socket.destroy());
    const port = await listen(gateway);
    const sessionId = "session-1234567890-1234567890-1234567890";
    const config = { token: "secret", sessionId, headers: { "X-One": "1" } };
    const agent = webSocketAgent({ ws: `ws://127.0.0.1:${port}/ws?a=b` }, config);
    const asked = once(gateway, "request");
    await refused(eventsOf(agent, inputOf("hello")));
    const [{ method, url, headers }] = await asked;
    assert.equal(method, "GET");
    assert.match(url, /^\/ws\?a=b&cursor=1&/);
    assert.equal(headers.authorization, "Bearer secret");
    assert.equal(headers["x-amzn-bedrock-agentcore-runtime-session-id"], sessionId);
    assert.equal(headers["x-one"], "1");
    gateway.close();
  });

  it("after a drop does not end the run for the status that a gateway gives to the GET", async () => {
    const statuses: number[] = [];
    const gateway = createServer((_, response) => {
      statuses.push(403);
      response.writeHead(403).end();
    });
    const sockets = new WebSocketServer({ noServer: true });
    const input = inputOf("hello");
    const { threadId, runId } = input;
    let handshakes = 0;
    gateway.on("upgrade", (request, socket, head) => {
      handshakes += 1;
      if (handshakes === 2) {
        socket.end("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n");
        return;
      }
      const [type, seq] = handshakes === 1 ? ["RUN_STARTED", 1] : ["RUN_FINISHED", 2];
      sockets.handleUpgrade(request, socket, head, (webSocket) => {
        const event = JSON.stringify({ type, threadId, runId, metadata: { seq } });
        webSocket.on("message", () => webSocket.send(event, () => webSocket.close()));
      });
    });
    const agent = webSocketAgent({ ws: `ws://127.0.0.1:${await listen(gateway)}/ws` });
    assert.deepEqual(typesOf(await eventsOf(agent, input)), ["RUN_STARTED", "RUN_FINISHED"]);
    assert.deepEqual([handshakes, statuses], [3, [403]]);
    close(agent);
    gateway.close();
  });
});
