import assert from "node:assert/strict";
import { test } from "node:test";
import { answerOf } from "../src/forms/answer";
import { choicesOf, fieldsOf, formOf } from "../src/forms/fields";

function answer(schema: Record<string, unknown>, draft: Record<string, string>): unknown {
  return answerOf(schema, formOf(schema), draft);
}

const schema = {
  type: "object",
  properties: {
    name: { type: "string" },
    size: { type: "integer" },
    kind: { enum: ["a", 2, null] },
    more: { type: "object", properties: { note: { type: "string" } } },
    list: { type: "array" },
  },
  required: ["name"],
};

test("each property is a field, and those of inner objects as well", () => {
  assert.deepEqual(
    fieldsOf(formOf(schema)).map(({ pointer, kind, isRequired }) => [pointer, kind, isRequired]),
    [
      ["/name", "string", true],
      ["/size", "number", false],
      ["/kind", "choice", false],
      ["/more/note", "string", false],
      ["/list", "json", false],
    ],
  );
});

test("the answer has the types of the schema and leaves out what is empty", () => {
  const draft = { "/name": "x", "/size": "3", "/kind": "2", "/more/note": "n", "/list": "[1]" };
  assert.deepEqual(answer(schema, draft), { name: "x", size: 3, kind: 2, more: { note: "n" }, list: [1] });
  assert.deepEqual(answer(schema, { "/name": "x" }), { name: "x" });
});

test("a required field that is empty is named", () => {
  assert.throws(() => answer(schema, {}), { pointer: "/name", message: "Name is required." });
});

test("what cannot be read is named", () => {
  assert.throws(() => answer(schema, { "/name": "x", "/size": "1.5" }), /Size must be a whole number/);
  assert.throws(() => answer(schema, { "/name": "x", "/list": "[" }), /List must be JSON/);
});

test("a schema without properties is one field of JSON", () => {
  assert.deepEqual(answer({}, { "": '{"a":1}' }), { a: 1 });
});

const LIMITED = {
  type: "object",
  properties: {
    count: { type: "integer", minimum: 1, maximum: 9 },
    share: { type: "number", exclusiveMinimum: 0, exclusiveMaximum: 1 },
    code: { type: "string", minLength: 2, maxLength: 4, pattern: "^[a-z😀]+$" },
    other: { type: "string", pattern: "(?P<python>x)" },
    exact: { type: "integer" },
    list: { type: "array", minItems: 1 },
    object: { type: "object" },
    email: { type: "string", format: "email" },
    day: { type: "string", format: "date" },
    moment: { type: "string", format: "date-time" },
    link: { type: "string", format: "uri" },
  },
};

for (const [name, refused, message] of [
  ["count", "0", "Count must be at least 1."],
  ["count", "10", "Count must be at most 9."],
  ["share", "0", "Share must be above 0."],
  ["share", "1", "Share must be below 1."],
  ["code", "a", "Code must have at least 2 characters."],
  ["code", "abcde", "Code must have at most 4 characters."],
  ["code", "ab1", "Code must match the pattern ^[a-z😀]+$."],
  ["exact", "12345678901234567890", "Exact has too many digits."],
  ["list", "{}", "List must be a JSON list, such as [1, 2]."],
  ["list", "[]", "List must have at least 1 item."],
  ["object", "[]", 'Object must be a JSON object, such as {"a": 1}.'],
  ["email", "soon", "Email must be an email address."],
  ["day", "2026-13-01", "Day must be a date, such as 2026-11-25."],
  ["moment", "soon", "Moment must be a date and a time, such as 2026-11-25T09:30:00Z."],
  ["link", "example", "Link must be an address, such as https://example.com."],
] as const) {
  test(`${name} is refused where it is ${refused}`, () => {
    const pointer = `/${name}`;
    assert.throws(() => answer(LIMITED, { [pointer]: refused }), { pointer, message });
  });
}

test("values at their limits are answers, and a pattern of another language is left to the agent", () => {
  for (const [count, code] of [
    ["1", "ab"],
    ["9", "😀😀😀😀"],
  ] as const) {
    const expected = { count: Number(count), share: 0.5, code, other: "y", moment: "2026-11-25T09:30:00+01:00" };
    const draft = { "/count": count, "/share": "0.5", "/code": code, "/other": "y", "/moment": expected.moment };
    assert.deepEqual(answer(LIMITED, draft), expected);
  }
});

/** As Pydantic writes a model with an optional text, an optional number, a constant, an inner model and a group. */
const PYDANTIC = {
  $defs: {
    Address: {
      type: "object",
      properties: { street: { type: "string" }, "a.b/c": { type: "string", default: "d" } },
      required: ["street"],
    },
    Extras: {
      type: "object",
      properties: { gift: { type: "boolean" }, note: { type: "string" } },
      required: ["note"],
    },
    Tree: { type: "object", properties: { next: { $ref: "#/$defs/Tree" } } },
  },
  type: "object",
  properties: {
    note: { anyOf: [{ type: "string" }, { type: "null" }], title: "Note" },
    age: { type: ["integer", "null"], default: null },
    kind: { const: "order", title: "Kind" },
    address: { $ref: "#/$defs/Address" },
    extras: { allOf: [{ $ref: "#/$defs/Extras" }] },
    tree: { $ref: "#/$defs/Tree" },
    lost: { $ref: "#/$defs/Lost" },
    away: { $ref: "https://example.com/schema" },
  },
  required: ["note", "kind", "address"],
};

test("references, optional types and constants are fields of their own kind", () => {
  const kinds = fieldsOf(formOf(PYDANTIC)).map(({ pointer, kind, isRequired }) => [pointer, kind, isRequired]);
  assert.deepEqual(kinds, [
    ["/note", "string", false],
    ["/age", "number", false],
    ["/kind", "choice", true],
    ["/address/street", "string", true],
    ["/address/a.b~1c", "string", false],
    ["/extras/gift", "boolean", false],
    ["/extras/note", "string", true],
    ["/tree/next/next", "json", false],
    ["/lost", "json", false],
    ["/away", "json", false],
  ]);
});

test("an optional group is left out until a field of it is changed, and then it must be complete", () => {
  const draft = { "/address/street": "Main" };
  const expected = { note: null, kind: "order", address: { street: "Main", "a.b/c": "d" } };
  assert.deepEqual(answer(PYDANTIC, draft), { ...expected, age: null });
  assert.throws(() => answer(PYDANTIC, { ...draft, "/extras/gift": "true" }), { pointer: "/extras/note" });
  const complete = { ...draft, "/extras/gift": "true", "/extras/note": "n", "/age": "7" };
  assert.deepEqual(answer(PYDANTIC, complete), { ...expected, age: 7, extras: { gift: true, note: "n" } });
});

test("a required object is part of the answer where all its fields are optional", () => {
  const inner = { type: "object", properties: { note: { type: "string" } } };
  assert.deepEqual(answer({ type: "object", properties: { more: inner }, required: ["more"] }, {}), { more: {} });
});

test("a list of texts or numbers is written one item a line", () => {
  const schema = {
    type: "object",
    properties: {
      tags: { type: "array", items: { type: "string" }, default: ["a", "b"] },
      sizes: { type: "array", items: { $ref: "#/$defs/Size" } },
    },
    required: ["sizes"],
    $defs: { Size: { type: "integer", minimum: 1 } },
  };
  assert.deepEqual(answer(schema, { "/sizes": "1\n 2 \n" }), { tags: ["a", "b"], sizes: [1, 2] });
  assert.deepEqual(answer(schema, { "/tags": "", "/sizes": "" }), { sizes: [] });
  assert.throws(() => answer(schema, { "/sizes": "1\n0" }), /Sizes › item 2 must be at least 1/);
});

/** As MCP servers ask: titled options, several options, and defaults of each kind. */
const ELICITED = {
  type: "object",
  properties: {
    size: {
      type: "string",
      oneOf: [
        { const: "s", title: "Small" },
        { const: "l", title: "Large" },
      ],
      default: "l",
    },
    colour: { type: "string", enum: ["r", "b"], enumNames: ["Red", "Blue"] },
    extras: { type: "array", minItems: 1, items: { anyOf: [{ const: "a", title: "Almonds" }, { const: "c" }] } },
    days: { type: "array", items: { type: "string", enum: ["Mon", "Tue"] }, default: ["Tue"] },
    gift: { type: "boolean", default: true },
    count: { type: "integer", default: 2 },
  },
  required: ["size", "extras"],
};

test("options are chosen by their titles, and several of them in a list", () => {
  const fields = fieldsOf(formOf(ELICITED));
  const labels = fields.map(({ kind, schema }) => [
    kind,
    choicesOf(kind === "choices" ? (schema.items as typeof schema) : schema).map(({ label }) => label),
  ]);
  assert.deepEqual(labels, [
    ["choice", ["Small", "Large"]],
    ["choice", ["Red", "Blue"]],
    ["choices", ["Almonds", "c"]],
    ["choices", ["Mon", "Tue"]],
    ["boolean", []],
    ["number", []],
  ]);
  const defaults = { size: "l", days: ["Tue"], gift: true, count: 2 };
  assert.deepEqual(answer(ELICITED, { "/extras": "a\nc" }), { ...defaults, extras: ["a", "c"] });
  const draft = { "/size": "s", "/colour": "b", "/extras": "c", "/days": "", "/gift": "false", "/count": "" };
  assert.deepEqual(answer(ELICITED, draft), { size: "s", colour: "b", extras: ["c"], gift: false });
  assert.throws(() => answer(ELICITED, {}), { pointer: "/extras", message: "Extras must have at least 1 item." });
});
