/** The filled form as the value that a `responseSchema` asks for. */

import { type Problem, problemOf } from "./checks";
import { type Field, fieldsOf, type Group, isGroup, isList, pointerOf, readText } from "./fields";
import type { Schema } from "./simplify";

/** The texts of the fields, by their pointers. */
export type Draft = Readonly<Record<string, string>>;

/** A field whose text is no answer to the schema. The message is a sentence for the user. */
export class FieldError extends Error {
  constructor(
    readonly pointer: string,
    message: string,
  ) {
    super(message);
  }
}

/** Return the answer as data. Throws a `FieldError` for the first demand of the schema that it does not meet. */
export function answerOf(schema: Schema, form: Field | Group, draft: Draft): unknown {
  const value = isGroup(form) ? readGroup(form, draft) : read(form, draft);
  const problem = problemOf(schema, value, schema);
  if (problem !== undefined) throw errorOf(problem, form);
  return value;
}

/** Describe a problem at the field that has it, or else by the path of the value. */
export function errorOf({ path, demand }: Problem, form?: Field | Group): FieldError {
  const pointer = pointerOf(path);
  const fields = form === undefined ? [] : fieldsOf(form);
  const field = fields.find((each) => `${pointer}/`.startsWith(`${each.pointer}/`));
  const names = field === undefined ? path : [field.label, ...path.slice(field.pointer.split("/").length - 1)];
  const subject = names.map((name) => (typeof name === "number" ? `item ${name + 1}` : name)).join(" › ");
  return new FieldError(field?.pointer ?? "", `${subject || "The value"} ${demand}.`);
}

/** Return the members that have a value. Those that the form does not have stay as they were. */
function readGroup(group: Group, draft: Draft): Record<string, unknown> {
  const entries = group.members
    .filter((member) => !isGroup(member) || isAnswered(member, draft))
    .map((member) => [member.name, isGroup(member) ? readGroup(member, draft) : read(member, draft)] as const);
  const all = Object.entries({ ...group.before, ...Object.fromEntries(entries) });
  return Object.fromEntries(all.filter(([, value]) => value !== undefined));
}

function isAnswered(group: Group, draft: Draft): boolean {
  const isChanged = ({ pointer, initial }: Field) => (draft[pointer] ?? initial) !== initial;
  return group.isRequired || group.before !== undefined || fieldsOf(group).some(isChanged);
}

/** Return the value of a field; undefined for one that is empty and cannot be null. */
function read(field: Field, draft: Draft): unknown {
  const { kind, schema, pointer, label, initial, isNullable, isRequired, keepsBefore, before } = field;
  const text = draft[pointer] ?? initial;
  if (text === initial && keepsBefore) return before;
  if (text.trim() === "" && !(isList(kind) && isRequired)) return isNullable ? null : undefined;
  try {
    return readText(kind, schema, text);
  } catch {
    throw new FieldError(pointer, `${label} must be JSON.`);
  }
}
