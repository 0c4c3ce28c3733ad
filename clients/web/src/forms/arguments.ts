/** Arguments of a call as a form, and the filled form as arguments. */

import { answerOf, type Draft, FieldError } from "./answer";
import { type Field, fieldsOf, formOf, type Group, isGroup, textOf } from "./fields";
import { isSchema, type Schema } from "./simplify";

/** Return the texts of the fields for a value. */
export function draftOf(form: Field | Group, value: unknown): Draft {
  const entries = fieldsOf(form).flatMap((field) => {
    const found = valueAt(value, field.pointer);
    return found === undefined ? [] : [[field.pointer, found === null ? "" : textOf(field.kind, found)] as const];
  });
  return Object.fromEntries(entries);
}

function valueAt(value: unknown, pointer: string): unknown {
  const names = pointer.split("/").slice(1);
  return names.reduce<unknown>((place, name) => {
    const key = name.replaceAll("~1", "/").replaceAll("~0", "~");
    return isSchema(place) ? place[key] : undefined;
  }, value);
}

/** Return edited arguments. Those that the form does not have are kept. Throws a `FieldError` for what the tool refuses. */
export function argumentsOf(schema: Schema, draft: Draft, before: Schema): Schema {
  const form = formOf(schema);
  const names = new Set(isGroup(form) ? form.members.map(({ name }) => name) : []);
  const others = Object.entries(before).filter(([name]) => !names.has(name));
  if (schema.additionalProperties === false && others.length > 0) {
    throw new FieldError("", `The tool has no argument “${others[0]![0]}”.`);
  }
  const unchanged = new Set(
    fieldsOf(form)
      .filter((field) => isDefault(field, draft, before))
      .map(({ name }) => name),
  );
  const edited = Object.entries(answerOf(form, draft) as Schema).filter(([name]) => !unchanged.has(name));
  return Object.fromEntries([...others, ...edited]);
}

/** True for a field that the call left out, and that still has its default. */
function isDefault({ name, pointer, isRequired, initial }: Field, draft: Draft, before: Schema): boolean {
  const isMember = pointer.lastIndexOf("/") === 0;
  return isMember && !isRequired && before[name] === undefined && (draft[pointer] ?? initial) === initial;
}

/** Return arguments that were written as JSON, as the tool takes them. Throws a `FieldError` for what it refuses. */
export function parseArguments(text: string, schema: Schema | undefined): Schema {
  const value = parsed(text);
  if (!isSchema(value)) throw new FieldError("", "The arguments must be a JSON object.");
  return schema === undefined ? value : argumentsOf(schema, draftOf(formOf(schema), value), value);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The arguments of a call by their names, or undefined if they are not a JSON object (yet). */
export function namedArguments(text: string): Schema | undefined {
  const value = parsed(text || "{}");
  return isSchema(value) ? value : undefined;
}

/** The schema of a tool as one that has a form: an object with properties. */
export function formSchema(parameters: unknown): Schema | undefined {
  return isSchema(parameters) && isSchema(parameters.properties) ? parameters : undefined;
}
