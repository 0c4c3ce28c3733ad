import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { firstValueFrom } from "rxjs";
import { ConnectionLostError, RunRefusedError, WebSocketAgent } from "../src/index.js";
import { eventsOf, inputOf, textOf, until, webSocketAgent } from "./agents.js";
import { withRelay } from "./fixtures.js";
import { type Server, startServer } from "./server.js";

const SESSION = "X-Amzn-Bedrock-AgentCore-Runtime-Session-Id";

describe("sockets of a WebSocketAgent", () => {
  let server: Server;

  before(async () => {
    server = await startServer();
  });
  after(() => server.stop());

  it("serve one run after the other, and commands", () =>
    withRelay(server.port, async (relay) => {
      const agent = webSocketAgent(relay);
      for (const number of [1, 2, 3]) {
        const events = await eventsOf(agent, inputOf(`calculate ${number}+0`));
        assert.equal(textOf(events), `The result of calculate is ${number}.`);
      }
      assert.equal((await agent.getCapabilities()).transport?.websocket, true);
      assert.equal(relay.connections, 1);
      agent.close();
    }));

  it("stay for the next run after a run that failed, was cancelled or was refused", () =>
    withRelay(server.port, async (relay) => {
      const agent = webSocketAgent(relay);
      assert.equal((await eventsOf(agent, inputOf("fail"))).at(-1)?.code, "MODEL_ERROR");
      agent.addMessage({ id: "m", role: "user", content: "wait 600" });
      await agent.runAgent(undefined, { onTextMessageContentEvent: () => agent.abortRun() });
      agent.abortController = new AbortController();
      await assert.rejects(eventsOf(agent, inputOf("hello", { runId: "" })), RunRefusedError);
      assert.equal(textOf(await eventsOf(agent, inputOf("stream 1"))), "hello world, ");
      assert.equal(relay.connections, 1);
      agent.close();
    }));

  it("are shared by clones", () =>
    withRelay(server.port, async (relay) => {
      const agent = webSocketAgent(relay);
      await eventsOf(agent, inputOf("hello"));
      await eventsOf(agent.clone(), inputOf("hello"));
      assert.equal(relay.connections, 1);
      agent.close();
    }));

  it("bring runs at the same time to the observer that asked for each", () =>
    withRelay(server.port, async (relay) => {
      const agent = webSocketAgent(relay);
      const numbers = [1, 2, 3, 4, 5];
      const runs = await Promise.all(numbers.map((number) => eventsOf(agent, inputOf(`wait 0.${number}`))));
      assert.deepEqual(
        runs.map(textOf),
        numbers.map((number) => `Waiting 0.${number} s. Done.`),
      );
      assert.equal(relay.connections, numbers.length);
      await eventsOf(agent, inputOf("hello"));
      assert.equal(relay.connections, numbers.length); // a socket of an earlier run serves it
      agent.close();
    }));

  it("close when they were idle for long enough, and open again for the next run", () =>
    withRelay(server.port, async (relay) => {
      const agent = webSocketAgent(relay, { idleTimeoutMs: 20 });
      await eventsOf(agent, inputOf("hello"));
      await until(() => relay.open === 0);
      await eventsOf(agent, inputOf("hello"));
      assert.equal(relay.connections, 2);
      agent.close();
    }));

  it("that dropped while they were idle are replaced", () =>
    withRelay(server.port, async (relay) => {
      const agent = webSocketAgent(relay);
      await eventsOf(agent, inputOf("hello"));
      relay.cutAll();
      await eventsOf(agent, inputOf("hello"));
      assert.equal(relay.connections, 2);
      agent.close();
    }));

  it("carry the token as a subprotocol and the session id in the query", () =>
    withRelay(server.port, async (relay) => {
      const sessionId = "session-1234567890-1234567890-1234567890";
      const agent = webSocketAgent(relay, { token: async () => "tökén", sessionId });
      await eventsOf(agent, inputOf("hello"));
      const request = relay.requests[0] ?? "";
      const encoded = Buffer.from("tökén").toString("base64url");
      assert.match(request, new RegExp(`^GET /ws\\?cursor=1&${SESSION}=${sessionId} `));
      const protocols = `base64UrlBearerAuthorization.${encoded},base64UrlBearerAuthorization`;
      assert.ok(request.includes(`Sec-WebSocket-Protocol: ${protocols}`), request);
      agent.close();
    }));

  it("carry headers where the factory sends them", () =>
    withRelay(server.port, async (relay) => {
      const agent = webSocketAgent(relay, { headers: { Authorization: "Bearer token" } });
      await eventsOf(agent, inputOf("hello"));
      assert.match(relay.requests[0] ?? "", /Authorization: Bearer token/);
      agent.close();
    }));

  it("get a URL of their own each from a function", () =>
    withRelay(server.port, async (relay) => {
      let made = 0;
      const url = async () => {
        made += 1;
        if (made === 2) throw new Error("the signing service does not answer");
        return `${relay.ws}?made=${made}`;
      };
      const agent = webSocketAgent(relay, { url });
      relay.cuts.push({ after: 2 });
      await eventsOf(agent, inputOf("calculate 1+1"));
      const lines = relay.requests.map((request) => request.split(" ")[1]);
      assert.deepEqual(lines, ["/ws?made=1&cursor=1", "/ws?made=3&cursor=1"]);
      agent.close();
    }));

  it("leave a presigned URL as it is; without cursor=1 in it a run cannot continue after a drop", () =>
    withRelay(server.port, async (relay) => {
      const agent = webSocketAgent(relay, { url: `${relay.ws}?X-Amz-Signature=abc` });
      await eventsOf(agent, inputOf("hello"));
      assert.match(relay.requests[0] ?? "", /^GET \/ws\?X-Amz-Signature=abc /);
      agent.close();
      await until(() => relay.open === 0);
      relay.cuts.push({ after: 2 });
      await assert.rejects(eventsOf(agent, inputOf("calculate 1+1")), ConnectionLostError);
    }));

  it("continue a run after a drop where cursor=1 was signed, each by a signature of its own", () =>
    withRelay(server.port, async (relay) => {
      const signatures = ["a", "b"];
      const url = () => `${relay.ws}?cursor=1&X-Amz-Signature=${signatures.shift()}`;
      const agent = webSocketAgent(relay, { url });
      relay.cuts.push({ after: 2 });
      const events = await eventsOf(agent, inputOf("calculate 1+1"));
      assert.equal(events.at(-1)?.type, "RUN_FINISHED");
      assert.equal(textOf(events), "The result of calculate is 2.");
      const lines = relay.requests.map((request) => request.split(" ")[1]);
      assert.deepEqual(lines, ["/ws?cursor=1&X-Amz-Signature=a", "/ws?cursor=1&X-Amz-Signature=b"]);
      agent.close();
    }));

  it("continue a run after a drop on one signature that has not expired", () =>
    withRelay(server.port, async (relay) => {
      const agent = webSocketAgent(relay, { url: `${relay.ws}?cursor=1&X-Amz-Signature=a` });
      relay.cuts.push({ after: 2 });
      const events = await eventsOf(agent, inputOf("calculate 1+1"));
      assert.equal(events.at(-1)?.type, "RUN_FINISHED");
      assert.equal(textOf(events), "The result of calculate is 2.");
      assert.equal(relay.connections, 2);
      agent.close();
    }));

  it("are replaced when the network is dead, because no ping is answered", () =>
    withRelay(server.port, async (relay) => {
      const thaw = () => {
        relay.isFrozen = false;
      };
      const agent = webSocketAgent(relay, { pingIntervalMs: 100, pongTimeoutMs: 1_000, onReconnect: thaw });
      const events = await eventsOf(agent, inputOf("wait 1"), ({ type }) => {
        relay.isFrozen ||= type === "TEXT_MESSAGE_START";
      });
      assert.equal(textOf(events), "Waiting 1 s. Done.");
      assert.ok(relay.connections >= 2); // on a busy machine the second one may be slow as well
      agent.close();
    }));

  it("that do not open in time are replaced", () =>
    withRelay(server.port, async (relay) => {
      const thaw = () => {
        relay.isFrozen = false;
      };
      relay.isFrozen = true;
      const agent = webSocketAgent(relay, { connectTimeoutMs: 1_000, onReconnect: thaw });
      await eventsOf(agent, inputOf("hello"));
      assert.ok(relay.connections >= 2);
      agent.close();
    }));

  it("stay while a run is silent, because pings are answered", () =>
    withRelay(server.port, async (relay) => {
      const agent = webSocketAgent(relay, { pingIntervalMs: 50, pongTimeoutMs: 5_000 });
      assert.equal(textOf(await eventsOf(agent, inputOf("wait 1"))), "Waiting 1 s. Done.");
      assert.equal(relay.connections, 1);
      agent.close();
    }));

  it("need a factory where there is no WebSocket, and where headers are to be sent", async () => {
    const before = Object.getOwnPropertyDescriptor(globalThis, "WebSocket");
    try {
      Object.defineProperty(globalThis, "WebSocket", { value: undefined, configurable: true });
      const agent = new WebSocketAgent({ url: "ws://127.0.0.1:1/ws" });
      await assert.rejects(firstValueFrom(agent.run(inputOf("hello"))), /give the agent a webSocketFactory/);
      Object.defineProperty(globalThis, "WebSocket", { value: class {}, configurable: true });
      const withHeaders = new WebSocketAgent({ url: "ws://127.0.0.1:1/ws", headers: { a: "b" } });
      await assert.rejects(firstValueFrom(withHeaders.run(inputOf("hello"))), /sends no headers/);
    } finally {
      if (before) Object.defineProperty(globalThis, "WebSocket", before);
      else Reflect.deleteProperty(globalThis, "WebSocket");
    }
  });
});
