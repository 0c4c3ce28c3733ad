/** The fields of a form that is made of a JSON Schema. */

import { useId } from "preact/hooks";
import type { Draft, FieldError } from "../forms/answer";
import { choicesOf, type Field, fieldsOf, type Group } from "../forms/fields";

interface FieldsProps {
  form: Field | Group;
  draft: Draft;
  error: FieldError | null;
  onChange: (draft: Draft) => void;
}

export function Fields({ form, draft, error, onChange }: FieldsProps) {
  return (
    <>
      {fieldsOf(form).map((field) => (
        <LabelledField
          key={field.pointer}
          field={field}
          value={draft[field.pointer] ?? field.initial}
          error={error?.pointer === field.pointer ? error.message : ""}
          onChange={(value) => onChange({ ...draft, [field.pointer]: value })}
        />
      ))}
    </>
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
