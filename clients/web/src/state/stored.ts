/** A stored thread as a chat. */

import type { RunFacts, StoredThread } from "../connection/api";
import { answerText, fieldsOf, noticeText } from "./custom";
import { openCalls } from "./messages";
import { withWaiting } from "./questions";
import { callStateOf, failureOf } from "./reducer";
import { type CallState, type ChatState, emptyChat, type Notice, type RunEnding, type RunState } from "./types";

/**
 * Return the chat of a thread.
 *
 * @param runs runs of the thread that the server remembers, the newest first
 */
export function chatOf(stored: StoredThread, runs: readonly RunFacts[]): ChatState {
  const empty = emptyChat(stored.threadId);
  const chat: ChatState = {
    ...empty,
    messages: stored.messages,
    earlier: stored.before,
    runs: stored.runs,
    shared: { value: stored.state, changed: [] },
    notices: noticesIn(stored),
    endings: endingsOf(runs),
    run: runOf(stored, runs[0]),
    pendingCalls: stored.status === "client_tool_turn" ? openCalls(stored.messages).map(({ id }) => id) : [],
  };
  return withWaiting(chat, stored.waiting);
}

/** Mark calls that were decided before the answer of this page came. */
export function withLateAnswers(chat: ChatState, callIds: readonly string[]): ChatState {
  const late = chat.messages.flatMap((message): [string, CallState][] =>
    message.role === "tool" && callIds.includes(message.toolCallId)
      ? [[message.toolCallId, { ...callStateOf(message), isLate: true }]]
      : [],
  );
  return { ...chat, calls: { ...chat.calls, ...Object.fromEntries(late) } };
}

/** Lines of a conversation that are no messages. Those of the open run come with its events. */
export function noticesIn(stored: Pick<StoredThread, "answers" | "notices" | "activeRunId">): Notice[] {
  const told = stored.notices.flatMap(({ runId, messageId, name, value }, at) => {
    const text = runId === stored.activeRunId ? undefined : noticeText(name, fieldsOf(value));
    return text === undefined ? [] : [{ id: `${runId}-${messageId}-${at}`, afterMessageId: messageId ?? null, text }];
  });
  return [...answersIn(stored), ...told];
}

/** Questions of the agent with their answers, each after the message that was the last one then. */
function answersIn({ answers }: Pick<StoredThread, "answers">): Notice[] {
  return answers.map((answer) => ({
    id: `${answer.runId}-${answer.interruptId}`,
    afterMessageId: answer.messageId ?? null,
    text: answer.message ?? answer.reason,
    answer: answerText(answer),
  }));
}

function runOf(stored: StoredThread, latest: RunFacts | undefined): RunState {
  if (stored.waiting.length > 0) return { ...(latest && { id: latest.runId }), status: "interrupted" };
  return latest === undefined ? { status: "idle" } : { id: latest.runId, status: "idle", ...endingOf(latest) };
}

function endingsOf(runs: readonly RunFacts[]): ChatState["endings"] {
  return Object.fromEntries(runs.flatMap((run) => endingOf(run) ?? []).map((ending) => [ending.id, ending]));
}

function endingOf({ runId, status, error }: RunFacts): (RunEnding & { id: string }) | undefined {
  if (status === "cancelled") return { id: runId, status };
  if (status !== "error") return undefined;
  return { id: runId, status: "failed", ...(error && { failure: failureOf(error) }) };
}
