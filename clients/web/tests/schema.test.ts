import assert from "node:assert/strict";
import { test } from "node:test";
import { answerOf, fieldsOf } from "../src/schema";

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
    fieldsOf(schema).map(({ path, kind, isRequired }) => [path, kind, isRequired]),
    [
      ["name", "string", true],
      ["size", "number", false],
      ["kind", "choice", false],
      ["more.note", "string", false],
      ["list", "json", false],
    ],
  );
});

test("the answer has the types of the schema and leaves out what is empty", () => {
  const fields = fieldsOf(schema);
  const draft = { name: "x", size: "3", kind: "2", "more.note": "n", list: "[1]" };
  assert.deepEqual(answerOf(schema, fields, draft), { name: "x", size: 3, kind: 2, more: { note: "n" }, list: [1] });
  assert.deepEqual(answerOf(schema, fields, { name: "x" }), { name: "x" });
});

test("a required field that is empty is named", () => {
  assert.throws(() => answerOf(schema, fieldsOf(schema), {}), { path: "name", message: "Name is required." });
});

test("what cannot be read is named", () => {
  const fields = fieldsOf(schema);
  assert.throws(() => answerOf(schema, fields, { name: "x", size: "1.5" }), /Size/);
  assert.throws(() => answerOf(schema, fields, { name: "x", list: "[" }), /List/);
});

test("a schema without properties is one field of JSON", () => {
  const fields = fieldsOf({});
  assert.deepEqual(answerOf({}, fields, { "": '{"a":1}' }), { a: 1 });
});

const LIMITED = {
  type: "object",
  properties: {
    count: { type: "integer", minimum: 1, maximum: 9 },
    share: { type: "number", exclusiveMinimum: 0, exclusiveMaximum: 1 },
    code: { type: "string", minLength: 2, maxLength: 4, pattern: "^[a-z😀]+$" },
    other: { type: "string", pattern: "(?P<python>x)" },
  },
};

for (const [path, refused, message] of [
  ["count", "0", "Count must be at least 1."],
  ["count", "10", "Count must be at most 9."],
  ["share", "0", "Share must be above 0."],
  ["share", "1", "Share must be below 1."],
  ["code", "a", "Code must have at least 2 characters."],
  ["code", "abcde", "Code must have at most 4 characters."],
  ["code", "ab1", "Code must match the pattern ^[a-z😀]+$."],
] as const) {
  test(`${path} is refused where it is ${refused}`, () => {
    assert.throws(() => answerOf(LIMITED, fieldsOf(LIMITED), { [path]: refused }), { path, message });
  });
}

test("values at their limits are answers, and a pattern of another language is left to the agent", () => {
  for (const draft of [
    { count: "1", share: "0.5", code: "ab", other: "y" },
    { count: "9", share: "0.5", code: "😀😀😀😀", other: "y" },
  ]) {
    const answer = { count: Number(draft.count), share: 0.5, code: draft.code, other: "y" };
    assert.deepEqual(answerOf(LIMITED, fieldsOf(LIMITED), draft), answer);
  }
});
