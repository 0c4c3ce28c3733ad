import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { BaseEvent, RunAgentInput } from "@ag-ui/client";
import { AgentClientError } from "../src/index.js";
import { eventsOf, httpAgent, inputOf, textOf } from "./agents.js";

const TEXT = "zwölf Boxkämpfer 🥊 jagen";

/** Body of a run that says `text`. */
function bodyOf({ threadId, runId }: RunAgentInput, text: string, lineEnd = "\n"): Uint8Array {
  const events = [
    { type: "RUN_STARTED", threadId, runId },
    { type: "TEXT_MESSAGE_START", messageId: "m", role: "assistant" },
    { type: "TEXT_MESSAGE_CONTENT", messageId: "m", delta: text },
    { type: "TEXT_MESSAGE_END", messageId: "m" },
    { type: "RUN_FINISHED", threadId, runId, outcome: { type: "success" } },
  ];
  const frames = events.map((event, index) => `id: ${index + 1}\ndata: ${JSON.stringify(event)}\n\n`);
  return new TextEncoder().encode([": a comment\n\n", ...frames].join("").replaceAll("\n", lineEnd));
}

/** Events of a run whose body arrives in these chunks. */
async function read(input: RunAgentInput, chunks: Uint8Array[]): Promise<BaseEvent[]> {
  const waiting = chunks.values();
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      await new Promise(setImmediate); // a test that takes too long can end only between turns of the event loop
      const { value, done } = waiting.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
  });
  const onReconnect = () => assert.fail("the body broke off");
  const fetch = async () => new Response(body);
  return await eventsOf(httpAgent({ http: "http://127.0.0.1/invocations" }, { fetch, onReconnect }), input);
}

function chunksOf(bytes: Uint8Array, size: number): Uint8Array[] {
  const count = Math.ceil(bytes.length / size);
  return Array.from({ length: count }, (_, index) => bytes.subarray(index * size, (index + 1) * size));
}

describe("a response", () => {
  for (const [name, lineEnd] of Object.entries({ LF: "\n", "CR LF": "\r\n" })) {
    it(`whose lines end with ${name} is read the same wherever it is cut`, async () => {
      const input = inputOf("hello");
      const bytes = bodyOf(input, TEXT, lineEnd);
      for (let at = 1; at < bytes.length; at += 1) {
        const events = await read(input, [bytes.subarray(0, at), bytes.subarray(at)]);
        assert.equal(events.length, 5);
        assert.equal(textOf(events), TEXT);
      }
      assert.equal(textOf(await read(input, chunksOf(bytes, 1))), TEXT);
    });
  }

  it("of 8 MB in one frame is read though it arrives in chunks of 1 KB", { timeout: 200_000 }, async () => {
    const input = inputOf("hello");
    const text = "x".repeat(8_000_000);
    assert.equal(textOf(await read(input, chunksOf(bodyOf(input, text), 1_000))), text);
  });

  it("of more than 16,000,000 characters in one frame is refused", async () => {
    const input = inputOf("hello");
    const chunks = chunksOf(bodyOf(input, "x".repeat(16_100_000)), 100_000);
    await assert.rejects(read(input, chunks), (error) => {
      assert.ok(error instanceof AgentClientError);
      assert.match(error.message, /more than 16000000 characters/);
      return true;
    });
  });
});
