import assert from "node:assert/strict";
import { test } from "node:test";
import type { RunFacts, StoredThread } from "../src/connection/api";
import { arrange } from "../src/state/blocks";
import { chatOf } from "../src/state/stored";

const FACTS = { status: "user_turn", createdAt: 1, changedAt: 1, continuationToken: "t" };
const THREAD: StoredThread = {
  ...FACTS,
  threadId: "t",
  messages: [
    { id: "u1", role: "user", content: "one" },
    { id: "a1", role: "assistant", content: "On" },
    { id: "u2", role: "user", content: "two" },
  ],
  runs: { a1: "r1" },
  feedback: [],
  waiting: [],
  answers: [],
  notices: [],
};

function run(runId: string, status: string, error?: RunFacts["error"]): RunFacts {
  return { runId, threadId: "t", status, startedAt: 1, seconds: 1, events: 1, ...(error && { error }) };
}

test("a thread shows how its last run ended, and a stopped answer before it", () => {
  const error = {
    type: "RUN_ERROR",
    code: "MODEL_ERROR",
    message: "No.",
    metadata: { requestId: "q", retryable: true },
  };
  const chat = chatOf(THREAD, [run("r2", "error", error as RunFacts["error"]), run("r1", "cancelled")]);
  assert.equal(chat.run.status, "failed");
  assert.deepEqual(chat.run.failure, { code: "MODEL_ERROR", message: "No.", retryable: true, requestId: "q" });
  assert.deepEqual(
    arrange(chat).map(({ ending }) => ending?.status),
    ["cancelled", undefined],
  );
});

test("a thread whose runs are forgotten shows no ending", () => {
  assert.equal(chatOf(THREAD, []).run.status, "idle");
});

test("a call that waits for a decision waits again", () => {
  const waiting = [{ id: "i", reason: "tool_call", toolCallId: "c", metadata: { toolName: "pay" } }];
  const chat = chatOf({ ...THREAD, waiting }, [run("r1", "interrupted")]);
  assert.equal(chat.run.status, "interrupted");
  assert.equal(chat.calls.c?.phase, "waiting");
  assert.deepEqual(chat.interrupts, waiting);
});

/** The lines of each turn of a thread that are no messages. */
function lines(stored: StoredThread): string[][] {
  return arrange(chatOf(stored, [])).map(({ blocks }) =>
    blocks.flatMap((block) => (block.kind === "notice" ? [block.notice.text] : [])),
  );
}

test("a thread shows what its runs have told the user, each at its place", () => {
  const notices = [
    { runId: "r1", messageId: "a1", name: "model.stopped", value: { reason: "length" } },
    { runId: "r1", messageId: "a1", name: "of.another.page", value: null },
    { runId: "r2", messageId: "u2", name: "media.dropped", value: { part: "image", reason: "too large" } },
  ];
  const stopped = "The model stopped early: length.";
  assert.deepEqual(lines({ ...THREAD, notices }), [[stopped], ["The model was not given the image: too large."]]);
  assert.deepEqual(lines({ ...THREAD, notices, activeRunId: "r2" }), [[stopped], []]);
});

test("a question that a message went on without is not answered", () => {
  const answers = [{ runId: "r1", messageId: "a1", interruptId: "i", reason: "place", status: "unanswered" as const }];
  const [turn] = arrange(chatOf({ ...THREAD, answers }, []));
  const notice = turn!.blocks.find((block) => block.kind === "notice")!.notice;
  assert.deepEqual([notice.text, notice.answer], ["place", ""]);
});
