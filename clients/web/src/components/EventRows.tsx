/** Frames in a list that renders only visible rows. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { Frame } from "../connection/frames";
import { familyOf, folded, type Row } from "./events";

/** Height of a row, which is a target for fingers on a touch screen. */
const ROW = matchMedia("(pointer: coarse)").matches ? 44 : 28;
const OVERSCAN = 8;

interface EventRowsProps {
  rows: readonly Row[];
  /** The frame whose row is marked. */
  open: Frame | null;
  onOpen: (row: Row) => void;
  /** True for events of a replay, which have numbers in place of times. The list follows the marked row. */
  isFollowing?: boolean;
}

export function EventRows({ rows, open, onOpen, isFollowing = false }: EventRowsProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const isPinned = useRef(true);
  const height = scroller.current?.clientHeight ?? 600;
  const first = Math.max(0, Math.floor(top / ROW) - OVERSCAN);
  const shown = rows.slice(first, first + Math.ceil(height / ROW) + 2 * OVERSCAN);
  useEffect(() => {
    const element = scroller.current;
    if (element !== null && isPinned.current && !isFollowing) element.scrollTop = element.scrollHeight;
  }, [rows.length]);
  useEffect(() => {
    const element = scroller.current;
    const at = isFollowing ? rows.findIndex(({ frame }) => frame === open) : -1;
    if (element !== null && at >= 0) element.scrollTop = at * ROW - element.clientHeight / 2;
  }, [open, isFollowing]);
  return (
    <div
      class="event-rows"
      ref={scroller}
      onScroll={(event) => {
        const { scrollTop, scrollHeight, clientHeight } = event.currentTarget;
        isPinned.current = scrollHeight - scrollTop - clientHeight < 2 * ROW;
        setTop(scrollTop);
      }}
    >
      <ul style={{ height: `${rows.length * ROW}px` }} aria-label="Events">
        {shown.map((row, index) => (
          <li key={row.frame.number} style={{ top: `${(first + index) * ROW}px`, height: `${ROW}px` }}>
            <button
              type="button"
              class={`event-row event-${row.frame.direction} family-${familyOf(row.frame.type)}`}
              aria-pressed={open === row.frame}
              onClick={() => onOpen(row)}
            >
              <span class="event-time">{isFollowing ? row.frame.number : (row.frame.since / 1000).toFixed(3)}</span>
              <span class="event-type">{row.frame.type}</span>
              <span class="event-text">
                {row.count > 1 && <em>{`${folded(row, !isFollowing)} `}</em>}
                {row.text}
              </span>
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}
