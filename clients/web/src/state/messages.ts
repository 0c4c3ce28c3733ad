/** Fold events into AG-UI messages, without changing what was there before. */

import type { AssistantMessage, Message, ToolCall, UserMessage } from "@ag-ui/core";

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

/** The calls of all assistant messages that have no result. */
export function openCalls(messages: readonly Message[]): ToolCall[] {
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

/** The user messages at the end that the stored conversation does not have. A run that was refused leaves them. */
export function unsent(messages: readonly Message[], stored: readonly Message[]): UserMessage[] {
  const end = messages.slice(messages.findLastIndex(({ role }) => role !== "user") + 1) as UserMessage[];
  return end.filter((message) => {
    const known = find(stored, message.id);
    return known?.role !== "user" || textOf(known) !== textOf(message);
  });
}

/** The stored conversation, continued by unsent messages. An edited message replaces everything from its place on. */
export function continued(stored: readonly Message[], rest: readonly UserMessage[]): readonly Message[] {
  const edited = stored.findIndex(({ id }) => id === rest[0]?.id);
  return [...(edited < 0 ? stored : stored.slice(0, edited)), ...rest];
}
