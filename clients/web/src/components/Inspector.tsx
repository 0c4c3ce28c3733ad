/** Panels for developers: events, state, the run, the server. */

import { useLayoutEffect, useState } from "preact/hooks";
import { read, write } from "../config";
import { Store, useStore } from "../store";
import { EventLog } from "./EventLog";
import { IconButton } from "./icons";
import { Replays } from "./Replays";
import { RunPanel } from "./RunPanel";
import { ServerPanel } from "./ServerPanel";
import { StatePanel } from "./StatePanel";
import { TracePanel } from "./TracePanel";

const TABS = {
  Events: EventLog,
  Trace: TracePanel,
  State: StatePanel,
  Run: RunPanel,
  Replay: Replays,
  Server: ServerPanel,
};

type TabName = keyof typeof TABS;
const NAMES = Object.keys(TABS) as TabName[];

const WIDTH_KEY = "agui.inspector.width";
const tab = new Store<TabName>("Events");

const WIDTH = 432;
const NARROWEST = 280;
const STEP = 24;

/** The left edge, by which the inspector is made wider or narrower. */
function Edge() {
  const [width, setWidth] = useState(Number(read(WIDTH_KEY)) || WIDTH);
  const resize = (next: number) => {
    const bounded = Math.round(Math.max(NARROWEST, Math.min(next, innerWidth * 0.6)));
    write(WIDTH_KEY, String(bounded));
    setWidth(bounded);
  };
  useLayoutEffect(() => {
    document.querySelector<HTMLElement>(".app")?.style.setProperty("--inspector", `${width}px`);
  }, [width]);
  return (
    <div
      class="inspector-edge"
      role="separator"
      aria-orientation="vertical"
      aria-label="Width of the inspector"
      aria-valuenow={width}
      aria-valuemin={NARROWEST}
      aria-valuemax={innerWidth}
      tabIndex={0}
      onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
      onPointerMove={(event) => {
        if (event.currentTarget.hasPointerCapture(event.pointerId)) resize(innerWidth - event.clientX);
      }}
      onKeyDown={(event) => {
        const step = { ArrowLeft: STEP, ArrowRight: -STEP }[event.key];
        if (step !== undefined) resize(width + step);
      }}
    />
  );
}

export function Inspector({ isInert, onClose }: { isInert: boolean; onClose: () => void }) {
  const current = useStore(tab);
  const Panel = TABS[current];
  const move = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    const next = NAMES.at((NAMES.indexOf(current) + step) % NAMES.length)!;
    tab.set(next);
    document.getElementById(`tab-${next}`)?.focus();
  };
  return (
    <aside class="inspector" aria-label="Inspector" inert={isInert}>
      <Edge />
      <div class="inspector-head">
        <div class="tabs" role="tablist" aria-label="Inspector" onKeyDown={move}>
          {NAMES.map((name) => (
            <button
              key={name}
              id={`tab-${name}`}
              type="button"
              role="tab"
              aria-selected={name === current}
              aria-controls="inspector-panel"
              tabIndex={name === current ? 0 : -1}
              onClick={() => tab.set(name)}
            >
              {name}
            </button>
          ))}
        </div>
        <IconButton icon="close" label="Close inspector" onClick={onClose} />
      </div>
      <div class="panel" id="inspector-panel" role="tabpanel" aria-labelledby={`tab-${current}`}>
        <Panel />
      </div>
    </aside>
  );
}
