/** The filled form as the value that a `responseSchema` asks for. */

import { problemOf } from "./checks";
import { asText, type Field, fieldsOf, type Group, isGroup } from "./fields";
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

/** Return the answer as data. Throws a `FieldError` for the first field that has no valid value. */
export function answerOf(form: Field | Group, draft: Draft): unknown {
  return isGroup(form) ? readGroup(form, draft) : read(form, draft);
}

function readGroup(group: Group, draft: Draft): Record<string, unknown> {
  const entries = group.members
    .filter((member) => !isGroup(member) || member.isRequired || isChanged(member, draft))
    .map((member) => [member.name, answerOf(member, draft)] as const);
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
}

function isChanged(group: Group, draft: Draft): boolean {
  return fieldsOf(group).some(({ pointer, initial }) => (draft[pointer] ?? initial) !== initial);
}

/** Return the value of a field; undefined for an optional one that is empty. */
function read(field: Field, draft: Draft): unknown {
  const text = draft[field.pointer] ?? field.initial;
  if (text.trim() === "" && !(field.kind === "lines" && field.isRequired)) {
    if (field.isNullable) return null;
    if (!field.isRequired) return undefined;
    throw new FieldError(field.pointer, `${field.label} is required.`);
  }
  const value = parse(field, text);
  const problem = problemOf(field.schema, value) ?? problemOfLines(field, value);
  if (problem !== undefined) throw new FieldError(field.pointer, `${field.label} ${problem}.`);
  return value;
}

/** Return the demand that a line does not meet. */
function problemOfLines({ kind, schema }: Field, value: unknown): string | undefined {
  if (kind !== "lines") return undefined;
  for (const [index, item] of (value as unknown[]).entries()) {
    const problem = problemOf(schema.items as Schema, item);
    if (problem !== undefined) return `${problem} in line ${index + 1}`;
  }
  return undefined;
}

function parse({ schema, kind, pointer, label }: Field, text: string): unknown {
  if (kind === "choice") return (schema.enum as unknown[]).find((choice) => asText(choice) === text);
  if (kind === "boolean") return text === "true";
  if (kind === "number") return Number(text);
  if (kind === "lines")
    return linesOf(text).map((line) => ((schema.items as Schema).type === "string" ? line : Number(line)));
  if (kind !== "json") return text;
  try {
    return JSON.parse(text);
  } catch {
    throw new FieldError(pointer, `${label} must be JSON.`);
  }
}

function linesOf(text: string): string[] {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
}
