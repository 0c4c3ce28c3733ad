/**
 * The spans of a turn, from the frames that have arrived: model calls, tools, subagents, steps, and waits for the user.
 *
 * Times are those at which the page got the frames, or those of a stored run. A span that has no end yet lasts until now.
 */

import type { RunAgentInput, TokenUsage } from "@ag-ui/core";
import type { Frame } from "../connection/frames";
import { costOf, type Price } from "./cost";
import { textOf } from "./messages";

export type SpanKind = "run" | "model" | "tool" | "subagent" | "step" | "wait";

export interface Span {
  kind: SpanKind;
  name: string;
  /** Unix time in milliseconds. */
  start: number;
  end?: number;
  depth: number;
  detail: string;
  /** False if the time is not known. The span then only has its place among the others. */
  isTimed: boolean;
}

/** What the user asked for, and the frames of the runs that answered it. */
export interface Turn {
  title: string;
  frames: readonly Frame[];
}

interface TraceEvent {
  type: string;
  messageId?: string;
  toolCallId?: string;
  toolCallName?: string;
  subagentRunId?: string;
  parentSubagentRunId?: string;
  parentToolCallId?: string;
  name?: string;
  stepName?: string;
  code?: string;
  outcome?: { type: string };
  usage?: TokenUsage[];
  metadata?: { failed?: boolean; denied?: boolean; durationMs?: number };
}

/** Frames of a thread, by the messages of the user that began them. Answers to questions belong to the same turn. */
export function turnsOf(frames: readonly Frame[], threadId: string): Turn[] {
  const turns: { title: string; frames: Frame[] }[] = [];
  const runs = new Map<string, Frame[]>();
  for (const frame of frames) {
    if (frame.direction === "out") {
      const request = requestOf(frame);
      if (request.threadId !== threadId) continue;
      if (request.text !== undefined || turns.length === 0) turns.push({ title: request.text ?? "", frames: [] });
      runs.set(frame.runId, turns.at(-1)!.frames);
    }
    runs.get(frame.runId)?.push(frame);
  }
  return turns;
}

/** The thread of an input that was sent, and the text of its last message of the user; undefined if it has none. */
export function requestOf(frame: Frame): { threadId: string; text?: string } {
  const { threadId, messages } = parsed(frame) as RunAgentInput;
  const said = messages.findLast((message) => message.role === "user");
  return said === undefined ? { threadId } : { threadId, text: textOf(said) || "Files" };
}

/**
 * Return the spans of a turn, in the order in which they began. Runs have their cost, where models have a price.
 *
 * @param isStored true for frames of stored events, which have times of runs, waits and measured tools only
 */
export function spansOf(
  frames: readonly Frame[],
  prices: Readonly<Record<string, Price>> = {},
  isStored = false,
): Span[] {
  const trace = new Trace(prices, isStored);
  for (const frame of frames) {
    if (frame.direction === "out") trace.begin(frame.at);
    else if (isInTrace(frame.type)) trace.add(parsed(frame) as TraceEvent, frame.at);
  }
  const isRun = (span: Span) => Number(span.kind === "run");
  return trace.spans.sort((one, other) => one.start - other.start || isRun(other) - isRun(one));
}

/** Events that begin or end a span. Others may have megabytes, and are not parsed. */
const SPANS = /^(?:RUN|STEP|SUBAGENT)_|^(?:TEXT|REASONING)_MESSAGE_(?:START|END)$|^TOOL_CALL_(?:START|END|RESULT)$/;

/** True for events that begin or end a span. */
export function isInTrace(type: string): boolean {
  return SPANS.test(type);
}

const known = new WeakMap<Frame, unknown>();

/** Parse a frame once, because a trace is drawn again with each new frame. */
function parsed(frame: Frame): unknown {
  if (!known.has(frame)) known.set(frame, JSON.parse(frame.text));
  return known.get(frame);
}

const ROOT = "";
const WAITS = "waits for a decision";

class Trace {
  readonly spans: Span[] = [];

  constructor(
    private readonly prices: Readonly<Record<string, Price>>,
    private readonly isStored: boolean,
  ) {}

  private run: Span | undefined;
  private wait: Span | undefined;
  private readonly tools = new Map<string, Span>();
  /** Tools that have waited for a decision. */
  private readonly decided = new Set<Span>();
  private readonly lanes = new Map<string, Span>();
  private readonly steps = new Map<string, Span>();
  /** The open model call of each lane, and the time from which the next one counts. */
  private readonly models = new Map<string, Span>();
  private readonly idleSince = new Map<string, number>();

  begin(at: number): void {
    if (this.wait !== undefined) this.wait.end = at;
    this.wait = undefined;
    this.run = this.open("run", "run", at, 0);
    this.idleSince.set(ROOT, at);
    for (const tool of this.tools.values()) if (tool.detail === WAITS) this.resume(tool, at);
  }

  /** A tool runs after the decision, so the wait is not a part of its time. */
  private resume(tool: Span, at: number): void {
    tool.start = at;
    tool.detail = "";
    this.decided.add(tool);
  }

  add(event: TraceEvent, at: number): void {
    const lane = event.subagentRunId ?? ROOT;
    switch (event.type) {
      case "TEXT_MESSAGE_START":
      case "REASONING_MESSAGE_START":
        this.say(lane, at);
        break;
      case "TEXT_MESSAGE_END":
      case "REASONING_MESSAGE_END":
        this.pause(lane, at);
        break;
      case "TOOL_CALL_START":
        this.say(lane, at);
        this.tools.set(event.toolCallId!, this.open("tool", event.toolCallName!, at, this.depthOf(lane)));
        break;
      case "TOOL_CALL_END": {
        this.pause(lane, at);
        const tool = this.tools.get(event.toolCallId!);
        if (tool !== undefined) tool.start = at; // it runs once its arguments are complete
        break;
      }
      case "TOOL_CALL_RESULT":
        this.answer(event, lane, at);
        break;
      case "SUBAGENT_STARTED": {
        const depth = this.depthOf(event.parentSubagentRunId ?? ROOT) + (event.parentToolCallId === undefined ? 0 : 1);
        this.lanes.set(lane, this.open("subagent", event.name ?? "subagent", at, depth));
        this.idleSince.set(lane, at);
        break;
      }
      case "SUBAGENT_FINISHED":
      case "SUBAGENT_ERROR":
        this.close(this.lanes.get(lane), at, event.type === "SUBAGENT_ERROR" ? "failed" : "");
        break;
      case "STEP_STARTED":
        this.steps.set(event.stepName!, this.open("step", event.stepName!, at, this.depthOf(lane)));
        break;
      case "STEP_FINISHED":
        this.close(this.steps.get(event.stepName!), at);
        break;
      case "RUN_FINISHED":
      case "RUN_ERROR":
        this.end(event, at);
        break;
    }
  }

  private open(kind: SpanKind, name: string, start: number, depth: number): Span {
    const isTimed = !this.isStored || kind === "run" || kind === "wait";
    const span: Span = { kind, name, start, depth, detail: "", isTimed };
    this.spans.push(span);
    return span;
  }

  private close(span: Span | undefined, at: number, detail = ""): void {
    if (span === undefined) return;
    span.end = at;
    if (detail !== "") span.detail = detail;
  }

  private depthOf(lane: string): number {
    return lane === ROOT ? 1 : (this.lanes.get(lane)?.depth ?? 0) + 1;
  }

  /** The model of a lane says something: its call began when the lane had nothing else to do. */
  private say(lane: string, at: number): void {
    const open = this.models.get(lane);
    const model = open ?? this.open("model", "model", this.idleSince.get(lane) ?? at, this.depthOf(lane));
    if (open === undefined && model.isTimed) model.detail = `first token after ${at - model.start} ms`;
    delete model.end;
    this.models.set(lane, model);
  }

  private pause(lane: string, at: number): void {
    this.close(this.models.get(lane), at);
  }

  private answer({ toolCallId, metadata }: TraceEvent, lane: string, at: number): void {
    const tool = this.tools.get(toolCallId!);
    this.close(tool, at, metadata?.denied ? "denied" : metadata?.failed ? "failed" : "");
    const measured = metadata?.durationMs;
    if (tool !== undefined && measured !== undefined) {
      const isExact = this.decided.has(tool) || !tool.isTimed;
      tool.start = isExact ? at - measured : Math.min(tool.start, at - measured);
      tool.isTimed = true;
    }
    this.models.delete(lane);
    this.idleSince.set(lane, at);
  }

  private end({ type, outcome, usage, code }: TraceEvent, at: number): void {
    const ended = type === "RUN_ERROR" ? `failed: ${code ?? "ERROR"}` : (outcome?.type ?? "success");
    const facts = [ended, tokensOf(usage ?? []), costOf(usage ?? [], this.prices)];
    this.close(this.run, at, facts.filter(Boolean).join(" · "));
    for (const span of this.models.values()) span.end ??= at;
    this.models.clear();
    const waiting = [...this.tools.values()].filter((tool) => tool.end === undefined);
    if (outcome?.type !== "interrupt") return;
    this.wait = this.open("wait", "waits for you", at, 0);
    for (const tool of waiting) tool.detail = WAITS;
  }
}

/** The tokens of model calls, for people. */
export function tokensOf(usage: readonly TokenUsage[]): string {
  if (usage.length === 0) return "";
  const sum = (name: "inputTokens" | "outputTokens") => usage.reduce((total, each) => total + (each[name] ?? 0), 0);
  return `${sum("inputTokens").toLocaleString("en")} tokens in, ${sum("outputTokens").toLocaleString("en")} out`;
}
