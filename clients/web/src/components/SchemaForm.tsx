/** A form made of an interrupt's `responseSchema`. */

import type { Interrupt } from "@ag-ui/core";
import { useMemo, useState } from "preact/hooks";
import { answerOf, fieldsOf, missing, type SchemaField } from "../schema";
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
  const [error, setError] = useState("");
  const submit = (event: Event) => {
    event.preventDefault();
    const lacking = missing(fields, draft);
    if (lacking !== null) return setError(`${lacking.label} is required.`);
    try {
      onSubmit(answerOf(schema, fields, draft));
    } catch (failure) {
      setError(failure instanceof Error ? failure.message : String(failure));
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
          onChange={(value) => setDraft({ ...draft, [field.path]: value })}
        />
      ))}
      {error !== "" && (
        <p class="field-error" role="alert">
          {error}
        </p>
      )}
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
  onChange: (value: string) => void;
}

function Field({ field, value, onChange }: FieldProps) {
  const set = (event: { currentTarget: { value: string } }) => onChange(event.currentTarget.value);
  const label = `${field.label}${field.isRequired ? "" : " (optional)"}`;
  if (field.kind === "boolean") {
    return (
      <label class="field check">
        <input
          type="checkbox"
          checked={value === "true"}
          onChange={(event) => onChange(String(event.currentTarget.checked))}
        />
        <span>{field.label}</span>
        {field.help !== "" && <small>{field.help}</small>}
      </label>
    );
  }
  return (
    <label class="field">
      <span>{label}</span>
      {field.kind === "choice" ? (
        <select value={value} onChange={set}>
          <option value="">Choose…</option>
          {field.choices.map((choice) => (
            <option key={choice} value={choice}>
              {choice}
            </option>
          ))}
        </select>
      ) : field.kind === "json" || field.kind === "text" ? (
        <textarea class={field.kind === "json" ? "code" : ""} rows={4} value={value} onInput={set} />
      ) : (
        <input {...INPUTS[field.kind]} min={field.minimum} max={field.maximum} value={value} onInput={set} />
      )}
      {field.help !== "" && <small>{field.help}</small>}
    </label>
  );
}
