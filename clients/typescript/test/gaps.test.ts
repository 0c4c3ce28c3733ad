import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { BaseEvent, RunAgentInput } from "@ag-ui/client";
import { isObject } from "../src/transport.js";
import { AGENTS, close, eventsOf, inputOf, textOf, webSocketAgent } from "./agents.js";
import { type Script, withScript } from "./scripted.js";

/** Numbered events of a run that says hello. */
function helloEvents({ threadId, runId }: RunAgentInput): [number, BaseEvent][] {
  const events = [
    { type: "RUN_STARTED", threadId, runId },
    { type: "TEXT_MESSAGE_START", messageId: "m", role: "assistant" },
    { type: "TEXT_MESSAGE_CONTENT", messageId: "m", delta: "hel" },
    { type: "TEXT_MESSAGE_CONTENT", messageId: "m", delta: "lo" },
    { type: "TEXT_MESSAGE_END", messageId: "m" },
    { type: "RUN_FINISHED", threadId, runId, outcome: { type: "success" } },
  ] as BaseEvent[];
  return events.map((event, index) => [index + 1, event]);
}

describe("an event that does not arrive", () => {
  for (const [transport, makeAgent] of Object.entries(AGENTS)) {
    it(`is asked for again over ${transport}, and the run is complete`, async () => {
      const input = inputOf("hello");
      const events = helloEvents(input);
      const cursors: unknown[] = [];
      const script: Script = ({ command }) => {
        if (!isObject(command)) return { events: events.filter(([seq]) => seq !== 4) };
        cursors.push(command.after);
        return { events: events.filter(([seq]) => seq > Number(command.after)) };
      };
      await withScript(script, async (server) => {
        const agent = makeAgent(server);
        assert.equal(textOf(await eventsOf(agent, input)), "hello");
        assert.deepEqual(cursors, [3]);
        close(agent);
      });
    });
  }

  it("is not missing over WebSocket if it was merged with the next one", async () => {
    const input = inputOf("hello");
    const merged = { type: "TEXT_MESSAGE_CONTENT", messageId: "m", delta: "hello" } as BaseEvent;
    const events = helloEvents(input).filter(([seq]) => seq !== 3);
    const script: Script = ({ command }) => {
      assert.equal(command, undefined);
      return { events: events.map(([seq, event]) => [seq, seq === 4 ? merged : event]) };
    };
    await withScript(script, async (server) => {
      const agent = webSocketAgent(server);
      assert.equal(textOf(await eventsOf(agent, input)), "hello");
      close(agent);
    });
  });
});
