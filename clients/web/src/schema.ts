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

/** A field whose text is no answer to the schema. The message is a sentence for the user. */
export class FieldError extends Error {
  constructor(
    readonly path: string,
    message: string,
  ) {
    super(message);
  }
}

/** The answer as data. Throws a `FieldError` for the first field that has no valid value. */
export function answerOf(
  schema: Schema,
  fields: readonly SchemaField[],
  draft: Readonly<Record<string, string>>,
): unknown {
  const [only] = fields;
  if (only?.path === "" && fields.length === 1) return read(schema, only, draft[""] ?? "");
  const answer: Schema = {};
  for (const each of fields) {
    const names = each.path.split(".");
    const value = read(inner(schema, names), each, draft[each.path] ?? "");
    if (value === undefined) continue;
    const owner = names.slice(0, -1).reduce(group, answer);
    owner[names.at(-1)!] = value;
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

/** The value of a field; undefined for an optional field that is empty. */
function read(schema: Schema, field: SchemaField, text: string): unknown {
  if (text.trim() === "") {
    if (!field.isRequired) return undefined;
    throw new FieldError(field.path, `${field.label} is required.`);
  }
  const value = parse(schema, field, text);
  const problem = problemOf(schema, value);
  if (problem !== undefined) throw new FieldError(field.path, `${field.label} ${problem}.`);
  return value;
}

function parse(schema: Schema, { path, kind, label, isInteger }: SchemaField, text: string): unknown {
  if (kind === "choice") return (schema.enum as unknown[]).find((choice) => asText(choice) === text);
  if (kind === "boolean") return text === "true";
  if (kind === "number") {
    const number = Number(text);
    if (Number.isFinite(number) && (!isInteger || Number.isInteger(number))) return number;
    throw new FieldError(path, `${label} must be ${isInteger ? "a whole number" : "a number"}.`);
  }
  if (kind !== "json") return text;
  try {
    return JSON.parse(text);
  } catch {
    throw new FieldError(path, `${label} must be JSON.`);
  }
}

interface Limit {
  keyword: string;
  isMet: (value: number, limit: number) => boolean;
  demand: (limit: number) => string;
}

const NUMBER_LIMITS: readonly Limit[] = [
  { keyword: "minimum", isMet: (value, limit) => value >= limit, demand: (limit) => `must be at least ${limit}` },
  { keyword: "maximum", isMet: (value, limit) => value <= limit, demand: (limit) => `must be at most ${limit}` },
  { keyword: "exclusiveMinimum", isMet: (value, limit) => value > limit, demand: (limit) => `must be above ${limit}` },
  { keyword: "exclusiveMaximum", isMet: (value, limit) => value < limit, demand: (limit) => `must be below ${limit}` },
];

const LENGTH_LIMITS: readonly Limit[] = [
  {
    keyword: "minLength",
    isMet: (length, limit) => length >= limit,
    demand: (limit) => `must have at least ${characters(limit)}`,
  },
  {
    keyword: "maxLength",
    isMet: (length, limit) => length <= limit,
    demand: (limit) => `must have at most ${characters(limit)}`,
  },
];

/** The demand that a number or a text does not meet, as the end of a sentence. */
function problemOf(schema: Schema, value: unknown): string | undefined {
  if (typeof value === "number") return unmet(schema, NUMBER_LIMITS, value);
  if (typeof value !== "string") return undefined;
  const lengthProblem = unmet(schema, LENGTH_LIMITS, [...value].length); // JSON Schema counts code points
  if (lengthProblem !== undefined) return lengthProblem;
  return matches(schema.pattern, value) ? undefined : `must match the pattern ${String(schema.pattern)}`;
}

function unmet(schema: Schema, limits: readonly Limit[], value: number): string | undefined {
  for (const { keyword, isMet, demand } of limits) {
    const limit = schema[keyword];
    if (typeof limit === "number" && !isMet(value, limit)) return demand(limit);
  }
  return undefined;
}

/** True if a text matches. The agent checks a pattern that is no regular expression of JavaScript. */
function matches(pattern: unknown, text: string): boolean {
  if (typeof pattern !== "string") return true;
  try {
    return new RegExp(pattern, "u").test(text);
  } catch {
    return true;
  }
}

function characters(count: number): string {
  return count === 1 ? "1 character" : `${count} characters`;
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
