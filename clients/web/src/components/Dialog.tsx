/** A question in front of everything else. The browser keeps the focus inside, and gives it back afterwards. */

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { Store, useStore } from "../store";
import { IconButton } from "./icons";

interface Question {
  title: string;
  text: string;
  action: string;
  resolve: (isConfirmed: boolean) => void;
}

const question = new Store<Question | null>(null);

export function confirmed(title: string, text: string, action: string): Promise<boolean> {
  return new Promise((resolve) => {
    question.set({
      title,
      text,
      action,
      resolve: (isConfirmed) => {
        question.set(null);
        resolve(isConfirmed);
      },
    });
  });
}

export function ConfirmDialog() {
  const asked = useStore(question);
  if (asked === null) return null;
  return (
    <Dialog title={asked.title} onClose={(pressed) => asked.resolve(pressed === "confirm")}>
      <p>{asked.text}</p>
      <form method="dialog" class="form-actions">
        <button type="submit" class="button">
          Cancel
        </button>
        <button type="submit" class="button danger" value="confirm">
          {asked.action}
        </button>
      </form>
    </Dialog>
  );
}

interface DialogProps {
  title: string;
  /** Called with the value of the button that closed the dialog, if it has one. */
  onClose: (pressed: string) => void;
  isWide?: boolean;
  children: ComponentChildren;
}

export function Dialog({ title, onClose, isWide = false, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    element.current?.showModal();
  }, []);
  return (
    <dialog
      ref={element}
      class={isWide ? "dialog is-wide" : "dialog"}
      aria-label={title}
      onClose={({ currentTarget }) => onClose(currentTarget.returnValue)}
    >
      <header class="dialog-head">
        <h2>{title}</h2>
        <IconButton icon="close" label="Close" onClick={() => element.current?.close()} />
      </header>
      {children}
    </dialog>
  );
}
