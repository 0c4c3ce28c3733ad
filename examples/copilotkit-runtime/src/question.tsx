/** A form for what an agent or an MCP server asks: the fields of its schema, or the link that it wants opened. */

import type { Interrupt } from "@copilotkit/react-core/v2";
import type { SubmitEvent } from "react";

interface Option {
  const: string;
  title?: string;
}

/** The parts of a JSON Schema that this form shows. */
interface Field {
  type?: string;
  title?: string;
  description?: string;
  default?: unknown;
  enum?: string[];
  oneOf?: Option[];
  anyOf?: Option[];
  items?: Field;
}

interface QuestionProps {
  question: Interrupt;
  resolve: (payload: unknown) => void;
  cancel: () => void;
}

export function Question({ question, resolve, cancel }: QuestionProps) {
  const { properties = {}, required = [] } = (question.responseSchema ?? {}) as {
    properties?: Record<string, Field>;
    required?: string[];
  };
  const link = String(question.metadata?.url ?? "");
  const send = (event: SubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const values = Object.entries(properties).map(([name, field]) => [name, valueOf(field, form.getAll(name))]);
    resolve(Object.fromEntries(values.filter(([, value]) => value !== undefined)));
  };
  return (
    <form className="card" aria-label={question.message} onSubmit={send}>
      <p>{question.message}</p>
      {/^https?:/.test(link) && (
        <a href={link} target="_blank" rel="noopener noreferrer">
          Open {new URL(link).host}
        </a>
      )}
      {Object.entries(properties).map(([name, field]) => (
        <label key={name} title={field.description}>
          {field.title ?? name} <Input name={name} field={field} isRequired={required.includes(name)} />
        </label>
      ))}
      <button type="submit">{link ? "Continue" : "Send"}</button>
      {question.reason === "elicitation" && (
        <button type="button" onClick={() => resolve({ action: "decline" })}>
          Decline
        </button>
      )}
      <button type="button" onClick={cancel}>
        Not now
      </button>
    </form>
  );
}

function Input({ name, field, isRequired }: { name: string; field: Field; isRequired: boolean }) {
  const isList = field.type === "array";
  const options = optionsOf((isList ? field.items : field) ?? {});
  if (options.length > 0) {
    const initial = (field.default ?? (isList ? [] : "")) as string | string[];
    return (
      <select name={name} multiple={isList} required={isRequired} defaultValue={initial}>
        {!isList && <option value="" />}
        {options.map((option) => (
          <option key={option.const} value={option.const}>
            {option.title ?? option.const}
          </option>
        ))}
      </select>
    );
  }
  if (field.type === "boolean") return <input name={name} type="checkbox" defaultChecked={field.default === true} />;
  const isNumber = field.type === "number" || field.type === "integer";
  return (
    <input
      name={name}
      type={isNumber ? "number" : "text"}
      step={field.type === "integer" ? 1 : "any"}
      required={isRequired}
      defaultValue={field.default === undefined ? "" : String(field.default)}
    />
  );
}

function optionsOf({ enum: values, oneOf, anyOf }: Field): Option[] {
  return oneOf ?? anyOf ?? values?.map((value) => ({ const: value })) ?? [];
}

/** The value of a field; undefined for one that is empty. */
function valueOf({ type }: Field, texts: FormDataEntryValue[]): unknown {
  if (type === "boolean") return texts.length > 0;
  if (type === "array") return texts;
  const text = texts[0] ?? "";
  if (text === "") return undefined;
  return type === "number" || type === "integer" ? Number(text) : text;
}
