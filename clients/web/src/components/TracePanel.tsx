/** A waterfall of one turn: when each model call, tool, subagent and wait began, and how long it took. */

import { useEffect, useState } from "preact/hooks";
import { chat, frames, isRunning } from "../chat";
import { storedFrames } from "../connection/api";
import type { Frame } from "../connection/frames";
import { capabilities, customOf } from "../server";
import { type StoredTurn, storedFramesOf, storedTurns } from "../state/stored-trace";
import { type Span, type SpanKind, spansOf, turnsOf } from "../state/trace";
import { useStore } from "../store";
import { duration, shortened } from "./format";
import { useRuns } from "./runs";

const MOST_SPANS = 300;
/** Kinds that are named, because the name of a span does not say them: a tool and its subagent often have one name. */
const KINDS: ReadonlySet<SpanKind> = new Set(["tool", "subagent", "step"]);

export function TracePanel() {
  const threadId = useStore(chat, (state) => state.threadId);
  return <ThreadTrace key={threadId} threadId={threadId} />;
}

/** The turns that the server has, and after them those that this page has received. */
function ThreadTrace({ threadId }: { threadId: string }) {
  const state = useStore(chat);
  const isOpen = isRunning(state) || state.interrupts.length > 0;
  const { runs, error } = useRuns(threadId);
  const { prices } = customOf(useStore(capabilities));
  const [, render] = useState(0);
  const [chosen, setChosen] = useState<string | null>(null);
  useEffect(() => frames.subscribe(() => render((count) => count + 1)), []);
  const received = new Set(frames.all.map(({ runId }) => runId));
  const isStored = ({ runId, status }: { runId: string; status: string }) =>
    !received.has(runId) && status !== "running" && status !== "queued";
  const turns = [
    ...storedTurns(runs.filter(isStored), state).map((stored) => ({ key: stored.runs[0]!.runId, stored })),
    ...turnsOf(frames.all, threadId).map((live) => ({ key: live.frames[0]!.runId, live })),
  ];
  const last = turns.at(-1);
  if (last === undefined) return <p class="panel-empty">{error || "The server has no runs of this thread."}</p>;
  const shown = turns.find(({ key }) => key === chosen) ?? last;
  return (
    <div class="facts">
      <label class="field">
        <span class="visually-hidden">Turn</span>
        <select
          value={shown.key}
          onChange={({ currentTarget: { value } }) => setChosen(value === last.key ? null : value)}
        >
          {turns.map((turn, index) => (
            <option key={turn.key} value={turn.key}>
              {`${index + 1}. ${shortened(("live" in turn ? turn.live : turn.stored).title || "Continued", 50)}`}
            </option>
          ))}
        </select>
      </label>
      {"live" in shown ? (
        <Waterfall spans={spansOf(shown.live.frames, prices)} isOpen={isOpen && shown === last} />
      ) : (
        <StoredWaterfall key={shown.key} threadId={threadId} turn={shown.stored} isOpen={isOpen && shown === last} />
      )}
    </div>
  );
}

/** The trace of a turn whose events the server has. */
function StoredWaterfall({ threadId, turn, isOpen }: { threadId: string; turn: StoredTurn; isOpen: boolean }) {
  const { prices } = customOf(useStore(capabilities));
  const [loaded, setLoaded] = useState<readonly Frame[] | null>(null);
  const [error, setError] = useState("");
  useEffect(() => {
    Promise.all(turn.runs.map(async (run) => storedFramesOf(run, await storedFrames(threadId, run.runId)))).then(
      (found) => setLoaded(found.flat()),
      (failure) => setError(failure instanceof Error ? failure.message : String(failure)),
    );
  }, [turn.runs.length]);
  if (error !== "") {
    return (
      <p class="field-error" role="alert">
        {error}
      </p>
    );
  }
  if (loaded === null) return null;
  return (
    <>
      <Waterfall spans={spansOf(loaded, prices, true)} isOpen={isOpen} />
      <p class="panel-note">The server keeps the times of runs and of its tools, not those of model calls.</p>
    </>
  );
}

function Waterfall({ spans, isOpen }: { spans: readonly Span[]; isOpen: boolean }) {
  const start = spans[0]?.start ?? 0;
  const last = Math.max(...spans.map(({ start, end }) => end ?? start), isOpen ? Date.now() : 0);
  const length = Math.max(1, last - start);
  return (
    <ol class="waterfall" aria-label="Trace">
      {spans.slice(0, MOST_SPANS).map((span, index) => {
        const took = (span.end ?? last) - span.start;
        return (
          <li key={index} class={`span span-${span.kind}`} style={{ "--depth": span.depth }}>
            <span class="span-name">
              {KINDS.has(span.kind) && <span class="span-kind">{`${span.kind} `}</span>}
              {span.name}
            </span>
            {span.isTimed && (
              <>
                <span class="span-time">{`${duration(took)}${span.end === undefined ? "…" : ""}`}</span>
                <svg class="span-bar" viewBox="0 0 1000 8" preserveAspectRatio="none" aria-hidden="true">
                  <rect
                    x={((span.start - start) / length) * 1000}
                    width={Math.max(4, (took / length) * 1000)}
                    height="8"
                  />
                </svg>
              </>
            )}
            {span.detail !== "" && <small>{span.detail}</small>}
          </li>
        );
      })}
    </ol>
  );
}
