/** Fold events into AG-UI messages, without changing what was there before. */

import type { AssistantMessage, Message, ToolCall, UserMessage } from "@ag-ui/core";
import type { ChatState } from "./types";

/** Replace the message with this id, searching from the end because streams write there. */
export function update(
  messages: readonly Message[],
  id: string,
  change: (message: Message) => Message,
): readonly Message[] {
  for (let index = messages.length - 1; index >= 0; index--) {
    const message = messages[index]!;
    if (message.id === id) return messages.with(index, change(message));
  }
  return messages;
}

export function find(messages: readonly Message[], id: string): Message | undefined {
  return messages.findLast((message) => message.id === id);
}

export function put(messages: readonly Message[], message: Message): readonly Message[] {
  const index = messages.findLastIndex((other) => other.id === message.id);
  return index < 0 ? [...messages, message] : messages.with(index, message);
}

export function appendText(messages: readonly Message[], id: string, delta: string): readonly Message[] {
  return update(messages, id, (message) => ({ ...message, content: `${message.content ?? ""}${delta}` }) as Message);
}

/** Add a call to the assistant message that owns it, which may not be there yet. */
export function addCall(
  messages: readonly Message[],
  call: ToolCall,
  parentId: string,
  subagentRunId: string | undefined,
): readonly Message[] {
  const parent = find(messages, parentId);
  if (parent?.role === "assistant") {
    return update(messages, parentId, (message) => {
      const calls = (message as AssistantMessage).toolCalls ?? [];
      return { ...message, toolCalls: [...calls, call] } as Message;
    });
  }
  const attribution = subagentRunId === undefined ? {} : { subagentRunId };
  return [...messages, { id: parentId, role: "assistant", toolCalls: [call], ...attribution }];
}

export function appendArguments(messages: readonly Message[], callId: string, delta: string): readonly Message[] {
  const index = messages.findLastIndex(
    (message) => message.role === "assistant" && message.toolCalls?.some((call) => call.id === callId),
  );
  if (index < 0) return messages;
  const owner = messages[index] as AssistantMessage;
  const toolCalls = (owner.toolCalls ?? []).map((call) =>
    call.id === callId ? { ...call, function: { ...call.function, arguments: call.function.arguments + delta } } : call,
  );
  return messages.with(index, { ...owner, toolCalls });
}

/** The calls since the user's last message that have no result. */
export function openCalls(all: readonly Message[]): ToolCall[] {
  const messages = all.slice(all.findLastIndex(({ role }) => role === "user") + 1);
  const answered = new Set(messages.flatMap((message) => (message.role === "tool" ? [message.toolCallId] : [])));
  return messages.flatMap((message) =>
    message.role === "assistant" ? (message.toolCalls ?? []).filter((call) => !answered.has(call.id)) : [],
  );
}

/** The text of a user message without its attachments. */
export function textOf({ content }: UserMessage): string {
  if (typeof content === "string") return content;
  return content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");
}

/** The messages that the server does not have and may still take. */
export function unsent({ messages, unsent }: Pick<ChatState, "messages" | "unsent">): Message[] {
  return messages.filter(({ id }) => unsent[id] === "");
}

/** The messages up to the last one of an input; of an input without messages, up to the last one of the user. */
export function historyOf(sent: readonly Message[], all: readonly Message[]): readonly Message[] {
  const last = sent.at(-1) ?? all.findLast(({ role }) => role === "user");
  const at = all.findIndex(({ id }) => id === last?.id);
  return at < 0 ? sent : all.slice(0, at + 1);
}

/** Those of the unsent messages that the server will not take. */
export function refused(unsent: ChatState["unsent"]): ChatState["unsent"] {
  return Object.fromEntries(Object.entries(unsent).filter(([, reason]) => reason !== ""));
}
