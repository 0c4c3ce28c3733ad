/** A subagent: a lane of its own with everything that it does. */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Lane } from "../state/types";
import { Icon } from "./icons";

const STATUS = { running: "Working", finished: "Finished", suspended: "Waiting for you", failed: "Failed" };

export function LaneView({ lane, children }: { lane: Lane; children: ComponentChildren }) {
  const [isUnfolded, setUnfolded] = useState(true);
  return (
    <section class={`lane lane-${lane.status}`} aria-label={`Subagent ${lane.name}`}>
      <button type="button" class="lane-head" aria-expanded={isUnfolded} onClick={() => setUnfolded(!isUnfolded)}>
        <Icon name="agent" />
        <span class="lane-name">{lane.name}</span>
        <span class="lane-status">
          {lane.status === "running" && <span class="spinner" />}
          {STATUS[lane.status]}
        </span>
        <Icon name="chevron" />
      </button>
      {isUnfolded && (
        <div class="lane-body">
          {children}
          {lane.error !== undefined && <p class="call-error">{lane.error}</p>}
        </div>
      )}
    </section>
  );
}
