/** A question in front of everything else. The browser keeps the focus inside. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
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
    <Dialog title={asked.title} onClose={() => asked.resolve(false)}>
      <p>{asked.text}</p>
      <div class="form-actions">
        <button type="button" class="button" onClick={() => asked.resolve(false)}>
          Cancel
        </button>
        <button type="button" class="button danger" onClick={() => asked.resolve(true)}>
          {asked.action}
        </button>
      </div>
    </Dialog>
  );
}

interface DialogProps {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
}

export function Dialog({ title, onClose, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    element.current?.showModal();
  }, []);
  return (
    <dialog ref={element} class="dialog" aria-label={title} onClose={onClose}>
      <header class="dialog-head">
        <h2>{title}</h2>
        <IconButton icon="close" label="Close" onClick={() => element.current?.close()} />
      </header>
      {children}
    </dialog>
  );
}
