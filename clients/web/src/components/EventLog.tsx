/** All frames of the connection, in a list that renders only visible rows. */

import { useEffect, useMemo, useState } from "preact/hooks";
import { chat, frames, lastInput } from "../chat";
import { endpoint, SESSION_HEADER, session } from "../config";
import type { Frame } from "../connection/frames";
import { historyOf } from "../state/messages";
import { useStore } from "../store";
import { token } from "../token";
import { copyText, download } from "./copy";
import { EventRows } from "./EventRows";
import { matching, type Row, rowsOf } from "./events";
import { count } from "./format";
import { IconButton } from "./icons";
import { LongText } from "./LongText";

export function EventLog() {
  const [, render] = useState(0);
  const [filter, setFilter] = useState("");
  const [isRaw, setRaw] = useState(false);
  const [open, setOpen] = useState<Frame | null>(null);
  const canCopy = useStore(lastInput, (input) => input !== null);
  useEffect(() => frames.subscribe(() => render((count) => count + 1)), []);
  const all = frames.all;
  const found = useMemo(() => matching(rowsOf(all, isRaw), filter), [all, all.length, filter, isRaw]);
  return (
    <div class="event-log">
      <div class="panel-bar">
        <input
          type="search"
          placeholder="Filter: TOOL -ARGS"
          aria-label="Filter events"
          value={filter}
          onInput={(event) => setFilter(event.currentTarget.value)}
        />
        <label class="check">
          <input type="checkbox" checked={isRaw} onChange={(event) => setRaw(event.currentTarget.checked)} />
          Raw
        </label>
        <IconButton icon="copy" label="Copy as curl" disabled={!canCopy} onClick={() => void copyCurl()} />
        <IconButton
          icon="save"
          label="Download as JSONL"
          disabled={all.length === 0}
          onClick={() => download(`${chat.value.run.id ?? "events"}.jsonl`, jsonl(listed(all, found)))}
        />
        <IconButton icon="trash" label="Clear events" onClick={() => frames.clear()} />
      </div>
      <EventRows rows={found} open={open} onOpen={({ frame }) => setOpen(frame)} />
      {open !== null && (
        <div class="frame-detail">
          <div class="panel-bar">
            <strong>
              {open.type} · {open.direction === "in" ? "received" : "sent"}
            </strong>
            <IconButton icon="copy" label="Copy frame" onClick={() => void copyText(open.text)} />
            <IconButton icon="close" label="Close frame" onClick={() => setOpen(null)} />
          </div>
          <LongText text={open.text} label="Frame" limit={100_000} isRaw={isRaw} />
        </div>
      )}
      <p class="panel-note">
        {count(found.reduce((sum, row) => sum + row.count, 0))} of {count(frames.total)} frames
      </p>
    </div>
  );
}

/** The frames of the listed rows, in order. */
function listed(all: readonly Frame[], rows: readonly Row[]): readonly Frame[] {
  const firsts = new Map(rows.map((row) => [row.frame.number, row.count]));
  let rest = 0;
  return all.filter((frame) => {
    rest = firsts.get(frame.number) ?? rest;
    rest -= 1;
    return rest >= 0;
  });
}

/** What is listed, one JSON object a line: the time, the seconds since the input, the direction and the frame. */
function jsonl(rows: readonly Frame[]): string {
  const lines = rows.map(({ at, since, direction, runId, text }) => {
    const facts = { at: new Date(at).toISOString(), seconds: since / 1000, direction, runId };
    return `${JSON.stringify(facts).slice(0, -1)},"frame":${text}}\n`;
  });
  return lines.join("");
}

/** The last request as a command for a shell. Each time that it is executed it makes a run on a thread of its own. */
async function copyCurl(): Promise<void> {
  if (lastInput.value === null) return;
  const { resume: _, ...rest } = lastInput.value;
  const messages = historyOf(rest.messages, chat.value.messages);
  const input = JSON.stringify({ ...rest, threadId: FRESH, runId: FRESH, messages });
  const address = quoted(endpoint("invocations"));
  const authorization = token.value === "" ? "" : ' -H "Authorization: Bearer $TOKEN"';
  const body = quoted(input).replaceAll(FRESH, "copy-'$(date +%s%N)'");
  await copyText(`curl -N ${address} -H '${SESSION_HEADER}: ${session}'${authorization} -d ${body}`);
}

/** Stands for an id that the shell makes. Where it has no nanoseconds, runs of one second share it. */
const FRESH = "\uE000fresh\uE000";

/** One word for a shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
