import assert from "node:assert/strict";
import { test } from "node:test";
import { answerOf } from "../src/forms/answer";
import { parseArguments } from "../src/forms/arguments";
import { fieldsOf, formOf } from "../src/forms/fields";

const SCHEMA = {
  type: "object",
  properties: {
    amount: { type: "number" },
    to: { type: "string" },
    speed: { type: "string", enum: ["slow", "fast"], default: "slow" },
    urgent: { type: "boolean" },
    place: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
    tags: { type: "array" },
    labels: { type: "array", items: { type: "string", enum: ["red", "blue"] } },
    sizes: { type: "array", items: { type: "integer" } },
    lines: { type: "array", items: { $ref: "#/$defs/Line" } },
    pair: { type: "array", prefixItems: [{ type: "integer" }, { type: "string" }] },
    key: { anyOf: [{ type: "integer" }, { type: "string", maxLength: 3 }] },
    version: { const: 2 },
    both: { allOf: [{ minimum: 1 }, { maximum: 3 }] },
    extra: { type: "object", additionalProperties: { type: "integer" } },
    note: { anyOf: [{ type: "string" }, { type: "null" }] },
  },
  required: ["amount", "to"],
  $defs: {
    Line: {
      type: "object",
      properties: { name: { type: "string" }, count: { type: "integer", minimum: 1 }, inner: { $ref: "#/$defs/Line" } },
      required: ["name"],
      additionalProperties: false,
    },
  },
};
const BEFORE = { amount: 20, to: "Ann", place: { city: "Lisbon" }, tags: ["a"] };

function edited(draft: Record<string, string>, before: Record<string, unknown> = BEFORE): unknown {
  return answerOf(SCHEMA, formOf(SCHEMA, before), draft);
}

function kindsOf(before: Record<string, unknown>): Record<string, string> {
  return Object.fromEntries(fieldsOf(formOf(SCHEMA, before)).map(({ pointer, kind }) => [pointer, kind]));
}

test("a changed argument has the type that the tool takes, and the others stay", () => {
  assert.deepEqual(edited({}), BEFORE);
  assert.deepEqual(edited({ "/amount": "5", "/speed": "fast" }), { ...BEFORE, amount: 5, speed: "fast" });
});

test("values that nobody has changed stay exactly as they were, at every depth", () => {
  const before = {
    to: " Ann\r\nand Bob ",
    amount: 1e21,
    labels: [],
    place: { city: "", street: "Main" },
    note: null,
    other: { a: [null] },
  };
  assert.deepEqual(edited({ "/amount": "1" }, before), { ...before, amount: 1 });
  assert.deepEqual(edited({ "/place/city": "Oslo" }, { ...before, amount: 1 }), {
    ...before,
    amount: 1,
    place: { city: "Oslo", street: "Main" },
  });
});

test("a text of several lines has a field of several lines", () => {
  assert.equal(kindsOf({ to: "a" })["/to"], "string");
  assert.equal(kindsOf({ to: "a\nb" })["/to"], "text");
});

test("what a field would change is edited as JSON", () => {
  const schema = { type: "object", properties: { names: { type: "array", items: { type: "string" } } } };
  const kindOf = (names: unknown) => fieldsOf(formOf(schema, { names }))[0]!.kind;
  assert.equal(kindOf(["a", "b c"]), "lines");
  for (const names of [[""], ["a\nb"], [" a"], [1], "a"]) assert.equal(kindOf(names), "json");
  assert.equal(kindsOf({ urgent: "yes" })["/urgent"], "json");
  assert.equal(kindsOf({ speed: "never" })["/speed"], "json");
});

for (const [name, wrong, demand] of [
  ["urgent", "yes", "urgent must be true or false."],
  ["to", 6, "to must be a text."],
  ["amount", "6", "amount must be a number."],
  ["speed", "never", 'speed must be one of "slow", "fast".'],
  ["place", {}, "place › city is required."],
  ["labels", ["red", "green"], 'labels › item 2 must be one of "red", "blue".'],
  ["sizes", [1, true], "sizes › item 2 must be a whole number."],
  ["lines", [{ name: "a" }, {}], "lines › item 2 › name is required."],
  ["lines", [{ name: "a", count: 0 }], "lines › item 1 › count must be at least 1."],
  ["lines", [{ name: "a", inner: { name: "b", size: 1 } }], "lines › item 1 › inner › size is not allowed here."],
  ["pair", [1, 2], "pair › item 2 must be a text."],
  ["key", "long", "key has none of the allowed forms."],
  ["version", 1, "version must be 2."],
  ["both", 4, "both must be at most 3."],
  ["extra", { a: "b" }, "extra › a must be a whole number."],
] as const) {
  test(`${name} as ${JSON.stringify(wrong)} is refused in the JSON view`, () => {
    const text = JSON.stringify({ ...BEFORE, [name]: wrong });
    assert.throws(() => parseArguments(text, SCHEMA), { message: demand });
  });
}

test("arguments that the tool takes are sent as they were written in the JSON view", () => {
  const value = {
    ...BEFORE,
    urgent: false,
    labels: ["red"],
    lines: [{ name: "", count: 1, inner: { name: "b" } }],
    pair: [1, "a"],
    key: "abc",
    version: 2,
    both: 3,
    extra: { a: 1 },
    note: null,
    constructor: { unknown: [true] },
  };
  assert.deepEqual(parseArguments(JSON.stringify(value), SCHEMA), value);
});

test("a wrong field is refused by its label, also for what is inside it", () => {
  assert.throws(() => edited({ "/amount": "much" }), { pointer: "/amount", message: "Amount must be a number." });
  assert.throws(() => edited({ "/to": "" }), { pointer: "/to", message: "To is required." });
  assert.throws(() => edited({ "/sizes": "1\nmany" }), { pointer: "/sizes", message: /^Sizes › item 2 must/ });
  assert.throws(() => edited({ "/lines": '[{"name": 1}]' }), {
    pointer: "/lines",
    message: "Lines › item 1 › name must be a text.",
  });
});

test("arguments that the schema does not have are kept, unless the tool refuses them", () => {
  assert.deepEqual(edited({}, { ...BEFORE, more: 1 }), { ...BEFORE, more: 1 });
  const strict = { ...SCHEMA, additionalProperties: false };
  const text = '{"amount": 1, "to": "Ann", "more": 1}';
  assert.throws(() => parseArguments(text, strict), { message: "more is not allowed here." });
});

test("JSON that is no object is refused, and without a schema every object is taken", () => {
  assert.throws(() => parseArguments("[1]", SCHEMA), /must be a JSON object/);
  assert.deepEqual(parseArguments('{"a": [1]}', undefined), { a: [1] });
});
