/**
 * JSON Schema as form fields.
 *
 * Objects become groups of fields. A schema without a field of its own becomes a field of JSON text.
 */

import { memberOf } from "./checks";
import { isSchema, type Schema, simplify } from "./simplify";

export interface Field {
  /** JSON pointer of the value in the answer; empty for a schema that is not an object. */
  pointer: string;
  name: string;
  label: string;
  help: string;
  kind: "string" | "text" | "date" | "email" | "url" | "number" | "boolean" | "choice" | "choices" | "lines" | "json";
  schema: Schema;
  /** True if its group cannot be answered without it. */
  isRequired: boolean;
  /** True if the form can be sent without it, because it or a group around it is optional. */
  isOptional: boolean;
  isNullable: boolean;
  initial: string;
  /** True if a text that nobody has changed stands for `before`. */
  keepsBefore: boolean;
  /** The value before the form was filled; undefined if there was none. */
  before: unknown;
}

/** An object of the answer. One that is optional is left out unless it was there or the user has changed a field of it. */
export interface Group {
  name: string;
  label: string;
  isRequired: boolean;
  before: Schema | undefined;
  members: readonly (Field | Group)[];
}

const MAX_DEPTH = 3;
const LONG_TEXT = 200;

/**
 * Return the form of a schema: a group for an object, and one field for all else.
 *
 * @param before the value that is edited; undefined for an answer that is new
 */
export function formOf(root: Schema, before?: unknown): Field | Group {
  return member(root, { root, path: [], isRequired: true, isOptional: false, isEdit: before !== undefined, before });
}

interface Place {
  root: Schema;
  path: readonly string[];
  isRequired: boolean;
  isOptional: boolean;
  /** True if the object around this place was there before. */
  isEdit: boolean;
  before: unknown;
}

function member(schema: Schema, place: Place): Field | Group {
  const { schema: simple, isNullable } = simplify(schema, place.root);
  const isRequired = place.isRequired && !isNullable;
  const here = { ...place, isRequired, isOptional: place.isOptional || !isRequired };
  const { properties } = simple;
  const before = isSchema(place.before) ? place.before : undefined;
  const isField = !isSchema(properties) || here.path.length >= MAX_DEPTH || place.before !== before;
  if (isField) return field(simple, here, isNullable);
  const required = Array.isArray(simple.required) ? simple.required : [];
  const members = Object.entries(properties)
    .filter((entry): entry is [string, Schema] => isSchema(entry[1]))
    .map(([name, inner]) =>
      member(inner, {
        ...here,
        path: [...here.path, name],
        isRequired: required.includes(name),
        isEdit: before !== undefined,
        before: memberOf(before, name),
      }),
    );
  return { name: here.path.at(-1) ?? "", label: labelOf(simple, here), isRequired, before, members };
}

function field(simple: Schema, place: Place, isNullable: boolean): Field {
  const { path, root, isRequired, isOptional, isEdit, before } = place;
  const schema = isSchema(simple.items) ? { ...simple, items: simplify(simple.items, root).schema } : simple;
  const given = schema.default ?? (isOptional ? undefined : schema.const) ?? undefined;
  const shown = before === null && isNullable ? undefined : (before ?? given);
  const kind = kindFor(schema, shown);
  return {
    pointer: pointerOf(path),
    name: path.at(-1) ?? "",
    label: labelOf(schema, place),
    help: typeof schema.description === "string" ? schema.description : "",
    kind,
    schema,
    isRequired,
    isOptional,
    isNullable,
    initial: shown === undefined ? (kind === "boolean" ? "false" : "") : textOf(kind, shown),
    keepsBefore: before !== undefined || (isEdit && !isRequired),
    before,
  };
}

/** Return the JSON pointer of a place. */
export function pointerOf(path: readonly (string | number)[]): string {
  return path.map((name) => `/${String(name).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

function labelOf(schema: Schema, { path }: Place): string {
  return typeof schema.title === "string" ? schema.title : words(path.at(-1) ?? "Answer");
}

/** Return the text of a value in a field. */
export function textOf(kind: Field["kind"], value: unknown): string {
  if (isList(kind) && Array.isArray(value)) return value.map(asText).join("\n");
  return kind === "json" ? JSON.stringify(value, null, 2) : asText(value);
}

/** Return the value of a field's text. Throws a `SyntaxError` for a text that is no JSON where it must be. */
export function readText(kind: Field["kind"], schema: Schema, text: string): unknown {
  if (kind === "choice") return choiceAt(schema, text);
  if (kind === "choices") return linesOf(text).map((line) => choiceAt(schema.items as Schema, line));
  if (kind === "boolean") return text === "true";
  if (kind === "number") return Number(text);
  if (kind === "lines")
    return linesOf(text).map((line) => ((schema.items as Schema).type === "string" ? line : Number(line)));
  return kind === "json" ? JSON.parse(text) : text;
}

/** True for a field whose text has one item of a list in each line. */
export function isList(kind: Field["kind"]): boolean {
  return kind === "lines" || kind === "choices";
}

function choiceAt({ enum: choices }: Schema, text: string): unknown {
  return (choices as unknown[]).find((choice) => asText(choice) === text);
}

export function linesOf(text: string): string[] {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
}

/** Return the fields of a form in their order. */
export function fieldsOf(form: Field | Group): Field[] {
  return isGroup(form) ? form.members.flatMap(fieldsOf) : [form];
}

export function isGroup(member: Field | Group): member is Group {
  return "members" in member;
}

/** Return the kind of a field that shows a value as it is: as JSON where the usual field would change it. */
function kindFor(schema: Schema, value: unknown): Field["kind"] {
  const kind = kindOf(schema);
  if (value === undefined) return kind;
  if (JSON.stringify(readText(kind, schema, textOf(kind, value))) !== JSON.stringify(value)) return "json";
  return kind !== "choice" && typeof value === "string" && /[\r\n]/.test(value) ? "text" : kind;
}

/** Types of the items of a list that is written one item a line. */
const LINES = ["string", "number", "integer"];

function kindOf(schema: Schema): Field["kind"] {
  if (choicesOf(schema).length > 0) return "choice";
  switch (schema.type) {
    case "boolean":
      return "boolean";
    case "number":
    case "integer":
      return "number";
    case "string":
      if (schema.format === "date" || schema.format === "email") return schema.format;
      if (schema.format === "uri") return "url";
      return typeof schema.maxLength === "number" && schema.maxLength > LONG_TEXT ? "text" : "string";
    case "array":
      if (isSchema(schema.items) && choicesOf(schema.items).length > 0) return "choices";
      return isSchema(schema.items) && LINES.includes(String(schema.items.type)) ? "lines" : "json";
    default:
      return "json";
  }
}

export interface Choice {
  text: string;
  label: string;
}

export function choicesOf({ enum: choices, enumNames: names }: Schema): readonly Choice[] {
  if (!Array.isArray(choices)) return [];
  return choices.map((choice, index) => ({
    text: asText(choice),
    label: asText((Array.isArray(names) && names[index]) || choice),
  }));
}

export function asText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function words(name: string): string {
  const spaced = name
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .replaceAll("_", " ")
    .toLowerCase();
  return spaced.charAt(0).toUpperCase() + spaced.slice(1);
}
