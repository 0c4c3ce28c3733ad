/** Frames as rows of the event log: deltas of one message are one row, and what an event says is readable. */

import type { TokenUsage } from "@ag-ui/core";
import type { Frame } from "../connection/frames";
import { requestOf, tokensOf } from "../state/trace";
import { duration } from "./format";

export interface Row {
  frame: Frame;
  /** Number of frames that are folded into this row. */
  count: number;
  /** Milliseconds from the first of them to the last. */
  took: number;
  text: string;
}

const FOLDED = /_(?:CONTENT|ARGS)$/;
const LONGEST = 300;

/** Fold neighbouring deltas. Raw rows are not folded. */
export function rowsOf(frames: readonly Frame[], isRaw: boolean): Row[] {
  const rows: Row[] = [];
  for (const frame of frames) {
    const last = rows.at(-1);
    if (!isRaw && last !== undefined && FOLDED.test(frame.type) && continues(last.frame, frame)) {
      last.count += 1;
      last.took = frame.at - last.frame.at;
      if (last.text.length < LONGEST) last.text += summary(frame);
    } else {
      rows.push({ frame, count: 1, took: 0, text: isRaw ? frame.text.slice(0, LONGEST) : summary(frame) });
    }
  }
  return rows;
}

/** The number of the deltas of a row, and their time where frames have times; empty for one frame. */
export function folded({ count, took }: Row, isTimed: boolean): string {
  return count === 1 ? "" : `${count} deltas${isTimed ? `, ${duration(took)}` : ""}`;
}

/** The rows that show each of these words, and none of those with a minus. */
export function matching(rows: readonly Row[], filter: string): readonly Row[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return rows;
  return rows.filter((row) => {
    const text = `${row.frame.type} ${folded(row, true)} ${row.text}`.toLowerCase();
    return words.every((word) => (word.startsWith("-") ? !text.includes(word.slice(1)) : text.includes(word)));
  });
}

function continues(one: Frame, other: Frame): boolean {
  return one.type === other.type && one.runId === other.runId && targetOf(one) === targetOf(other);
}

function targetOf({ text }: Frame): string | undefined {
  return /"(?:messageId|toolCallId)": ?"([^"]*)"/.exec(text.slice(0, 1000))?.[1];
}

const TELLING = /"(?:delta|toolCallName|name|content|message|stepName)": ?("(?:[^"\\]|\\.){0,200})/;

function summary(frame: Frame): string {
  if (frame.direction === "out") return (requestOf(frame).text ?? "continued").slice(0, LONGEST);
  if (frame.type === "RUN_FINISHED" && frame.text.length < 20_000) return endOf(frame.text);
  const quoted = TELLING.exec(frame.text.slice(0, 2000))?.[1] ?? "";
  return quoted.slice(1);
}

function endOf(text: string): string {
  try {
    const { outcome, usage } = JSON.parse(text) as { outcome?: { type: string }; usage?: TokenUsage[] };
    return [outcome?.type ?? "success", tokensOf(usage ?? [])].filter(Boolean).join(" · ");
  } catch {
    return "";
  }
}

/** The family of an event, by which its row is coloured. */
export function familyOf(type: string): string {
  return (
    /^(RUN|TEXT|REASONING|TOOL|STATE|STEP|SUBAGENT|ACTIVITY|MESSAGES|CUSTOM)/.exec(type)?.[1]?.toLowerCase() ?? "other"
  );
}
