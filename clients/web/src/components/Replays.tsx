/** Runs of this thread, to be played again. */

import { useMemo } from "preact/hooks";
import { chat } from "../chat";
import { closeReplay, openReplay, pause, play, type Replay, replay, seek } from "../replay";
import { questionOf } from "../state/stored-trace";
import { useStore } from "../store";
import { EventRows } from "./EventRows";
import { rowsOf } from "./events";
import { count, duration, shortened } from "./format";
import { IconButton } from "./icons";
import { useRuns } from "./runs";

export function Replays() {
  const threadId = useStore(chat, (state) => state.threadId);
  const shown = useStore(replay);
  return shown === null ? <RunList key={threadId} threadId={threadId} /> : <ReplayEvents shown={shown} />;
}

/** The events of the run that is played, with a mark at the current one. A row leads there. */
function ReplayEvents({ shown: { frames, at } }: { shown: Replay }) {
  const rows = useMemo(() => rowsOf(frames, false), [frames]);
  const current = rows.findLast(({ frame }) => frame.number <= at)?.frame ?? null;
  return (
    <div class="event-log">
      <EventRows
        rows={rows}
        open={current}
        isFollowing
        onOpen={({ frame, count: folded }) => {
          pause();
          seek(frame.number + folded - 1);
        }}
      />
      <p class="panel-note">
        {count(at)} of {count(frames.length)} events
      </p>
    </div>
  );
}

function RunList({ threadId }: { threadId: string }) {
  const state = useStore(chat);
  const { runs, error, fail } = useRuns(threadId);
  return (
    <div class="facts">
      {error !== "" && (
        <p class="field-error" role="alert">
          {error}
        </p>
      )}
      {runs.length === 0 && <p class="panel-empty">The server has no runs of this thread.</p>}
      <ul class="runs" aria-label="Runs">
        {runs.map((run) => (
          <li key={run.runId}>
            <button type="button" class="run-row" onClick={() => openReplay(threadId, run.runId).catch(fail)}>
              <span class="run-text">{shortened(questionOf(run, state))}</span>
              <span>{new Date(run.startedAt * 1000).toLocaleTimeString()}</span>
              <span>{run.status}</span>
              <span>{count(run.events)} events</span>
              <span>{duration(run.seconds * 1000)}</span>
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** The controls of a replay, in the place of the composer. */
export function ReplayBar() {
  const shown = useStore(replay);
  if (shown === null) return null;
  return (
    <div class="replay-bar" role="group" aria-label="Replay">
      <IconButton
        icon={shown.isPlaying ? "pause" : "play"}
        label={shown.isPlaying ? "Pause" : "Play"}
        onClick={() => (shown.isPlaying ? pause() : play())}
      />
      <input
        type="range"
        min={0}
        max={shown.events.length}
        value={shown.at}
        aria-label="Event"
        onInput={(event) => {
          pause();
          seek(Number(event.currentTarget.value));
        }}
      />
      <span class="replay-count">
        {shown.at} / {shown.events.length}
        <small>{shown.events[shown.at - 1]?.type ?? "the beginning"}</small>
      </span>
      <button type="button" class="button" onClick={closeReplay}>
        Close replay
      </button>
    </div>
  );
}
