import assert from "node:assert/strict";
import { test } from "node:test";
import type { Interrupt } from "@ag-ui/core";
import { answered, canDecline, putOff, sent, withWaiting } from "../src/state/questions";
import { emptyChat } from "../src/state/types";

const approval = (id: string): Interrupt => ({
  id,
  reason: "tool_call",
  toolCallId: `call-${id}`,
  metadata: { toolName: "pay" },
});
const FORM: Interrupt = { id: "form", reason: "order", message: "Where to?" };
const DENIAL = { status: "resolved", payload: { approved: false } } as const;

test("a decision that is not sent yet outlives a run that still waits for it", () => {
  const waiting = [approval("a"), approval("b")];
  const asked = withWaiting(emptyChat("t"), waiting);
  const decided = withWaiting({ ...answered(asked, waiting[0]!, DENIAL), interrupts: [] }, waiting);
  assert.deepEqual(decided.interrupts, [waiting[1]]);
  assert.deepEqual(decided.answers, [{ interruptId: "a", ...DENIAL }]);
  assert.deepEqual(decided.calls["call-a"], { phase: "decided", decision: "Denied" });
  assert.equal(decided.calls["call-b"]?.phase, "waiting");
});

test("a decision is forgotten when its call no longer waits, and sent once", () => {
  const asked = withWaiting(emptyChat("t"), [approval("a"), approval("b")]);
  const decided = answered(asked, approval("a"), DENIAL);
  assert.deepEqual(withWaiting(decided, [approval("b")]).answers, []);
  const running = sent(decided, 5);
  assert.deepEqual(running.answers, []);
  assert.deepEqual(running.calls["call-a"], { phase: "running", startedAt: 5 });
});

test("a form that a message goes on without is not answered, unless it still waits", () => {
  const off = putOff(withWaiting(emptyChat("t"), [FORM]));
  assert.deepEqual(off.notices, [{ id: "form", afterMessageId: null, text: "Where to?", answer: "" }]);
  const again = withWaiting(off, [FORM]);
  assert.deepEqual([again.notices, again.interrupts], [[], [FORM]]);
});

test("a question of an MCP server can be declined, unless its own values could mean that", () => {
  const ofServer = { ...FORM, reason: "elicitation" };
  const withAction = { ...ofServer, responseSchema: { properties: { action: { type: "string" } } } };
  assert.deepEqual([FORM, ofServer, withAction].map(canDecline), [false, true, false]);
});
