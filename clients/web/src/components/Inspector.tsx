/** Panels for developers: events, state, the run, the server. */

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

const tab = new Store<TabName>("Events");

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
