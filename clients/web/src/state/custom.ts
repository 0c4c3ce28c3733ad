/** The CUSTOM events of this server: context, and notices for the user. */

import type { Interrupt, ResumeEntry } from "@ag-ui/core";
import type { ChatState, Progress } from "./types";

interface ContextSnapshot {
  contextSize: number;
  totalTokens: number;
  systemTokens: number;
  toolTokens: number;
  historyTokens: number;
  runTokens: number;
}

export function reduceCustom(
  state: ChatState,
  name: string,
  value: unknown,
  subagentRunId: string | undefined,
): ChatState {
  const data = fieldsOf(value);
  switch (name) {
    case "context.snapshot":
      return subagentRunId === undefined ? withContext(state, data as unknown as ContextSnapshot) : state;
    case "tools.progress":
      return withProgress(state, data as unknown as Progress & { toolCallId: string });
    default: {
      const text = noticeText(name, data);
      return text === undefined ? state : withNotice(state, text);
    }
  }
}

/** The sentence of an event that tells the user something, as it arrives or as it is stored with a thread. */
export function noticeText(name: string, data: Record<string, unknown>): string | undefined {
  switch (name) {
    case "context.compacted":
      return compacted(data);
    case "tools.unavailable":
      return `Tools of ${data.source} are unavailable: ${data.message}`;
    case "media.dropped":
      return `The model was not given the ${data.part}: ${data.reason}.`;
    case "model.stopped":
      return `The model stopped early${data.reason ? `: ${data.reason}` : ""}.`;
    default:
      return undefined;
  }
}

/** The fields of an event's value, which may be any JSON. */
export function fieldsOf(value: unknown): Record<string, unknown> {
  return (typeof value === "object" && value !== null ? value : {}) as Record<string, unknown>;
}

function withProgress(state: ChatState, { toolCallId, ...progress }: Progress & { toolCallId: string }): ChatState {
  const call = state.calls[toolCallId];
  return call?.phase === "running"
    ? { ...state, calls: { ...state.calls, [toolCallId]: { ...call, progress } } }
    : state;
}

function withContext(state: ChatState, snapshot: ContextSnapshot): ChatState {
  const context = {
    size: snapshot.contextSize,
    total: snapshot.totalTokens,
    system: snapshot.systemTokens,
    tools: snapshot.toolTokens,
    history: snapshot.historyTokens,
    run: snapshot.runTokens,
  };
  return { ...state, context };
}

function withNotice(state: ChatState, text: string): ChatState {
  const id = `notice-${state.notices.length}`;
  return { ...state, notices: [...state.notices, { id, afterMessageId: lastId(state), text }] };
}

function lastId({ messages }: ChatState): string | null {
  return messages.at(-1)?.id ?? null;
}

/** Keep a question of the agent with its answer. */
export function withAnswer(
  state: ChatState,
  { id, message, reason }: Interrupt,
  entry: Omit<ResumeEntry, "interruptId">,
): ChatState {
  const notice = { id, afterMessageId: lastId(state), text: message ?? reason, answer: answerText(entry) };
  return { ...state, notices: [...state.notices, notice] };
}

/** What was answered, as JSON; empty if the question was put off or passed by. */
export function answerText({ status, payload }: { status: string; payload?: unknown }): string {
  return status === "resolved" ? JSON.stringify(payload ?? null) : "";
}

function compacted(data: Record<string, unknown>): string {
  const how = data.strategy === "summarise" ? "Earlier messages were summarised" : "Earlier messages were left out";
  return `${how} to fit the context window: ${data.tokensBefore} tokens became ${data.tokensAfter}.`;
}
