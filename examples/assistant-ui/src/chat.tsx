/** The list of threads, the messages of one, and the cards of its tool calls, made of assistant-ui's primitives. */

import {
  ActionBarPrimitive,
  AuiIf,
  ComposerPrimitive,
  ErrorPrimitive,
  MessagePrimitive,
  ThreadListItemPrimitive,
  ThreadListPrimitive,
  ThreadPrimitive,
  type ToolCallMessagePartProps,
  useAuiState,
} from "@assistant-ui/react";

export function Threads() {
  return (
    <ThreadListPrimitive.Root className="threads" aria-label="Threads">
      <ThreadListPrimitive.New>New chat</ThreadListPrimitive.New>
      <ThreadListPrimitive.Items components={{ ThreadListItem: ThreadItem }} />
    </ThreadListPrimitive.Root>
  );
}

function ThreadItem() {
  const title = useAuiState(({ threadListItem }) => threadListItem.title);
  return (
    <ThreadListItemPrimitive.Root className="thread">
      <ThreadListItemPrimitive.Trigger>
        <ThreadListItemPrimitive.Title fallback="No title yet" />
      </ThreadListItemPrimitive.Trigger>
      <ThreadListItemPrimitive.Delete aria-label={`Delete ${title ?? "thread"}`}>×</ThreadListItemPrimitive.Delete>
    </ThreadListItemPrimitive.Root>
  );
}

export function Chat() {
  return (
    <ThreadPrimitive.Root className="chat" role="main">
      <ThreadPrimitive.Viewport className="messages">
        <ThreadPrimitive.Messages components={{ UserMessage, AssistantMessage }} />
      </ThreadPrimitive.Viewport>
      <ComposerPrimitive.Root className="composer">
        <ComposerPrimitive.Input aria-label="Message" placeholder="Type a message…" />
        <AuiIf condition={({ thread }) => !thread.isRunning}>
          <ComposerPrimitive.Send>Send</ComposerPrimitive.Send>
        </AuiIf>
        <AuiIf condition={({ thread }) => thread.isRunning}>
          <ComposerPrimitive.Cancel>Stop</ComposerPrimitive.Cancel>
        </AuiIf>
      </ComposerPrimitive.Root>
    </ThreadPrimitive.Root>
  );
}

function UserMessage() {
  return (
    <MessagePrimitive.Root className="user">
      <MessagePrimitive.Parts />
    </MessagePrimitive.Root>
  );
}

function AssistantMessage() {
  return (
    <MessagePrimitive.Root>
      <MessagePrimitive.Parts components={{ tools: { Fallback: ToolCard } }} />
      <MessagePrimitive.Error>
        <ErrorPrimitive.Root className="card">
          <ErrorPrimitive.Message />
        </ErrorPrimitive.Root>
      </MessagePrimitive.Error>
      <ActionBarPrimitive.Root hideWhenRunning className="rating">
        <ActionBarPrimitive.FeedbackPositive aria-label="Good answer">Good</ActionBarPrimitive.FeedbackPositive>
        <ActionBarPrimitive.FeedbackNegative aria-label="Bad answer">Bad</ActionBarPrimitive.FeedbackNegative>
      </ActionBarPrimitive.Root>
    </MessagePrimitive.Root>
  );
}

/** A tool call: its name, its arguments, its result, and the question whether it may run, if the server asks. */
function ToolCard({ toolName, argsText, result, approval, respondToApproval }: ToolCallMessagePartProps) {
  return (
    <div className="card" role="group" aria-label={`Tool ${toolName}`}>
      <b>{toolName}</b> <code>{argsText}</code>
      <p>{result === undefined ? "…" : text(result)}</p>
      {approval && approval.approved === undefined && (
        <div role="group" aria-label="Approval">
          <button type="button" onClick={() => respondToApproval({ approved: true })}>
            Approve
          </button>
          <button type="button" onClick={() => respondToApproval({ approved: false })}>
            Deny
          </button>
        </div>
      )}
    </div>
  );
}

function text(result: unknown): string {
  return typeof result === "string" ? result : JSON.stringify(result);
}
