/** Demands of a schema on one value: its type, its size, its format and its pattern. */

import { isSchema, type Schema } from "./simplify";

/** Return the demand that a value does not meet, as the end of a sentence. */
export function problemOf(schema: Schema, value: unknown): string | undefined {
  return unmetType(schema.type, value) ?? unmetLimit(schema, value) ?? unmetText(schema, value);
}

function unmetType(type: unknown, value: unknown): string | undefined {
  if (type === "array") return Array.isArray(value) ? undefined : "must be a JSON list, such as [1, 2]";
  if (type === "object") return isSchema(value) ? undefined : 'must be a JSON object, such as {"a": 1}';
  if (type === "number") return Number.isFinite(value) ? undefined : "must be a number";
  if (type !== "integer") return undefined;
  if (!Number.isInteger(value)) return "must be a whole number";
  return Number.isSafeInteger(value) ? undefined : "has too many digits";
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
