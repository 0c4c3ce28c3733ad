/** Places of the keyboard focus when a part of the page appears or goes. */

import type { RefObject } from "preact";
import { useEffect, useLayoutEffect } from "preact/hooks";
import { NEAR_BOTTOM } from "./scrolling";

/** Give the focus back to the element that had it before a panel was opened, unless it is somewhere else by then. */
export function useFocusReturn(isOpen: boolean, panel: string): void {
  useLayoutEffect(() => {
    if (!isOpen) return;
    const before = document.activeElement as HTMLElement | null;
    return () => {
      const { activeElement } = document;
      if (activeElement === document.body || activeElement?.closest(panel)) before?.focus();
    };
  }, [isOpen, panel]);
}

/**
 * Move the focus to a question of the agent when it appears, unless the user is writing or is at another question. Its
 * heading comes into view, unless the user reads above the end. When the question goes with the focus inside, the next
 * question or the text field gets it.
 */
export function useQuestionFocus(question: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    const { activeElement } = document;
    if (isWriting(activeElement) || activeElement?.closest(".card")) return undefined;
    question.current?.focus({ preventScroll: true });
    const observer = new ResizeObserver(() => {
      observer.disconnect(); // the conversation has followed its end just now
      if (isAtEnd(document.querySelector(".scroll"))) question.current?.querySelector("h2")?.scrollIntoView(NEAREST);
    });
    observer.observe(question.current!);
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => {
    const element = question.current;
    return () => {
      if (element?.contains(document.activeElement)) requestAnimationFrame(focusNextQuestion);
    };
  }, []);
}

function focusNextQuestion(): void {
  if (document.activeElement !== document.body) return;
  document.querySelector<HTMLElement>(".scroll .card, .composer textarea")?.focus({ preventScroll: true });
}

const NEAREST: ScrollIntoViewOptions = { block: "nearest" };

function isAtEnd(frame: Element | null): boolean {
  return frame !== null && frame.scrollHeight - frame.scrollTop - frame.clientHeight < NEAR_BOTTOM;
}

function isWriting(element: Element | null): boolean {
  return (element instanceof HTMLTextAreaElement || element instanceof HTMLInputElement) && element.value !== "";
}
