/** The chat as data: AG-UI messages, and the state of calls, subagents and steps. */

import type { Interrupt, Message, ResumeEntry, TokenUsage } from "@ag-ui/core";

/** Phase of a tool call. A `waiting` call needs a decision of the user; a `decided` one has it, and it is not sent yet. */
export type CallPhase = "streaming" | "running" | "waiting" | "decided" | "done" | "denied" | "failed";

/** How far a running call has come, as its tool reports it. */
export interface Progress {
  progress: number;
  total?: number;
  message?: string;
}

export interface CallState {
  phase: CallPhase;
  progress?: Progress;
  startedAt?: number;
  /** Milliseconds, as the server measured them, or as the page saw them. */
  duration?: number;
  /** What the user has decided, if it is not sent yet. */
  decision?: "Allowed" | "Denied" | "Answered";
  /** True if it was decided before the answer of this page came. */
  isLate?: true;
}

/** One subagent invocation. */
export interface Lane {
  id: string;
  name: string;
  description?: string;
  parentToolCallId?: string;
  parentId?: string;
  status: "running" | "finished" | "suspended" | "failed";
  error?: string;
}

export interface Step {
  name: string;
  status: "running" | "finished";
  subagentRunId?: string;
}

export interface ContextUse {
  size: number;
  total: number;
  system: number;
  tools: number;
  history: number;
  run: number;
}

export interface SharedState {
  value: unknown;
  /** JSON pointers of the values that the last event changed. */
  changed: readonly string[];
}

export interface RunFailure {
  code: string;
  message: string;
  retryable: boolean;
  /** Identifies the request in the server's log. */
  requestId?: string;
}

/** End of a run that has no complete answer. */
export interface RunEnding {
  status: "cancelled" | "failed";
  /** True if the user of this page has stopped it. Others may stop a run, and the server does when nobody reads it. */
  isByUser?: true;
  failure?: RunFailure;
}

export interface RunState {
  id?: string;
  status: "idle" | "running" | "finished" | "cancelled" | "interrupted" | "failed";
  startedAt?: number;
  endedAt?: number;
  failure?: RunFailure;
  isByUser?: true;
}

/** A line of its own in the conversation: history was compacted, a tool source is down, an answer was cut off. */
export interface Notice {
  id: string;
  afterMessageId: string | null;
  text: string;
  /** What the user has answered, if the line is a question. */
  answer?: string;
}

export interface ChatState {
  threadId: string;
  messages: readonly Message[];
  /** Ids of messages that are still being written. */
  open: Readonly<Record<string, true>>;
  /** When a reasoning message began and ended, by its id. */
  times: Readonly<Record<string, { start: number; end?: number }>>;
  calls: Readonly<Record<string, CallState>>;
  lanes: Readonly<Record<string, Lane>>;
  steps: readonly Step[];
  shared: SharedState;
  notices: readonly Notice[];
  context?: ContextUse;
  usage: readonly TokenUsage[];
  run: RunState;
  /** The last run that the user has stopped on this page. */
  stoppedRunId?: string;
  /** Questions that the user has not answered. */
  interrupts: readonly Interrupt[];
  /** Answers that are sent when all questions have one. */
  answers: readonly ResumeEntry[];
  pendingCalls: readonly string[];
  /** Message id to the run that made it. */
  runs: Readonly<Record<string, string>>;
  /** Ends of the runs that were stopped or have failed, by run id. */
  endings: Readonly<Record<string, RunEnding>>;
  /** Messages that the server does not have: their ids, and why it will not take them, or an empty text. */
  unsent: Readonly<Record<string, string>>;
  /** Where the page of messages before the first one begins; undefined if there are no earlier messages. */
  earlier?: string | undefined;
}

export function emptyChat(threadId: string): ChatState {
  return {
    threadId,
    messages: [],
    open: {},
    times: {},
    calls: {},
    lanes: {},
    steps: [],
    shared: { value: undefined, changed: [] },
    notices: [],
    usage: [],
    run: { status: "idle" },
    interrupts: [],
    answers: [],
    pendingCalls: [],
    runs: {},
    endings: {},
    unsent: {},
  };
}
