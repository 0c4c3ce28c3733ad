import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { BaseEvent } from "@ag-ui/client";
import { ConnectionLostError, type Reconnect } from "../src/index.js";
import { AGENTS, close, eventsOf, inputOf, normalized, textOf, until } from "./agents.js";
import { withRelay } from "./fixtures.js";
import { type Cut, Relay } from "./relay.js";
import { runsOf, type Server, startServer } from "./server.js";

/** Its answer has U+2028 and U+2029, which end a line for JavaScript and not for Server-Sent Events. */
const QUESTION = "think about a\u2028b\u2029c";

let server: Server;

before(async () => {
  server = await startServer();
});
after(() => server.stop());

for (const [transport, makeAgent] of Object.entries(AGENTS)) {
  describe(`a run over ${transport}`, () => {
    let whole: BaseEvent[];

    before(async () => {
      const direct = await Relay.to(server.port);
      const agent = makeAgent(direct);
      whole = await eventsOf(agent, inputOf(QUESTION));
      close(agent);
      direct.close();
      assert.ok(whole.length > 8);
      assert.equal(textOf(whole), "I have thought about a\u2028b\u2029c.");
    });

    const check = (cuts: Cut[], connections: number) =>
      withRelay(server.port, async (relay) => {
        relay.cuts.push(...cuts);
        const agent = makeAgent(relay);
        const input = inputOf(QUESTION);
        assert.deepEqual(normalized(await eventsOf(agent, input)), normalized(whole));
        assert.equal(relay.connections, connections);
        assert.equal((await runsOf(server.port, input.threadId)).length, 1);
        close(agent);
      });

    it("loses and doubles no event, whichever event the connection drops after", async (t) => {
      for (let after = 0; after < whole.length; after += 1) {
        await t.test(`${after} events`, () => check([{ after }], 2));
      }
    });

    it("loses and doubles no event, whichever event the connection drops within", async (t) => {
      for (let after = 0; after < whole.length; after += 1) {
        await t.test(`event ${after + 1}`, () => check([{ after, partial: 20 }], 2));
      }
    });

    it("comes to its end though each connection brings one event only", async () => {
      await check(Array(whole.length - 1).fill({ after: 1 }), whole.length);
    });

    it("needs no new connection after its last event", async () => {
      await check([{ after: whole.length }], 1);
    });

    it("starts once though its input is lost three times before any answer", async () => {
      await check([{ after: 0 }, { after: 0 }, { after: 0 }], 4);
    });

    it("continues a text that is being written", () =>
      withRelay(server.port, async (relay) => {
        relay.cuts.push({ after: 4 });
        const agent = makeAgent(relay);
        assert.equal(textOf(await eventsOf(agent, inputOf("stream 3000"))), "hello world, ".repeat(3000));
        assert.equal(relay.connections, 2);
        close(agent);
      }));

    it("gives the agent its messages once", () =>
      withRelay(server.port, async (relay) => {
        relay.cuts.push({ after: 5 }, { after: 3 });
        const agent = makeAgent(relay);
        agent.addMessage({ id: "m", role: "user", content: "calculate 6*7" });
        await agent.runAgent();
        assert.equal(agent.messages.at(-1)?.content, "The result of calculate is 42.");
        assert.equal(agent.messages.filter(({ role }) => role === "tool").length, 1);
        close(agent);
      }));

    it("fails with ConnectionLostError when the server stays away, after longer and longer pauses", () =>
      withRelay(server.port, async (relay) => {
        const pauses: Reconnect[] = [];
        relay.isDown = true;
        const config = { initialDelayMs: 20, maxDelayMs: 10_000, giveUpAfterMs: 100 };
        const agent = makeAgent(relay, { ...config, onReconnect: (reconnect) => pauses.push(reconnect) });
        await assert.rejects(eventsOf(agent, inputOf("hello")), (error) => {
          assert.ok(error instanceof ConnectionLostError);
          assert.equal(error.attempts, pauses.length + 1);
          assert.ok(error.cause instanceof Error);
          return true;
        });
        pauses.forEach(({ attempt, delayMs }, index) => {
          assert.equal(attempt, index + 1);
          assert.ok(delayMs >= 10 * 2 ** index && delayMs <= 20 * 2 ** index, String(delayMs));
        });
      }));

    it("waits for a server that comes back", () =>
      withRelay(server.port, async (relay) => {
        const attempts: number[] = [];
        relay.isDown = true;
        const agent = makeAgent(relay, {
          onReconnect: ({ attempt }) => {
            attempts.push(attempt);
            relay.isDown = attempt < 3;
          },
        });
        assert.deepEqual(normalized(await eventsOf(agent, inputOf(QUESTION))), normalized(whole));
        assert.deepEqual(attempts, [1, 2, 3]);
        close(agent);
      }));

    it("closes its connection and asks for nothing more when nobody subscribes any longer", () =>
      withRelay(server.port, async (relay) => {
        const agent = makeAgent(relay);
        const input = inputOf("wait 60");
        await new Promise<void>((resolve) => {
          const subscription = agent.run(input).subscribe(({ type }) => {
            if (type !== "TEXT_MESSAGE_CONTENT") return;
            subscription.unsubscribe();
            resolve();
          });
        });
        await until(async () => (await runsOf(server.port, input.threadId))[0]?.readers === 0);
        assert.equal(relay.requests.length, 1);
      }));
  });
}
