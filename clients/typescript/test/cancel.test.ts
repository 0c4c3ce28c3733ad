import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { BaseEvent } from "@ag-ui/client";
import { firstValueFrom } from "rxjs";
import { CancelTimeoutError } from "../src/index.js";
import { AGENTS, close, eventsOf, httpAgent, inputOf, until, webSocketAgent } from "./agents.js";
import { withRelay } from "./fixtures.js";
import { runsOf, type Server, startServer } from "./server.js";

let server: Server;

before(async () => {
  server = await startServer();
});
after(() => server.stop());

for (const [transport, makeAgent] of Object.entries(AGENTS)) {
  describe(`abortRun() over ${transport}`, () => {
    async function statusOf(threadId: string): Promise<string | undefined> {
      return (await runsOf(server.port, threadId))[0]?.status;
    }

    it("ends the run at the server, and its stream with the outcome cancelled", () =>
      withRelay(server.port, async (relay) => {
        const agent = makeAgent(relay);
        const outcomes: unknown[] = [];
        agent.addMessage({ id: "m", role: "user", content: "wait 600" });
        await agent.runAgent(undefined, {
          onTextMessageContentEvent: () => agent.abortRun(),
          onRunFinishedEvent: ({ event }) => {
            outcomes.push(event.outcome);
          },
        });
        assert.deepEqual(outcomes, [{ type: "cancelled" }]);
        assert.equal(agent.messages.at(-1)?.content, "Waiting 600 s. ");
        assert.equal(await statusOf(agent.threadId), "cancelled");
        close(agent);
      }));

    it("is also what an abort of the run's own controller does", () =>
      withRelay(server.port, async (relay) => {
        const agent = makeAgent(relay);
        const abortController = new AbortController();
        agent.addMessage({ id: "m", role: "user", content: "wait 600" });
        await agent.runAgent({ abortController }, { onTextMessageContentEvent: () => abortController.abort() });
        assert.equal(await statusOf(agent.threadId), "cancelled");
        close(agent);
      }));

    it("lets the next run on the same thread begin at once", () =>
      withRelay(server.port, async (relay) => {
        const agent = makeAgent(relay);
        agent.addMessage({ id: "m1", role: "user", content: "wait 600" });
        await agent.runAgent(undefined, { onTextMessageContentEvent: () => agent.abortRun() });
        agent.addMessage({ id: "m2", role: "user", content: "calculate 1+1" });
        await agent.runAgent();
        assert.equal(agent.messages.at(-1)?.content, "The result of calculate is 2.");
        close(agent);
      }));

    it("sends nothing when the run has not been sent yet", () =>
      withRelay(server.port, async (relay) => {
        const agent = makeAgent(relay);
        agent.addMessage({ id: "m", role: "user", content: "wait 600" });
        const running = agent.runAgent();
        agent.abortRun();
        await running;
        assert.equal(relay.connections, 0);
      }));

    it("reaches the server though no answer has come", () =>
      withRelay(server.port, async (relay) => {
        const agent = makeAgent(relay, { cancelTimeoutMs: 500 });
        await agent.getCapabilities(); // opens the socket
        relay.isFrozen = true;
        const input = inputOf("wait 600");
        const running = assert.rejects(eventsOf(agent, input), CancelTimeoutError);
        await until(async () => (await statusOf(input.threadId)) === "running");
        agent.abortRun();
        await until(async () => (await statusOf(input.threadId)) === "cancelled");
        await running;
      }));

    it("sends no input while the agent waits for its token", () =>
      withRelay(server.port, async (relay) => {
        const agent = makeAgent(relay, {
          token: () => {
            agent.abortRun();
            return "token";
          },
        });
        const input = inputOf("wait 600");
        assert.deepEqual(await eventsOf(agent, input), []);
        assert.deepEqual(await runsOf(server.port, input.threadId), []);
        close(agent);
      }));

    it("cancels on the next connection when the run's own is lost", () =>
      withRelay(server.port, async (relay) => {
        const agent = makeAgent(relay, { onReconnect: () => agent.abortRun() });
        relay.cuts.push({ after: 3 });
        const input = inputOf("wait 600");
        const events = await eventsOf(agent, input);
        assert.deepEqual(events.at(-1)?.outcome, { type: "cancelled" });
        assert.equal(await statusOf(input.threadId), "cancelled");
        close(agent);
      }));

    it("does not run an input again that was lost with its connection", () =>
      withRelay(server.port, async (relay) => {
        const agent = makeAgent(relay, {
          onReconnect: () => {
            relay.isDown = false;
            agent.abortRun();
          },
        });
        relay.isDown = true;
        const input = inputOf("wait 600");
        const events = await eventsOf(agent, input);
        assert.deepEqual(events, []);
        assert.deepEqual(await runsOf(server.port, input.threadId), []);
        close(agent);
      }));

    it("fails with CancelTimeoutError when the server does not answer in time", () =>
      withRelay(server.port, async (relay) => {
        const agent = makeAgent(relay, { cancelTimeoutMs: 50 });
        const seen: BaseEvent[] = [];
        const running = new Promise((_, reject) => {
          agent.run(inputOf("wait 600")).subscribe({
            next: (event) => {
              seen.push(event);
              if (event.type !== "TEXT_MESSAGE_CONTENT") return;
              relay.isFrozen = true;
              agent.abortRun();
            },
            error: reject,
          });
        });
        await assert.rejects(running, CancelTimeoutError);
        assert.equal(seen.at(-1)?.type, "TEXT_MESSAGE_CONTENT");
      }));

    it("stops only the agent that it is called on", () =>
      withRelay(server.port, async (relay) => {
        const agent = makeAgent(relay);
        const other = agent.clone();
        other.threadId = "other";
        const input = inputOf("wait 600");
        const cancelled = eventsOf(agent, input);
        const finished = eventsOf(other, inputOf("wait 0.2", { threadId: "other" }));
        await firstValueFrom(agent.run(input)); // it has started
        agent.abortRun();
        assert.deepEqual((await cancelled).at(-1)?.outcome, { type: "cancelled" });
        assert.deepEqual((await finished).at(-1)?.outcome, { type: "success" });
        close(agent);
      }));
  });
}

describe("abortRun() over HTTP, of a request that is delayed on its way", () => {
  it("is sent again when the server answers, because the first cancel came before the run", () =>
    withRelay(server.port, async (relay) => {
      const agent = httpAgent(relay);
      const input = inputOf("wait 600");
      relay.holdsNext = true;
      const events = eventsOf(agent, input);
      await until(() => relay.connections === 1);
      agent.abortRun();
      await until(() => relay.answered > 0); // to the cancel
      relay.release();
      assert.deepEqual((await events).at(-1)?.outcome, { type: "cancelled" });
    }));
});

describe("abortRun() over HTTP, of a run whose stream stays open", () => {
  it("sends the cancel again when its own connection fails", () =>
    withRelay(server.port, async (relay) => {
      const agent = httpAgent(relay);
      const cancelling = (async () => {
        await until(() => relay.isDown && relay.connections >= 2); // it may have been repeated already
        relay.isDown = false;
      })();
      const events = await eventsOf(agent, inputOf("wait 600"), ({ type }) => {
        if (type !== "TEXT_MESSAGE_CONTENT") return;
        relay.isDown = true;
        agent.abortRun();
      });
      await cancelling;
      assert.deepEqual(events.at(-1)?.outcome, { type: "cancelled" });
    }));
});

describe("abortRun() over WebSocket, of a socket that is still being opened", () => {
  it("ends the stream at once and sends nothing", () =>
    withRelay(server.port, async (relay) => {
      const agent = webSocketAgent(relay);
      const input = inputOf("wait 600");
      relay.holdsNext = true;
      const events = eventsOf(agent, input);
      await until(() => relay.connections === 1);
      agent.abortRun();
      assert.deepEqual(await events, []);
      relay.release();
      await until(() => relay.open === 0);
      assert.deepEqual(await runsOf(server.port, input.threadId), []);
    }));
});
