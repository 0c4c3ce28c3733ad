import assert from "node:assert/strict";
import { test } from "node:test";
import type { BaseEvent } from "@ag-ui/core";
import { arrange } from "../src/state/blocks";
import { enqueue } from "../src/state/coalesce";
import { reduce } from "../src/state/reducer";
import { type ChatState, emptyChat } from "../src/state/types";

function played(...events: Record<string, unknown>[]): ChatState {
  const all = events as unknown as BaseEvent[];
  return all.reduce((state, event, index) => reduce(state, event, 1000 + index * 10), emptyChat("t"));
}

const started = { type: "RUN_STARTED", threadId: "t", runId: "r" };
const finished = { type: "RUN_FINISHED", threadId: "t", runId: "r", outcome: { type: "success" } };

function text(id: string, delta: string): Record<string, unknown>[] {
  return [
    { type: "TEXT_MESSAGE_START", messageId: id, role: "assistant" },
    { type: "TEXT_MESSAGE_CONTENT", messageId: id, delta },
    { type: "TEXT_MESSAGE_END", messageId: id },
  ];
}

function call(id: string, name: string, parent: string): Record<string, unknown>[] {
  return [
    { type: "TOOL_CALL_START", toolCallId: id, toolCallName: name, parentMessageId: parent },
    { type: "TOOL_CALL_ARGS", toolCallId: id, delta: '{"a":' },
    { type: "TOOL_CALL_ARGS", toolCallId: id, delta: "1}" },
    { type: "TOOL_CALL_END", toolCallId: id },
  ];
}

test("deltas become one message, which is open until its end", () => {
  const [start, content] = text("m", "hel");
  const open = played(started, start!, content!, { ...content, delta: "lo" });
  assert.deepEqual(open.messages, [{ id: "m", role: "assistant", content: "hello" }]);
  assert.equal(open.open.m, true);
  const closed = reduce(open, { type: "TEXT_MESSAGE_END", messageId: "m" } as unknown as BaseEvent, 0);
  assert.deepEqual(closed.open, {});
});

test("an event changes nothing of the state before it", () => {
  const before = Object.freeze(played(started, ...text("m", "a")));
  const copy = structuredClone(before);
  reduce(before, { type: "TEXT_MESSAGE_CONTENT", messageId: "m", delta: "b" } as unknown as BaseEvent, 0);
  assert.deepEqual(before, copy);
});

test("a call has arguments, a result, the server's time and its failure", () => {
  const state = played(started, ...call("c", "f", "m"), {
    type: "TOOL_CALL_RESULT",
    toolCallId: "c",
    messageId: "x",
    content: "Error: no",
    metadata: { failed: true, durationMs: 12 },
  });
  const [turn] = arrange(state);
  const block = turn!.blocks[0]!;
  assert.equal(block.kind, "call");
  assert.ok(block.kind === "call");
  assert.equal(block.call.function.arguments, '{"a":1}');
  assert.deepEqual(block.state, { phase: "failed", duration: 12 });
  assert.equal(block.result?.content, "Error: no");
});

test("a running call shows its progress, and its result ends that", () => {
  const value = { toolCallId: "c", progress: 1, total: 3, message: "step 1" };
  const progress = { type: "CUSTOM", name: "tools.progress", value };
  const running = [
    started,
    ...call("c", "f", "m"),
    progress,
    { ...progress, value: { ...value, toolCallId: "other" } },
  ];
  assert.deepEqual(played(...running).calls.c?.progress, { progress: 1, total: 3, message: "step 1" });
  assert.deepEqual(Object.keys(played(...running).calls), ["c"]);
  const result = { type: "TOOL_CALL_RESULT", toolCallId: "c", messageId: "x", content: "a" };
  assert.equal(played(...running, result, progress).calls.c?.progress, undefined);
});

test("subagents are nested in the call that began them", () => {
  const state = played(
    started,
    ...call("c", "delegate", "m"),
    { type: "SUBAGENT_STARTED", subagentRunId: "s", name: "poet", parentToolCallId: "c" },
    ...text("n", "a verse").map((event) => ({ ...event, subagentRunId: "s" })),
    { type: "SUBAGENT_FINISHED", subagentRunId: "s", outcome: { type: "success" } },
  );
  const block = arrange(state)[0]!.blocks[0]!;
  assert.ok(block.kind === "call");
  assert.equal(block.lanes[0]!.lane.status, "finished");
  assert.equal(block.lanes[0]!.blocks[0]!.kind, "text");
});

test("an interrupt leaves its call waiting and what it asks", () => {
  const interrupt = { id: "i", reason: "tool_call", toolCallId: "c" };
  const state = played(started, ...call("c", "f", "m"), {
    ...finished,
    outcome: { type: "interrupt", interrupts: [interrupt] },
  });
  assert.equal(state.calls.c!.phase, "waiting");
  assert.deepEqual(state.interrupts, [interrupt]);
  assert.equal(state.run.status, "interrupted");
});

test("the end of a run closes what was left open, however it ends", () => {
  for (const end of [finished, { type: "RUN_ERROR", message: "no", code: "AGENT_ERROR" }]) {
    assert.deepEqual(played(started, text("m", "a")[0]!, end).open, {});
  }
});

test("a patch changes the state and marks where; one that does not apply changes nothing", () => {
  const snapshot = { type: "STATE_SNAPSHOT", snapshot: { a: { b: 1 }, c: [1] } };
  const patched = played(started, snapshot, {
    type: "STATE_DELTA",
    delta: [{ op: "replace", path: "/a/b", value: 2 }],
  });
  assert.deepEqual(patched.shared, { value: { a: { b: 2 }, c: [1] }, changed: ["/a/b"] });
  const failed = played(started, snapshot, { type: "STATE_DELTA", delta: [{ op: "remove", path: "/x/y" }] });
  assert.deepEqual(failed.shared.value, snapshot.snapshot);
});

test("a snapshot marks what it changed", () => {
  const state = played(
    started,
    { type: "STATE_SNAPSHOT", snapshot: { a: 1, b: 2 } },
    { type: "STATE_SNAPSHOT", snapshot: { a: 1, b: 3 } },
  );
  assert.deepEqual(state.shared.changed, ["/b"]);
});

test("neighbouring deltas of one message are joined, and nothing else is", () => {
  const queue: BaseEvent[] = [];
  const content = (messageId: string, delta: string) =>
    ({ type: "TEXT_MESSAGE_CONTENT", messageId, delta }) as unknown as BaseEvent;
  for (const event of [content("a", "1"), content("a", "2"), content("b", "3"), content("a", "4")]) {
    enqueue(queue, event);
  }
  assert.deepEqual(queue, [content("a", "12"), content("b", "3"), content("a", "4")]);
});
