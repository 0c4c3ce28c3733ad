/**
 * JSON Schema as form fields.
 *
 * Objects become groups of fields. A schema without a field of its own becomes a field of JSON text.
 */

import { isSchema, type Schema, simplify } from "./simplify";

export interface Field {
  /** JSON pointer of the value in the answer; empty for a schema that is not an object. */
  pointer: string;
  name: string;
  label: string;
  help: string;
  kind: "string" | "text" | "date" | "email" | "url" | "number" | "boolean" | "choice" | "lines" | "json";
  schema: Schema;
  /** True if its group cannot be answered without it. */
  isRequired: boolean;
  /** True if the form can be sent without it, because it or a group around it is optional. */
  isOptional: boolean;
  isNullable: boolean;
  initial: string;
}

/** An object of the answer. One that is optional is left out unless the user has changed one of its fields. */
export interface Group {
  name: string;
  label: string;
  isRequired: boolean;
  members: readonly (Field | Group)[];
}

const MAX_DEPTH = 3;
const LONG_TEXT = 200;

/** Return the form of a schema: a group for an object, and one field for all else. */
export function formOf(root: Schema): Field | Group {
  return member(root, { root, path: [], isRequired: true, isOptional: false });
}

interface Place {
  root: Schema;
  path: readonly string[];
  isRequired: boolean;
  isOptional: boolean;
}

function member(schema: Schema, place: Place): Field | Group {
  const { schema: simple, isNullable } = simplify(schema, place.root);
  const isRequired = place.isRequired && !isNullable;
  const here = { ...place, isRequired, isOptional: place.isOptional || !isRequired };
  const { properties } = simple;
  if (!isSchema(properties) || here.path.length >= MAX_DEPTH) return field(simple, here, isNullable);
  const required = Array.isArray(simple.required) ? simple.required : [];
  const members = Object.entries(properties)
    .filter((entry): entry is [string, Schema] => isSchema(entry[1]))
    .map(([name, inner]) =>
      member(inner, { ...here, path: [...here.path, name], isRequired: required.includes(name) }),
    );
  return { name: here.path.at(-1) ?? "", label: labelOf(simple, here), isRequired, members };
}

function field(schema: Schema, place: Place, isNullable: boolean): Field {
  const { path, root, isRequired, isOptional } = place;
  const kind = kindOf(schema, root);
  const initial = schema.default ?? (isOptional ? undefined : schema.const);
  return {
    pointer: path.map((name) => `/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`).join(""),
    name: path.at(-1) ?? "",
    label: labelOf(schema, place),
    help: typeof schema.description === "string" ? schema.description : "",
    kind,
    schema: kind === "lines" ? { ...schema, items: itemOf(schema, root) } : schema,
    isRequired,
    isOptional,
    isNullable,
    initial: initial === undefined ? (kind === "boolean" ? "false" : "") : textOf(kind, initial),
  };
}

function labelOf(schema: Schema, { path }: Place): string {
  return typeof schema.title === "string" ? schema.title : words(path.at(-1) ?? "Answer");
}

/** Return the text of a value in a field. */
export function textOf(kind: Field["kind"], value: unknown): string {
  if (kind === "lines" && Array.isArray(value)) return value.map(asText).join("\n");
  return kind === "json" ? JSON.stringify(value, null, 2) : asText(value);
}

/** Return the fields of a form in their order. */
export function fieldsOf(form: Field | Group): Field[] {
  return isGroup(form) ? form.members.flatMap(fieldsOf) : [form];
}

export function isGroup(member: Field | Group): member is Group {
  return "members" in member;
}

/** Types of the items of a list that is written one item a line. */
const LINES = ["string", "number", "integer"];

function kindOf(schema: Schema, root: Schema): Field["kind"] {
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
      return isSchema(schema.items) && LINES.includes(String(itemOf(schema, root).type)) ? "lines" : "json";
    default:
      return "json";
  }
}

/** Return the schema of the items of a list. */
function itemOf(schema: Schema, root: Schema): Schema {
  return simplify(schema.items as Schema, root).schema;
}

export function choicesOf(schema: Schema): readonly string[] {
  return Array.isArray(schema.enum) ? schema.enum.map(asText) : [];
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
