import assert from "node:assert/strict";
import { test } from "node:test";
import { matching, rowsOf } from "../src/components/events";
import type { RunFacts } from "../src/connection/api";
import type { Frame } from "../src/connection/frames";
import { storedFramesOf, storedTurns } from "../src/state/stored-trace";
import { spansOf, turnsOf } from "../src/state/trace";

function frames(...events: [at: number, event: Record<string, unknown>][]): Frame[] {
  return events.map(([at, event], index) => ({
    number: index + 1,
    at,
    since: at,
    runId: String(event.run ?? "r1"),
    direction: event.type === undefined ? "out" : "in",
    type: String(event.type ?? "RUN_INPUT"),
    text: JSON.stringify(event),
  }));
}

const ASKED = { threadId: "t", messages: [{ role: "user", content: "pay" }] };
const PAID = frames(
  [0, ASKED],
  [10, { type: "RUN_STARTED" }],
  [100, { type: "TOOL_CALL_START", toolCallId: "c", toolCallName: "pay" }],
  [110, { type: "TOOL_CALL_ARGS", toolCallId: "c", delta: "{}" }],
  [120, { type: "TOOL_CALL_END", toolCallId: "c" }],
  [130, { type: "RUN_FINISHED", outcome: { type: "interrupt" }, usage: [{ inputTokens: 1200, outputTokens: 8 }] }],
  [1000, { run: "r2", threadId: "t", messages: [] }],
  [1100, { run: "r2", type: "TOOL_CALL_RESULT", toolCallId: "c", metadata: { durationMs: 40 } }],
  [1150, { run: "r2", type: "TEXT_MESSAGE_START", messageId: "m" }],
  [1200, { run: "r2", type: "TEXT_MESSAGE_END", messageId: "m" }],
  [1210, { run: "r2", type: "RUN_FINISHED" }],
);

test("a turn has the spans of its model calls, its tools and the wait for the user", () => {
  const [turn] = turnsOf(PAID, "t");
  assert.equal(turn!.title, "pay");
  assert.deepEqual(
    spansOf(turn!.frames).map(({ kind, name, start, end, detail }) => [kind, name, start, end, detail]),
    [
      ["run", "run", 0, 130, "interrupt · 1,200 tokens in, 8 out"],
      ["model", "model", 0, 120, "first token after 100 ms"],
      ["wait", "waits for you", 130, 1000, ""],
      ["run", "run", 1000, 1210, "success"],
      ["tool", "pay", 1060, 1100, ""],
      ["model", "model", 1100, 1200, "first token after 50 ms"],
    ],
  );
});

test("a tool waits until the run with the decision begins", () => {
  const tool = (count: number) => spansOf(PAID.slice(0, count)).find(({ kind }) => kind === "tool");
  assert.deepEqual([tool(6)?.start, tool(6)?.end, tool(6)?.detail], [120, undefined, "waits for a decision"]);
  assert.deepEqual([tool(7)?.start, tool(7)?.end, tool(7)?.detail], [1000, undefined, ""]);
});

test("each message of the user begins a turn, and other threads have their own", () => {
  const other = frames([0, { ...ASKED, threadId: "u" }], [1, { type: "RUN_STARTED" }], [5, { ...ASKED, run: "r2" }]);
  assert.equal(turnsOf(other, "t").length, 1);
  assert.deepEqual(spansOf([]), []);
});

test("what a subagent does is inside its span", () => {
  const spans = spansOf(
    frames(
      [0, ASKED],
      [10, { type: "TOOL_CALL_START", toolCallId: "c", toolCallName: "delegate" }],
      [20, { type: "TOOL_CALL_END", toolCallId: "c" }],
      [30, { type: "SUBAGENT_STARTED", subagentRunId: "s", name: "helper", parentToolCallId: "c" }],
      [40, { type: "TEXT_MESSAGE_START", messageId: "m", subagentRunId: "s" }],
      [50, { type: "TEXT_MESSAGE_END", messageId: "m", subagentRunId: "s" }],
      [60, { type: "SUBAGENT_FINISHED", subagentRunId: "s" }],
    ),
  );
  assert.deepEqual(
    spans.map(({ name, depth, end }) => [name, depth, end]),
    [
      ["run", 0, undefined],
      ["model", 1, 20],
      ["delegate", 1, undefined],
      ["helper", 2, 60],
      ["model", 3, 50],
    ],
  );
});

test("deltas of one message are one row, and the end of a run is readable", () => {
  const log = frames(
    [0, { type: "TEXT_MESSAGE_CONTENT", messageId: "m", delta: "Hel" }],
    [40, { type: "TEXT_MESSAGE_CONTENT", messageId: "m", delta: "lo" }],
    [50, { type: "TEXT_MESSAGE_CONTENT", messageId: "n", delta: "You" }],
    [60, { type: "RUN_FINISHED", outcome: { type: "success" }, usage: [{ inputTokens: 5, outputTokens: 2 }] }],
  );
  assert.deepEqual(
    rowsOf(log, false).map(({ count, took, text }) => [count, took, text]),
    [
      [2, 40, "Hello"],
      [1, 0, "You"],
      [1, 0, "success · 5 tokens in, 2 out"],
    ],
  );
  assert.equal(rowsOf(log, true).length, 4);
});

test("the filter finds the number of deltas that a row shows", () => {
  const log = frames(
    [0, { type: "TEXT_MESSAGE_CONTENT", messageId: "m", delta: "Hel" }],
    [40, { type: "TEXT_MESSAGE_CONTENT", messageId: "m", delta: "lo" }],
    [50, { type: "TEXT_MESSAGE_END", messageId: "m" }],
  );
  const found = (filter: string) => matching(rowsOf(log, false), filter).map(({ frame }) => frame.number);
  assert.deepEqual(["2 deltas", "-deltas", "", "other"].map(found), [[1], [3], [1, 3], []]);
});

test("the input of a run is a row with what the user said, also with files, and an answer continues", () => {
  const file = [{ type: "binary", mimeType: "text/plain", data: "" }];
  const log = frames(
    [0, ASKED],
    [10, { threadId: "t", messages: [{ role: "user", content: file }] }],
    [20, { threadId: "t", messages: [], resume: [{ interruptId: "i", status: "cancelled" }] }],
  );
  assert.deepEqual(
    rowsOf(log, false).map(({ text }) => text),
    ["pay", "Files", "continued"],
  );
});

function stored(runId: string, status: string, startedAt: number): RunFacts {
  return { runId, threadId: "t", status, startedAt, seconds: 1, events: 1 };
}

test("stored runs are turns, and a run after questions belongs to the turn that has asked them", () => {
  const runs = [stored("r3", "finished", 3), stored("r2", "finished", 2), stored("r1", "interrupted", 1)];
  const messages = [
    { id: "u1", role: "user" as const, content: "pay" },
    { id: "a1", role: "assistant" as const, content: "" },
    { id: "u2", role: "user" as const, content: "thanks" },
    { id: "a2", role: "assistant" as const, content: "Welcome." },
  ];
  assert.deepEqual(
    storedTurns(runs, { messages, runs: { a1: "r1", a2: "r3" } }).map((turn) => [
      turn.title,
      turn.runs.map(({ runId }) => runId),
    ]),
    [
      ["pay", ["r1", "r2"]],
      ["thanks", ["r3"]],
    ],
  );
});

test("a stored turn has the times of its runs and its measured tools, and of nothing else", () => {
  const first = [
    { type: "RUN_STARTED", timestamp: 1000 },
    { type: "TOOL_CALL_START", toolCallId: "c", toolCallName: "pay" },
    { type: "TOOL_CALL_ARGS", toolCallId: "c", delta: "{}" },
    { type: "TOOL_CALL_END", toolCallId: "c" },
    { type: "RUN_FINISHED", timestamp: 1300, outcome: { type: "interrupt" } },
  ];
  const second = [
    { type: "RUN_STARTED", timestamp: 9000 },
    { type: "TOOL_CALL_RESULT", toolCallId: "c", metadata: { durationMs: 40 } },
    { type: "TEXT_MESSAGE_START", messageId: "m" },
    { type: "TEXT_MESSAGE_END", messageId: "m" },
    { type: "RUN_FINISHED", timestamp: 9500 },
  ];
  const text = (events: object[]) => events.map((event) => JSON.stringify(event));
  const found = [
    ...storedFramesOf(stored("r1", "interrupted", 1), text(first)),
    ...storedFramesOf(stored("r2", "finished", 9), text(second)),
  ];
  assert.deepEqual(
    spansOf(found, {}, true).map((span) => [span.name, span.isTimed ? span.end! - span.start : "", span.detail]),
    [
      ["run", 300, "interrupt"],
      ["model", "", ""],
      ["waits for you", 7700, ""],
      ["run", 500, "success"],
      ["pay", 40, ""],
      ["model", "", ""],
    ],
  );
});
