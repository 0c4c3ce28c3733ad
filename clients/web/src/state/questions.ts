/** Questions of the agent: they wait for an answer, and their answers wait until all have one. */

import type { Interrupt, ResumeEntry } from "@ag-ui/core";
import { fieldsOf, withAnswer } from "./custom";
import type { CallState, ChatState } from "./types";

/** True if an interrupt asks for a decision on a call. */
export function isApproval({ reason, metadata }: Interrupt): boolean {
  return reason === "tool_call" && typeof metadata?.toolName === "string";
}

/** The answer with which the user refuses what an MCP server asks. The server reads it, unlike a cancelled question. */
export const DECLINE = { action: "decline" };

/** True if an interrupt is a question of an MCP server that `DECLINE` is no value for. */
export function canDecline({ reason, responseSchema }: Interrupt): boolean {
  return reason === "elicitation" && fieldsOf(responseSchema?.properties).action === undefined;
}

/** Keep the forms that wait as questions without an answer, because a message is sent now. */
export function putOff(state: ChatState): ChatState {
  const forms = state.interrupts.filter((each) => !isApproval(each));
  return forms.reduce((next, form) => withAnswer(next, form, { status: "cancelled" }), state);
}

/** Show the interrupts that wait at the server. Those that have an answer already are not asked again. */
export function withWaiting(state: ChatState, waiting: readonly Interrupt[]): ChatState {
  const notices = state.notices.filter((notice) => waiting.every(({ id }) => id !== notice.id));
  const answers = state.answers.filter(({ interruptId }) => waiting.some(({ id }) => id === interruptId));
  const interrupts = waiting.filter(({ id }) => answers.every(({ interruptId }) => id !== interruptId));
  const calls = { ...state.calls };
  for (const { toolCallId: id } of interrupts) if (id !== undefined) calls[id] = { ...calls[id], phase: "waiting" };
  return { ...state, notices, interrupts, answers, calls };
}

/** Keep an answer until it is sent. */
export function answered(state: ChatState, interrupt: Interrupt, entry: Omit<ResumeEntry, "interruptId">): ChatState {
  const { id, toolCallId } = interrupt;
  const next = isApproval(interrupt) ? state : withAnswer(state, interrupt, entry);
  const decided: CallState = { phase: "decided", decision: decisionOf(interrupt, entry) };
  return {
    ...next,
    interrupts: state.interrupts.filter((other) => other.id !== id),
    answers: [...state.answers, { interruptId: id, ...entry }],
    calls: toolCallId === undefined ? state.calls : { ...state.calls, [toolCallId]: decided },
  };
}

function decisionOf(interrupt: Interrupt, { payload }: Omit<ResumeEntry, "interruptId">) {
  if (!isApproval(interrupt)) return "Answered";
  return (payload as { approved?: unknown } | undefined)?.approved === true ? "Allowed" : "Denied";
}

/** Let the decided calls run, as their answers are sent now. */
export function sent(state: ChatState, now: number): ChatState {
  const calls = Object.entries(state.calls).map(([id, call]): [string, CallState] => [
    id,
    call.phase === "decided" ? { phase: "running", startedAt: now } : call,
  ]);
  return { ...state, answers: [], calls: Object.fromEntries(calls) };
}
