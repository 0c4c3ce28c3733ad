/** The fields of a form that is made of a JSON Schema. */

import { useId } from "preact/hooks";
import type { Draft, FieldError } from "../forms/answer";
import { choicesOf, type Field, type Group, isGroup, linesOf } from "../forms/fields";

interface FieldsProps {
  form: Field | Group;
  draft: Draft;
  error: FieldError | null;
  onChange: (draft: Draft) => void;
}

export function Fields({ form, ...props }: FieldsProps) {
  return <>{(isGroup(form) ? form.members : [form]).map((member) => memberView(member, props))}</>;
}

/** A field, or a group of fields that has a name of its own. */
function memberView(member: Field | Group, props: Omit<FieldsProps, "form">) {
  if (isGroup(member)) {
    return (
      <fieldset key={member.name} class="field-group">
        <legend>{member.label}</legend>
        <Fields form={member} {...props} />
      </fieldset>
    );
  }
  const { draft, error, onChange } = props;
  return (
    <LabelledField
      key={member.pointer}
      field={member}
      value={draft[member.pointer] ?? member.initial}
      error={error?.pointer === member.pointer ? error.message : ""}
      onChange={(value) => onChange({ ...draft, [member.pointer]: value })}
    />
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
  const name = `${field.label}${field.isOptional ? " (optional)" : ""}`;
  const isList = field.kind === "choices";
  const Frame = isList ? "fieldset" : "label";
  return (
    <>
      <Frame class={isList ? "field-group" : field.kind === "boolean" ? "field check" : "field"}>
        {isList && <legend>{name}</legend>}
        {!isList && field.kind !== "boolean" && <span>{name}</span>}
        <Control field={field} value={value} onChange={onChange} description={description} />
        {field.kind === "boolean" && <span>{field.label}</span>}
        {field.help !== "" && <small>{field.help}</small>}
        {field.kind === "lines" && <small>One a line</small>}
      </Frame>
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
          {choicesOf(field.schema).map(({ text, label }) => (
            <option key={text} value={text}>
              {label}
            </option>
          ))}
        </select>
      );
    case "choices":
      return <Choices field={field} value={value} onChange={onChange} description={description} />;
    case "lines":
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

/** One box to check for each item that a list may have. */
function Choices({ field, value, onChange, description }: ControlProps) {
  const choices = choicesOf(field.schema.items as Field["schema"]);
  const chosen = new Set(linesOf(value));
  const toggle = (text: string, isChosen: boolean) => {
    const next = choices.filter((each) => (each.text === text ? isChosen : chosen.has(each.text)));
    onChange(next.map((each) => each.text).join("\n"));
  };
  return (
    <>
      {choices.map(({ text, label }) => (
        <label key={text} class="field check">
          <input
            type="checkbox"
            checked={chosen.has(text)}
            onChange={(event) => toggle(text, event.currentTarget.checked)}
            {...description}
          />
          <span>{label}</span>
        </label>
      ))}
    </>
  );
}

function limit(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}
