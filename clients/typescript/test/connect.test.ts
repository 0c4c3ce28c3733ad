import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { BaseEvent } from "@ag-ui/client";
import { isObject } from "../src/transport.js";
import { AGENTS, type Agent, close, until } from "./agents.js";
import { typesOf, withRelay } from "./fixtures.js";
import type { Relay } from "./relay.js";
import { type Answer, type Script, withScript } from "./scripted.js";
import { runsOf, type Server, startServer } from "./server.js";

let server: Server;

before(async () => {
  server = await startServer();
});
after(() => server.stop());

for (const [transport, makeAgent] of Object.entries(AGENTS)) {
  describe(`connectAgent() over ${transport}`, () => {
    let threads = 0;

    /** A thread whose first run has ended. */
    async function talked(relay: Relay): Promise<Agent> {
      threads += 1;
      const agent = makeAgent(relay, { threadId: `${transport} ${threads}` });
      agent.addMessage({ id: "m1", role: "user", content: "calculate 1+1" });
      await agent.runAgent();
      return agent;
    }

    async function connected(agent: Agent, onEvent: (event: BaseEvent) => void = () => {}): Promise<BaseEvent[]> {
      const events: BaseEvent[] = [];
      await agent.connectAgent(undefined, {
        onEvent: ({ event }) => {
          events.push(event);
          onEvent(event);
        },
      });
      return events;
    }

    it("shows the messages and the state of a thread, and runs nothing", () =>
      withRelay(server.port, async (relay) => {
        const agent = await talked(relay);
        const reloaded = makeAgent(relay, { threadId: agent.threadId });
        const events = await connected(reloaded);
        assert.deepEqual(typesOf(events), ["RUN_STARTED", "MESSAGES_SNAPSHOT", "STATE_SNAPSHOT", "RUN_FINISHED"]);
        assert.deepEqual(reloaded.messages, agent.messages);
        assert.equal((await runsOf(server.port, agent.threadId)).length, 1);
        close(agent);
        close(reloaded);
      }));

    it("brings the name of a large file, which attachment() has uploaded where files are kept", () =>
      withRelay(server.port, async (relay) => {
        const agent = makeAgent(relay);
        const small = await agent.attachment(new File(["hello"], "a.txt", { type: "text/plain" }));
        assert.deepEqual(small.source, { type: "data", value: btoa("hello"), mimeType: "text/plain" });
        const bytes = new Uint8Array(70_000).fill(200);
        const large = await agent.attachment(new File([bytes], "a.png", { type: "image/png" }));
        agent.addMessage({ id: "m1", role: "user", content: [small, large, { type: "text", text: "hello" }] });
        await agent.runAgent();
        const reloaded = makeAgent(relay, { threadId: agent.threadId });
        await reloaded.connectAgent();
        assert.deepEqual(reloaded.messages[0], agent.messages[0]);
        const { data, name } = await reloaded.command({ type: "files.get", fileId: large.source.value });
        assert.deepEqual([data, name], [Buffer.from(bytes).toString("base64"), "a.png"]);
        close(agent);
        close(reloaded);
        await withScript(
          () => ({ result: { capabilities: {} } }),
          async (other) => {
            const without = makeAgent(other);
            assert.equal((await without.attachment(new File([bytes], "b"))).source.type, "data");
            close(without);
          },
        );
      }));

    it("gives no event of a thread that has not begun", () =>
      withRelay(server.port, async (relay) => {
        const agent = makeAgent(relay);
        assert.deepEqual(await connected(agent), []);
        assert.deepEqual(await runsOf(server.port, agent.threadId), []);
        close(agent);
      }));

    it("shows the messages and follows the open run, each text once", () =>
      withRelay(server.port, async (relay) => {
        const agent = await talked(relay);
        agent.addMessage({ id: "m2", role: "user", content: "wait 0.5" });
        const running = agent.runAgent();
        await until(async () => (await runsOf(server.port, agent.threadId)).length === 2);
        const reloaded = makeAgent(relay, { threadId: agent.threadId });
        const events = await connected(reloaded);
        await running;
        assert.deepEqual(typesOf(events).slice(0, 3), ["RUN_STARTED", "MESSAGES_SNAPSHOT", "STATE_SNAPSHOT"]);
        assert.equal(reloaded.messages.at(-1)?.content, "Waiting 0.5 s. Done.");
        assert.deepEqual(reloaded.messages, agent.messages);
        close(agent);
        close(reloaded);
      }));

    it("follows the open run through drops", () =>
      withRelay(server.port, async (relay) => {
        const agent = await talked(relay);
        agent.addMessage({ id: "m2", role: "user", content: "wait 0.5" });
        const running = agent.runAgent();
        await until(async () => (await runsOf(server.port, agent.threadId)).length === 2);
        const reloaded = makeAgent(relay, { threadId: agent.threadId });
        await connected(reloaded, ({ type }) => {
          if (type === "TEXT_MESSAGE_START") relay.cutAll();
        });
        await running;
        assert.deepEqual(reloaded.messages, agent.messages);
        close(agent);
        close(reloaded);
      }));

    it("follows a run that abortRun() then cancels, as the Stop button of a page that was loaded again", () =>
      withRelay(server.port, async (relay) => {
        const agent = makeAgent(relay);
        agent.addMessage({ id: "m1", role: "user", content: "wait 600" });
        const running = agent.runAgent();
        await until(async () => (await runsOf(server.port, agent.threadId)).length === 1);
        const reloaded = makeAgent(relay, { threadId: agent.threadId });
        await connected(reloaded, ({ type }) => {
          if (type === "TEXT_MESSAGE_CONTENT") reloaded.abortRun();
        });
        await running;
        assert.equal((await runsOf(server.port, agent.threadId))[0]?.status, "cancelled");
        close(agent);
        close(reloaded);
      }));
  });
}

/** Numbered events of a run that only begins and ends. */
function emptyRun(threadId: string, runId: unknown): Answer {
  const events = [{ type: "RUN_STARTED" }, { type: "RUN_FINISHED", outcome: { type: "success" } }];
  return { events: events.map((event, index) => [index + 1, { ...event, threadId, runId } as BaseEvent]) };
}

describe("connectAgent() that is refused for now", () => {
  const idle: Answer = { result: { threadId: "t" } };
  const busy: Answer = { result: { threadId: "t", activeRunId: "open", messages: [], state: {} } };
  const refusal = (code: string): Answer => ({ refusal: { code, message: "Later.", retryable: true } });

  for (const [transport, makeAgent] of Object.entries(AGENTS)) {
    /** Connect, and return the types of the events and of the requests. Without an answer left, a run is empty. */
    async function connected(answers: Answer[]): Promise<{ events: string[]; requests: unknown[] }> {
      const requests: unknown[] = [];
      const events: string[] = [];
      const script: Script = ({ command, runId }) => {
        requests.push(isObject(command) ? command.type : "run");
        return answers.shift() ?? emptyRun("t", isObject(command) ? command.runId : runId);
      };
      await withScript(script, async (server) => {
        const agent = makeAgent(server, { threadId: "t" });
        await agent.connectAgent(undefined, { onEvent: ({ event }) => void events.push(event.type) });
        close(agent);
      });
      return { events, requests };
    }

    it(`asks again over ${transport}, for the thread and for its snapshots`, async () => {
      const { events, requests } = await connected([refusal("SHUTTING_DOWN"), idle, refusal("SHUTTING_DOWN"), idle]);
      assert.deepEqual(events, ["RUN_STARTED", "RUN_FINISHED"]);
      assert.deepEqual(requests, ["threads.get", "threads.get", "run", "threads.get", "run"]);
    });

    it(`follows over ${transport} a run that has begun since the thread was read`, async () => {
      const { events, requests } = await connected([idle, refusal("THREAD_BUSY"), busy, busy]);
      assert.deepEqual(events, ["RUN_STARTED", "MESSAGES_SNAPSHOT", "STATE_SNAPSHOT", "RUN_FINISHED"]);
      assert.deepEqual(requests, ["threads.get", "run", "threads.get", "threads.get", "attach"]);
    });
  }
});

describe("connectAgent() on a thread that waits for an approval", () => {
  let asking: Server;

  before(async () => {
    const rule = { tool_pattern: "calculate", policy: "ask" };
    asking = await startServer({ AGUI_TOOL_POLICY: JSON.stringify([rule]) });
  });
  after(() => asking.stop());

  for (const [transport, makeAgent] of Object.entries(AGENTS)) {
    it(`brings the interrupt over ${transport}, and the next run can answer it`, () =>
      withRelay(asking.port, async (relay) => {
        const agent = makeAgent(relay);
        agent.addMessage({ id: "m1", role: "user", content: "calculate 6*7" });
        await agent.runAgent();
        const reloaded = makeAgent(relay, { threadId: agent.threadId });
        await reloaded.connectAgent();
        const [interrupt] = reloaded.pendingInterrupts;
        assert.ok(interrupt);
        const resume = [{ interruptId: interrupt.id, status: "resolved" as const, payload: { approved: true } }];
        await reloaded.runAgent({ resume });
        assert.equal(reloaded.messages.at(-1)?.content, "The result of calculate is 42.");
        close(agent);
        close(reloaded);
      }));
  }
});
