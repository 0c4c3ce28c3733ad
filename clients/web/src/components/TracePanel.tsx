/** A waterfall of one turn: when each model call, tool, subagent and wait began, and how long it took. */

import { useEffect, useState } from "preact/hooks";
import { chat, frames, isRunning } from "../chat";
import { capabilities, customOf } from "../server";
import { type Span, spansOf, turnsOf } from "../state/trace";
import { useStore } from "../store";
import { duration, shortened } from "./format";

const MOST_SPANS = 300;

export function TracePanel() {
  const threadId = useStore(chat, (state) => state.threadId);
  const isOpen = useStore(chat, (state) => isRunning(state) || state.interrupts.length > 0);
  const { prices } = customOf(useStore(capabilities));
  const [, render] = useState(0);
  const [chosen, setChosen] = useState<number | null>(null);
  useEffect(() => frames.subscribe(() => render((count) => count + 1)), []);
  useEffect(() => setChosen(null), [threadId]);
  const turns = turnsOf(frames.all, threadId);
  const turn = turns[chosen ?? turns.length - 1];
  if (turn === undefined)
    return <p class="panel-empty">The runs of this thread since the page was loaded are shown here.</p>;
  return (
    <div class="facts">
      <label class="field">
        <span class="visually-hidden">Turn</span>
        <select
          value={String(chosen ?? turns.length - 1)}
          onChange={(event) => {
            const at = Number(event.currentTarget.value);
            setChosen(at === turns.length - 1 ? null : at);
          }}
        >
          {turns.map(({ title }, index) => (
            <option key={index} value={String(index)}>
              {`${index + 1}. ${shortened(title, 50)}`}
            </option>
          ))}
        </select>
      </label>
      <Waterfall spans={spansOf(turn.frames, prices)} isOpen={isOpen && turn === turns.at(-1)} />
    </div>
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
            <span class="span-name">{span.name}</span>
            <span class="span-time">{`${duration(took)}${span.end === undefined ? "…" : ""}`}</span>
            <svg class="span-bar" viewBox="0 0 1000 8" preserveAspectRatio="none" aria-hidden="true">
              <rect x={((span.start - start) / length) * 1000} width={Math.max(4, (took / length) * 1000)} height="8" />
            </svg>
            {span.detail !== "" && <small>{span.detail}</small>}
          </li>
        );
      })}
    </ol>
  );
}
