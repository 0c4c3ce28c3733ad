/** One tool call: its arguments, the question about it, the decision, its result and time, and its subagents. */

import type { ContentPart, ToolMessage } from "@ag-ui/core";
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { namedArguments } from "../forms/arguments";
import { asText } from "../forms/fields";
import type { Block } from "../state/blocks";
import { rootOf } from "../state/branches";
import type { CallPhase, ChatState, Progress } from "../state/types";
import type { Decision } from "./ApprovalCard";
import { Arguments } from "./Arguments";
import { ContentParts } from "./ContentParts";
import { duration, oneLine } from "./format";
import { CallQuestion, isOpenClientCall } from "./Interrupts";
import { Icon } from "./icons";
import { LongText } from "./LongText";

const PHASES: Record<Exclude<CallPhase, "decided">, string> = {
  streaming: "Writing arguments",
  running: "Running",
  waiting: "Waiting for you",
  done: "Done",
  denied: "Denied",
  failed: "Failed",
};

type CallBlock = Extract<Block, { kind: "call" }>;

interface ToolCallViewProps {
  block: CallBlock;
  state: ChatState;
  /** The subagents of the call. */
  children: ComponentChildren;
}

export function ToolCallView({ block, state, children }: ToolCallViewProps) {
  const { call, state: progress, result } = block;
  const [isUnfolded, setUnfolded] = useState(false);
  const { name, arguments: text } = call.function;
  const decision = result?.metadata?.decision as Decision | undefined;
  const asRun = decision?.editedArgs === undefined ? text : JSON.stringify(decision.editedArgs);
  const shown = phaseOf(block, state);
  const isActive = shown === "running" || shown === "streaming";
  return (
    <div class={`call call-${shown === "stopped" ? "failed" : shown}`} data-call={name}>
      <button type="button" class="call-head" aria-expanded={isUnfolded} onClick={() => setUnfolded(!isUnfolded)}>
        <Icon name="tool" />
        <span class="call-name">{name}</span>
        <span class="call-arguments">{shown === "waiting" ? "" : oneLine(asRun)}</span>
        <span class="call-phase">
          {isActive && <span class="spinner" />}
          {shown === "done" && progress.duration !== undefined
            ? duration(progress.duration)
            : label(shown, block, state)}
          {shown === "running" && progress.startedAt !== undefined && <Ticker since={progress.startedAt} />}
        </span>
        <Icon name="chevron" />
      </button>
      {shown === "running" && progress.progress !== undefined && <ProgressLine {...progress.progress} />}
      {decision !== undefined && <DecisionLine decision={decision} text={text} isLate={progress.isLate === true} />}
      {isUnfolded && (
        <div class="call-body">
          <Arguments text={text} label={asRun === text ? "Arguments" : "Arguments as asked"} />
          {asRun !== text && <Arguments text={asRun} label="Arguments as run" />}
          {result !== undefined && <Result result={result} isError={progress.phase === "failed"} />}
        </div>
      )}
      {!isUnfolded && shown === "failed" && result !== undefined && (
        <p class="call-error">{oneLine(result.error ?? textOf(result.content), 240)}</p>
      )}
      <CallQuestion call={call} state={state} />
      {children}
    </div>
  );
}

function ProgressLine({ progress, total, message }: Progress) {
  const text = message ?? (total === undefined ? String(progress) : `${progress} of ${total}`);
  return (
    <div class="call-progress">
      {total !== undefined && <progress value={progress} max={total} aria-label="Progress" />}
      <span>{oneLine(text, 240)}</span>
    </div>
  );
}

/** Seconds since a time, from the second one on. */
function Ticker({ since }: { since: number }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  const seconds = Math.floor((now - since) / 1000);
  return seconds < 1 ? null : <span>{seconds} s</span>;
}

type ShownPhase = CallPhase | "stopped";

function phaseOf({ call, state: progress, result }: CallBlock, state: ChatState): ShownPhase {
  const isOver = state.run.status !== "running";
  if (isOver && progress.phase === "running" && isOpenClientCall(call, state)) return "waiting";
  const isAsked = state.interrupts.some(({ toolCallId }) => toolCallId === call.id);
  const hasEnded = result !== undefined || isAsked || progress.phase === "decided";
  return isOver && !hasEnded && progress.phase !== "done" ? "stopped" : progress.phase;
}

function label(phase: ShownPhase, { state: progress }: CallBlock, { run, threadId }: ChatState): string {
  if (phase === "decided") return `${progress.decision}, sent when all are decided`;
  if (phase !== "stopped") return PHASES[phase];
  if (run.status === "cancelled" || run.status === "failed") return "Stopped";
  return progress.phase === "waiting" || rootOf(threadId) !== threadId ? "Not decided" : "No result"; // a branch asks anew
}

/** Who has decided about the call, and what was changed. An answer that came too late has changed nothing. */
function DecisionLine({ decision, text, isLate }: { decision: Decision; text: string; isLate: boolean }) {
  const { approved, editedArgs, reason } = decision;
  const [denied, allowed] = isLate
    ? [
        "Already decided by you in another tab or client: denied",
        "Already decided by you in another tab or client: approved",
      ]
    : ["Denied by you", "Approved by you"];
  if (!approved) return <p class="call-decision">{`${denied}${reason ? `: ${oneLine(reason, 240)}` : ""}`}</p>;
  if (editedArgs === undefined) return <p class="call-decision">{allowed}</p>;
  return (
    <p class="call-decision">
      {`${allowed}, edited`}
      {changes(namedArguments(text) ?? {}, editedArgs).map(([name, before, after]) => (
        <span key={name} class="call-change">
          {" "}
          {name}: <del>{before}</del> <ins>{after}</ins>
        </span>
      ))}
    </p>
  );
}

function changes(before: Record<string, unknown>, after: Record<string, unknown>): [string, string, string][] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const shown = (value: unknown) => (value === undefined ? "none" : oneLine(asText(value), 60));
  return names
    .map((name): [string, string, string] => [name, shown(before[name]), shown(after[name])])
    .filter(([, old, now]) => old !== now);
}

function textOf(content: string | ContentPart[]): string {
  if (typeof content === "string") return content;
  return content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join(" ");
}

function Result({ result, isError }: { result: ToolMessage; isError: boolean }) {
  const content = result.error ?? result.content;
  return (
    <>
      <p class="call-label">{isError ? "Error" : "Result"}</p>
      {typeof content === "string" ? (
        <LongText text={content} label="Result" limit={20_000} />
      ) : (
        <ContentParts parts={content} />
      )}
    </>
  );
}
