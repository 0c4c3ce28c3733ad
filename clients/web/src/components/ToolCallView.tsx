/** One tool call: its arguments while they stream, its result, how long it took, and the subagents it began. */

import type { ContentPart } from "@ag-ui/core";
import { useState } from "preact/hooks";
import { isClientTool } from "../client-tools";
import type { Block } from "../state/blocks";
import type { CallPhase, ChatState } from "../state/types";
import { ContentParts } from "./ContentParts";
import { duration, oneLine } from "./format";
import { Icon } from "./icons";
import { LaneView } from "./LaneView";
import { LongText } from "./LongText";

const PHASES: Record<CallPhase, string> = {
  streaming: "Writing arguments",
  running: "Running",
  waiting: "Waiting for you",
  done: "Done",
  failed: "Failed",
};

type CallBlock = Extract<Block, { kind: "call" }>;

export function ToolCallView({ block, state }: { block: CallBlock; state: ChatState }) {
  const { call, state: progress, result, lanes } = block;
  const [isUnfolded, setUnfolded] = useState(false);
  const { name, arguments: text } = call.function;
  const isAsked = progress.phase === "running" && isClientTool(name) && state.run.status === "finished";
  const shown = isAsked ? "waiting" : progress.phase;
  const isStopped = progress.phase !== "done" && result === undefined && state.run.status === "cancelled";
  const phase = isStopped ? "Stopped" : PHASES[shown];
  const isActive = !isStopped && (shown === "running" || shown === "streaming");
  return (
    <div class={`call call-${isStopped ? "failed" : shown}`} data-call={name}>
      <button type="button" class="call-head" aria-expanded={isUnfolded} onClick={() => setUnfolded(!isUnfolded)}>
        <Icon name="tool" />
        <span class="call-name">{name}</span>
        <span class="call-arguments">{oneLine(text)}</span>
        <span class="call-phase">
          {isActive && <span class="spinner" />}
          {progress.phase === "done" && progress.duration !== undefined ? duration(progress.duration) : phase}
        </span>
        <Icon name="chevron" />
      </button>
      {isUnfolded && (
        <div class="call-body">
          <p class="call-label">Arguments</p>
          <LongText text={text || "none"} label="Arguments" limit={20_000} />
          {result !== undefined && (
            <>
              <p class="call-label">{progress.phase === "failed" ? "Error" : "Result"}</p>
              <Result content={result.error ?? result.content} />
            </>
          )}
        </div>
      )}
      {!isUnfolded && progress.phase === "failed" && result !== undefined && (
        <p class="call-error">{oneLine(result.error ?? textOf(result.content), 240)}</p>
      )}
      {lanes.map((lane) => (
        <LaneView key={lane.key} block={lane} state={state} />
      ))}
    </div>
  );
}

function textOf(content: string | ContentPart[]): string {
  if (typeof content === "string") return content;
  return content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join(" ");
}

function Result({ content }: { content: string | ContentPart[] }) {
  if (typeof content !== "string") return <ContentParts parts={content} />;
  return <LongText text={content} label="Result" limit={20_000} />;
}
