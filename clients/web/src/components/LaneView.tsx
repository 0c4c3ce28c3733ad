/** A subagent: a lane of its own with everything that it does. */

import { useState } from "preact/hooks";
import type { LaneBlock } from "../state/blocks";
import type { ChatState } from "../state/types";
import { Icon } from "./icons";
import { Blocks } from "./Messages";

const STATUS = { running: "Working", finished: "Finished", suspended: "Waiting for you", failed: "Failed" };

export function LaneView({ block, state }: { block: LaneBlock; state: ChatState }) {
  const { lane, blocks } = block;
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
          <Blocks blocks={blocks} state={state} />
          {lane.error !== undefined && <p class="call-error">{lane.error}</p>}
        </div>
      )}
    </section>
  );
}
