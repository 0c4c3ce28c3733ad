/** A form made of an interrupt's `responseSchema`. */

import type { Interrupt } from "@ag-ui/core";
import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import { answerOf, type Draft, FieldError } from "../forms/answer";
import { choicesOf, type Field, fieldsOf, formOf } from "../forms/fields";
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
      {fieldsOf(form).map((field) => (
        <LabelledField
          key={field.pointer}
          field={field}
          value={draft[field.pointer] ?? field.initial}
          error={error?.pointer === field.pointer ? error.message : ""}
          onChange={(value) => setDraft({ ...draft, [field.pointer]: value })}
        />
      ))}
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

const INPUTS = {
  string: { type: "text" },
  date: { type: "date" },
  email: { type: "email" },
  url: { type: "url" },
  number: { type: "number", step: "any" },
} as const;

interface LabelledFieldProps {
  field: Field;
  value: string;
  error: string;
  onChange: (value: string) => void;
}

function LabelledField({ field, value, error, onChange }: LabelledFieldProps) {
  const errorId = useId();
  const description = error === "" ? {} : { "aria-invalid": true, "aria-describedby": errorId };
  return (
    <>
      <label class={field.kind === "boolean" ? "field check" : "field"}>
        {field.kind !== "boolean" && <span>{`${field.label}${field.isOptional ? " (optional)" : ""}`}</span>}
        <Control field={field} value={value} onChange={onChange} description={description} />
        {field.kind === "boolean" && <span>{field.label}</span>}
        {field.help !== "" && <small>{field.help}</small>}
      </label>
      {error !== "" && (
        <p class="field-error" role="alert" id={errorId}>
          {error}
        </p>
      )}
    </>
  );
}

interface ControlProps {
  field: Field;
  value: string;
  onChange: (value: string) => void;
  description: { "aria-invalid"?: boolean; "aria-describedby"?: string };
}

function Control({ field, value, onChange, description }: ControlProps) {
  const set = (event: { currentTarget: { value: string } }) => onChange(event.currentTarget.value);
  switch (field.kind) {
    case "boolean":
      return (
        <input
          type="checkbox"
          checked={value === "true"}
          onChange={(event) => onChange(String(event.currentTarget.checked))}
          {...description}
        />
      );
    case "choice":
      return (
        <select value={value} onChange={set} {...description}>
          <option value="">Choose…</option>
          {choicesOf(field.schema).map((choice) => (
            <option key={choice} value={choice}>
              {choice}
            </option>
          ))}
        </select>
      );
    case "json":
    case "text":
      return (
        <textarea class={field.kind === "json" ? "code" : ""} rows={4} value={value} onInput={set} {...description} />
      );
    default:
      return (
        <input
          {...INPUTS[field.kind]}
          min={limit(field.schema.minimum)}
          max={limit(field.schema.maximum)}
          value={value}
          onInput={set}
          {...description}
        />
      );
  }
}

function limit(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}
