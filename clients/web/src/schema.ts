/**
 * JSON Schema as form fields, and the filled form as a value.
 *
 * Objects become groups of fields. A schema without a field of its own becomes a field of JSON text.
 */

type Schema = Record<string, unknown>;

export interface SchemaField {
  /** Property names, joined by dots; empty for a schema that is not an object. */
  path: string;
  label: string;
  help: string;
  kind: "string" | "text" | "date" | "email" | "url" | "number" | "boolean" | "choice" | "json";
  choices: readonly string[];
  isRequired: boolean;
  isInteger: boolean;
  initial: string;
  minimum?: number | undefined;
  maximum?: number | undefined;
}

const MAX_DEPTH = 3;
const LONG_TEXT = 200;

export function fieldsOf(schema: Schema, path: readonly string[] = [], isRequired = true): SchemaField[] {
  const { properties } = schema;
  if (isSchema(properties) && path.length < MAX_DEPTH) {
    const required = Array.isArray(schema.required) ? schema.required : [];
    return Object.entries(properties).flatMap(([name, inner]) =>
      isSchema(inner) ? fieldsOf(inner, [...path, name], isRequired && required.includes(name)) : [],
    );
  }
  return [field(schema, path, isRequired)];
}

function field(schema: Schema, path: readonly string[], isRequired: boolean): SchemaField {
  const kind = kindOf(schema);
  const initial = schema.default ?? schema.const;
  return {
    path: path.join("."),
    label: typeof schema.title === "string" ? schema.title : words(path.at(-1) ?? "Answer"),
    help: typeof schema.description === "string" ? schema.description : "",
    kind,
    choices: choicesOf(schema),
    isRequired,
    isInteger: schema.type === "integer",
    initial: initial === undefined ? (kind === "boolean" ? "false" : "") : asText(initial),
    minimum: typeof schema.minimum === "number" ? schema.minimum : undefined,
    maximum: typeof schema.maximum === "number" ? schema.maximum : undefined,
  };
}

function kindOf(schema: Schema): SchemaField["kind"] {
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
    default:
      return "json";
  }
}

function choicesOf(schema: Schema): string[] {
  return Array.isArray(schema.enum) ? schema.enum.map(asText) : [];
}

/** The first required field that is empty. */
export function missing(fields: readonly SchemaField[], draft: Readonly<Record<string, string>>): SchemaField | null {
  return fields.find((each) => each.isRequired && (draft[each.path] ?? "").trim() === "") ?? null;
}

/** The answer as data. Throws an error with a sentence when a field cannot be read. */
export function answerOf(
  schema: Schema,
  fields: readonly SchemaField[],
  draft: Readonly<Record<string, string>>,
): unknown {
  const [only] = fields;
  if (only?.path === "" && fields.length === 1) return read(schema, only, draft[""] ?? "");
  const answer: Schema = {};
  for (const each of fields) {
    const text = draft[each.path] ?? "";
    if (text.trim() === "") continue;
    const names = each.path.split(".");
    const owner = names.slice(0, -1).reduce(group, answer);
    owner[names.at(-1)!] = read(inner(schema, names), each, text);
  }
  return answer;
}

/** Return the object of that name, and create it if it is missing. */
function group(place: Schema, name: string): Schema {
  place[name] ??= {};
  return place[name] as Schema;
}

function inner(schema: Schema, names: readonly string[]): Schema {
  return names.reduce((place, name) => (place.properties as Record<string, Schema>)[name]!, schema);
}

function read(schema: Schema, { kind, label, isInteger }: SchemaField, text: string): unknown {
  if (kind === "choice") return (schema.enum as unknown[]).find((choice) => asText(choice) === text);
  if (kind === "boolean") return text === "true";
  if (kind === "number") {
    const number = Number(text);
    if (!Number.isFinite(number) || (isInteger && !Number.isInteger(number))) throw new Error(`${label} is no number.`);
    return number;
  }
  if (kind !== "json") return text;
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(`${label} must be JSON.`);
  }
}

function asText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function words(name: string): string {
  const spaced = name
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .replaceAll("_", " ")
    .toLowerCase();
  return spaced.charAt(0).toUpperCase() + spaced.slice(1);
}

function isSchema(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
