/** A form made of an interrupt's `responseSchema`. */

import type { Interrupt } from "@ag-ui/core";
import { useId, useMemo, useState } from "preact/hooks";
import { answerOf, FieldError, fieldsOf, type SchemaField } from "../schema";
import { Icon } from "./icons";

interface SchemaFormProps {
  interrupt: Interrupt;
  onSubmit: (payload: unknown) => void;
  onCancel: () => void;
}

export function SchemaForm({ interrupt, onSubmit, onCancel }: SchemaFormProps) {
  const schema = interrupt.responseSchema ?? {};
  const fields = useMemo(() => fieldsOf(schema), [schema]);
  const [draft, setDraft] = useState<Readonly<Record<string, string>>>(() =>
    Object.fromEntries(fields.map((field) => [field.path, field.initial])),
  );
  const [error, setError] = useState<FieldError | null>(null);
  const submit = (event: Event) => {
    event.preventDefault();
    try {
      onSubmit(answerOf(schema, fields, draft));
    } catch (failure) {
      if (!(failure instanceof FieldError)) throw failure;
      setError(failure);
    }
  };
  return (
    <form class="card" onSubmit={submit} noValidate aria-label={interrupt.message ?? "Question"}>
      <header class="card-head">
        <Icon name="hand" />
        <h2>{interrupt.message ?? interrupt.reason}</h2>
      </header>
      {fields.map((field) => (
        <Field
          key={field.path}
          field={field}
          value={draft[field.path] ?? ""}
          error={error?.path === field.path ? error.message : ""}
          onChange={(value) => setDraft({ ...draft, [field.path]: value })}
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

interface FieldProps {
  field: SchemaField;
  value: string;
  error: string;
  onChange: (value: string) => void;
}

function Field({ field, value, error, onChange }: FieldProps) {
  const errorId = useId();
  const description = error === "" ? {} : { "aria-invalid": true, "aria-describedby": errorId };
  return (
    <>
      <label class={field.kind === "boolean" ? "field check" : "field"}>
        {field.kind !== "boolean" && <span>{`${field.label}${field.isRequired ? "" : " (optional)"}`}</span>}
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
  field: SchemaField;
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
          {field.choices.map((choice) => (
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
          min={field.minimum}
          max={field.maximum}
          value={value}
          onInput={set}
          {...description}
        />
      );
  }
}
