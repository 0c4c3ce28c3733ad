/** Places of the keyboard focus when a part of the page appears or goes. */

import type { RefObject } from "preact";
import { useEffect, useLayoutEffect } from "preact/hooks";

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
 * Move the focus to a question of the agent when it appears, unless the user is writing or is at another question. When
 * the question goes with the focus inside, the next question or the text field gets it.
 */
export function useQuestionFocus(question: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    const { activeElement } = document;
    if (isWriting(activeElement) || activeElement?.closest(".card")) return;
    question.current?.focus({ preventScroll: true });
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

function isWriting(element: Element | null): boolean {
  return (element instanceof HTMLTextAreaElement || element instanceof HTMLInputElement) && element.value !== "";
}
