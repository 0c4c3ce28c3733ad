/**
 * Scrolling of the conversation: it stays at the end while text arrives, until the reader scrolls up.
 *
 * Rule: only the reader ends the following. Content that grows or shrinks moves the end as well, so a position that is
 * no longer the end says nothing; a step up that is not a step of the end does.
 */

import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { begun } from "../chat";

/** Distance from the end, in pixels, that still counts as the end. */
export const NEAR_BOTTOM = 80;

interface StickyScroll {
  frame: RefObject<HTMLDivElement | null>;
  content: RefObject<HTMLDivElement | null>;
  /** True if the end is so far below that a button should lead there. */
  isAway: boolean;
  toBottom: () => void;
}

/**
 * @param conversation what is shown; another one begins at its end
 * @param first key of the first turn; if another one comes before it, the reader's place stays
 */
export function useStickyScroll(conversation: string, first: string | undefined): StickyScroll {
  const frame = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const isPinned = useRef(true);
  const last = useRef({ top: 0, height: 0 });
  const [isAway, setAway] = useState(false);
  const toBottom = () => {
    isPinned.current = true;
    frame.current?.scrollTo({ top: frame.current.scrollHeight });
  };
  useLayoutEffect(() => {
    const { top, height } = last.current;
    if (!isPinned.current) frame.current!.scrollTop = frame.current!.scrollHeight - (height - top);
  }, [first]);
  useLayoutEffect(toBottom, [conversation]);
  useEffect(() => begun.subscribe(toBottom), []);
  useEffect(() => {
    const [scroller, column] = [frame.current!, content.current!];
    const look = () => {
      const { scrollTop: top, scrollHeight: height, clientHeight } = scroller;
      const below = height - top - clientHeight;
      if (top < last.current.top && height >= last.current.height && below > 1) isPinned.current = false;
      if (below < NEAR_BOTTOM && top > last.current.top) isPinned.current = true;
      last.current = { top, height };
      setAway(below > clientHeight / 2);
    };
    const observer = new ResizeObserver(() => {
      if (isPinned.current) scroller.scrollTop = scroller.scrollHeight;
      look();
    });
    observer.observe(column);
    observer.observe(scroller);
    scroller.addEventListener("scroll", look, { passive: true });
    return () => {
      observer.disconnect();
      scroller.removeEventListener("scroll", look);
    };
  }, []);
  return { frame, content, isAway, toBottom };
}
