/** Runs of this thread, to be played again. */

import { useEffect, useMemo, useState } from "preact/hooks";
import { chat } from "../chat";
import { type RunFacts, runsOf } from "../connection/api";
import { closeReplay, openReplay, pause, play, type Replay, replay, seek } from "../replay";
import { textOf } from "../state/messages";
import type { ChatState } from "../state/types";
import { useStore } from "../store";
import { EventRows } from "./EventRows";
import { rowsOf } from "./events";
import { count, duration, shortened } from "./format";
import { IconButton } from "./icons";

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
  const { status } = state.run;
  const [runs, setRuns] = useState<readonly RunFacts[]>([]);
  const [error, setError] = useState("");
  const fail = (failure: unknown) => setError(failure instanceof Error ? failure.message : String(failure));
  useEffect(() => {
    let isCurrent = true;
    const load = async () => {
      const found = await runsOf(threadId);
      if (isCurrent) setRuns(found);
    };
    setError("");
    load().catch(fail);
    return () => {
      isCurrent = false;
    };
  }, [status]);
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
              <span class="run-text">{questionOf(run, state)}</span>
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

/** What the user had said before a run, if the page has it. */
function questionOf(run: RunFacts, { messages, runs }: ChatState): string {
  const at = messages.findIndex(({ id }) => runs[id] === run.runId);
  const asked = messages.slice(0, Math.max(0, at)).findLast((message) => message.role === "user");
  return asked === undefined ? "" : shortened(textOf(asked), 60);
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
