import assert from "node:assert/strict";
import { test } from "node:test";
import { answerOf, fieldsOf, missing } from "../src/schema";

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
  assert.equal(missing(fields, {})?.path, "name");
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
