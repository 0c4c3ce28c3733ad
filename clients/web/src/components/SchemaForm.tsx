/** A form made of an interrupt's `responseSchema`, with the link that it asks the user to follow, if any. */

import type { Interrupt } from "@ag-ui/core";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { answerOf, type Draft, FieldError } from "../forms/answer";
import { formOf, isGroup } from "../forms/fields";
import { canDecline, DECLINE } from "../state/questions";
import { Fields } from "./Fields";
import { useQuestionFocus } from "./focus";
import { Icon } from "./icons";

interface SchemaFormProps {
  interrupt: Interrupt;
  onSubmit: (payload: unknown) => void;
  onCancel: () => void;
}

export function SchemaForm({ interrupt, onSubmit, onCancel }: SchemaFormProps) {
  const schema = interrupt.responseSchema ?? {};
  const form = useMemo(() => formOf(schema), [interrupt.responseSchema]);
  const link = linkOf(interrupt.metadata?.url);
  const [draft, setDraft] = useState<Draft>({});
  const [error, setError] = useState<FieldError | null>(null);
  const element = useRef<HTMLFormElement>(null);
  useQuestionFocus(element);
  useLayoutEffect(() => element.current?.querySelector<HTMLElement>("[aria-invalid]")?.focus(), [error]);
  const submit = (event: Event) => {
    event.preventDefault();
    try {
      onSubmit(answerOf(schema, form, draft));
    } catch (failure) {
      if (!(failure instanceof FieldError)) throw failure;
      setError(failure);
    }
  };
  return (
    <form
      class="card"
      tabIndex={-1}
      ref={element}
      onSubmit={submit}
      noValidate
      aria-label={interrupt.message ?? "Question"}
    >
      <header class="card-head">
        <Icon name="hand" />
        <h2>{interrupt.message ?? interrupt.reason}</h2>
      </header>
      {link && (
        <p>
          <a href={link.href} target="_blank" rel="noopener noreferrer">
            Open {link.host}
          </a>
        </p>
      )}
      <Fields form={form} draft={draft} error={error} onChange={setDraft} />
      {error?.pointer === "" && isGroup(form) && (
        <p class="field-error" role="alert">
          {error.message}
        </p>
      )}
      <div class="form-actions">
        <button type="button" class="button" onClick={onCancel}>
          Not now
        </button>
        {canDecline(interrupt) && (
          <button type="button" class="button" onClick={() => onSubmit(DECLINE)}>
            Decline
          </button>
        )}
        <button type="submit" class="button primary">
          {link ? "Continue" : "Send"}
        </button>
      </div>
    </form>
  );
}

/** The link of an interrupt. A tool may name any text, so only the schemes of web pages are links. */
function linkOf(url: unknown): URL | null {
  if (typeof url !== "string" || !URL.canParse(url)) return null;
  const link = new URL(url);
  return link.protocol === "https:" || link.protocol === "http:" ? link : null;
}
