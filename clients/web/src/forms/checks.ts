/** Demands of a schema on a value and on all that is inside it. */

import { isSchema, type Schema, simplify } from "./simplify";

/** A demand that is not met, as the end of a sentence, and the place of the value. */
export interface Problem {
  path: readonly (string | number)[];
  demand: string;
}

/** Return the first demand that a value does not meet. An undefined value is a required one that is missing. */
export function problemOf(schema: unknown, value: unknown, root: Schema): Problem | undefined {
  if (value === undefined) return { path: [], demand: "is required" };
  if (schema === false) return { path: [], demand: "is not allowed here" };
  if (!isSchema(schema)) return undefined;
  const { schema: simple, isNullable } = simplify(schema, root);
  if (value === null && isNullable) return undefined;
  const demand = unmetChoice(simple, value) ?? unmetType(simple.type, value) ?? unmetLimit(simple, value);
  const unmet = demand ?? unmetText(simple, value) ?? unmetAlternatives(simple, value, root);
  return unmet === undefined ? problemInside(simple, value, root) : { path: [], demand: unmet };
}

function problemInside(schema: Schema, value: unknown, root: Schema): Problem | undefined {
  for (const [name, inner, part] of partsOf(schema, value)) {
    const problem = problemOf(inner, part, root);
    if (problem !== undefined) return { ...problem, path: [name, ...problem.path] };
  }
  const all = Array.isArray(schema.allOf) ? schema.allOf : [];
  return all.map((each) => problemOf(each, value, root)).find((problem) => problem !== undefined);
}

/** Return the items of a list, or the members of an object and those that it lacks, with their schemas. */
function partsOf(schema: Schema, value: unknown): [string | number, unknown, unknown][] {
  const { items, prefixItems, properties, patternProperties, additionalProperties, required } = schema;
  if (Array.isArray(value)) {
    const first = Array.isArray(prefixItems) ? prefixItems : [];
    return value.map((item, index) => [index, first[index] ?? items, item]);
  }
  if (!isSchema(value)) return [];
  const names = new Set([...(Array.isArray(required) ? required : []), ...Object.keys(value)]);
  const other = patternProperties === undefined ? additionalProperties : undefined;
  return [...names].map((name) => [name, memberOf(properties, name) ?? other, memberOf(value, name)]);
}

/** Return a member of an object, and undefined where there is none. */
export function memberOf(object: unknown, name: string): unknown {
  return isSchema(object) && Object.hasOwn(object, name) ? object[name] : undefined;
}

function unmetChoice({ enum: choices }: Schema, value: unknown): string | undefined {
  if (!Array.isArray(choices)) return undefined;
  const texts = choices.map((choice) => JSON.stringify(choice));
  if (texts.includes(JSON.stringify(value))) return undefined;
  return texts.length === 1 ? `must be ${texts[0]}` : `must be one of ${texts.join(", ")}`;
}

function unmetAlternatives({ anyOf, oneOf }: Schema, value: unknown, root: Schema): string | undefined {
  const alternatives = [anyOf, oneOf].find(Array.isArray);
  if (alternatives === undefined || alternatives.some((each) => problemOf(each, value, root) === undefined)) {
    return undefined;
  }
  return "has none of the allowed forms";
}

const TYPES: Record<string, { isMet: (value: unknown) => boolean; demand: string }> = {
  array: { isMet: Array.isArray, demand: "must be a JSON list, such as [1, 2]" },
  object: { isMet: isSchema, demand: 'must be a JSON object, such as {"a": 1}' },
  string: { isMet: (value) => typeof value === "string", demand: "must be a text" },
  boolean: { isMet: (value) => typeof value === "boolean", demand: "must be true or false" },
  number: { isMet: Number.isFinite, demand: "must be a number" },
  integer: { isMet: Number.isInteger, demand: "must be a whole number" },
  null: { isMet: (value) => value === null, demand: "must be null" },
};

function unmetType(type: unknown, value: unknown): string | undefined {
  const known = [type]
    .flat()
    .flatMap((name) => (memberOf(TYPES, String(name)) as (typeof TYPES)[string] | undefined) ?? []);
  if (known.length > 0 && !known.some(({ isMet }) => isMet(value)))
    return known.map(({ demand }) => demand).join(" or ");
  return Number.isInteger(value) && !Number.isSafeInteger(value) ? "has too many digits" : undefined;
}

interface Limit {
  keyword: string;
  isMet: (size: number, limit: number) => boolean;
  demand: (limit: number) => string;
}

const NUMBER_LIMITS: readonly Limit[] = [
  { keyword: "minimum", isMet: (value, limit) => value >= limit, demand: (limit) => `must be at least ${limit}` },
  { keyword: "maximum", isMet: (value, limit) => value <= limit, demand: (limit) => `must be at most ${limit}` },
  { keyword: "exclusiveMinimum", isMet: (value, limit) => value > limit, demand: (limit) => `must be above ${limit}` },
  { keyword: "exclusiveMaximum", isMet: (value, limit) => value < limit, demand: (limit) => `must be below ${limit}` },
];
const TEXT_LIMITS = sizeLimits("minLength", "maxLength", "character");
const LIST_LIMITS = sizeLimits("minItems", "maxItems", "item");

function sizeLimits(minimum: string, maximum: string, unit: string): readonly Limit[] {
  const count = (limit: number) => `${limit} ${unit}${limit === 1 ? "" : "s"}`;
  return [
    {
      keyword: minimum,
      isMet: (size, limit) => size >= limit,
      demand: (limit) => `must have at least ${count(limit)}`,
    },
    { keyword: maximum, isMet: (size, limit) => size <= limit, demand: (limit) => `must have at most ${count(limit)}` },
  ];
}

function unmetLimit(schema: Schema, value: unknown): string | undefined {
  if (typeof value === "number") return unmet(schema, NUMBER_LIMITS, value);
  if (Array.isArray(value)) return unmet(schema, LIST_LIMITS, value.length);
  if (typeof value === "string") return unmet(schema, TEXT_LIMITS, [...value].length); // JSON Schema counts code points
  return undefined;
}

function unmet(schema: Schema, limits: readonly Limit[], size: number): string | undefined {
  for (const { keyword, isMet, demand } of limits) {
    const limit = schema[keyword];
    if (typeof limit === "number" && !isMet(size, limit)) return demand(limit);
  }
  return undefined;
}

const FORMATS: Record<string, { isMet: (text: string) => boolean; demand: string }> = {
  email: { isMet: (text) => /^[^\s@]+@[^\s@]+$/.test(text), demand: "must be an email address" },
  uri: { isMet: (text) => URL.canParse(text), demand: "must be an address, such as https://example.com" },
  date: {
    isMet: (text) => /^\d{4}-\d\d-\d\d$/.test(text) && isDate(text),
    demand: "must be a date, such as 2026-11-25",
  },
  "date-time": {
    isMet: (text) => /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d/i.test(text) && isDate(text),
    demand: "must be a date and a time, such as 2026-11-25T09:30:00Z",
  },
};

function isDate(text: string): boolean {
  return !Number.isNaN(Date.parse(text));
}

function unmetText({ format, pattern }: Schema, value: unknown): string | undefined {
  if (typeof value !== "string") return undefined;
  const known = typeof format === "string" && Object.hasOwn(FORMATS, format) ? FORMATS[format] : undefined;
  if (known !== undefined && !known.isMet(value)) return known.demand;
  return matches(pattern, value) ? undefined : `must match the pattern ${String(pattern)}`;
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
