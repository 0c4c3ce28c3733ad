/** A form made of an interrupt's `responseSchema`. */

import type { Interrupt } from "@ag-ui/core";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { answerOf, type Draft, FieldError } from "../forms/answer";
import { formOf } from "../forms/fields";
import { Fields } from "./Fields";
import { useQuestionFocus } from "./focus";
import { Icon } from "./icons";

interface SchemaFormProps {
  interrupt: Interrupt;
  onSubmit: (payload: unknown) => void;
  onCancel: () => void;
}

export function SchemaForm({ interrupt, onSubmit, onCancel }: SchemaFormProps) {
  const form = useMemo(() => formOf(interrupt.responseSchema ?? {}), [interrupt.responseSchema]);
  const [draft, setDraft] = useState<Draft>({});
  const [error, setError] = useState<FieldError | null>(null);
  const element = useRef<HTMLFormElement>(null);
  useQuestionFocus(element);
  useEffect(() => element.current?.querySelector<HTMLElement>("[aria-invalid]")?.focus(), [error]);
  const submit = (event: Event) => {
    event.preventDefault();
    try {
      onSubmit(answerOf(form, draft));
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
      <Fields form={form} draft={draft} error={error} onChange={setDraft} />
      <div class="form-actions">
        <button type="button" class="button" onClick={onCancel}>
          Not now
        </button>
        <button type="submit" class="button primary">
          Send
        </button>
      </div>
    </form>
  );
}
