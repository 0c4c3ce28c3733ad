import assert from "node:assert/strict";
import { test } from "node:test";
import { argumentsOf, draftOf, parseArguments } from "../src/forms/arguments";
import { formOf } from "../src/forms/fields";

const SCHEMA = {
  type: "object",
  properties: {
    amount: { type: "number" },
    to: { type: "string" },
    speed: { type: "string", enum: ["slow", "fast"], default: "slow" },
    place: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
    tags: { type: "array" },
  },
  required: ["amount", "to"],
};
const BEFORE = { amount: 20, to: "Ann", place: { city: "Lisbon" }, tags: ["a"] };
const DRAFT = draftOf(formOf(SCHEMA), BEFORE);

test("arguments that nobody has changed are the same again", () => {
  assert.deepEqual(argumentsOf(SCHEMA, DRAFT, BEFORE), BEFORE);
});

test("a changed argument has the type that the tool takes", () => {
  assert.deepEqual(argumentsOf(SCHEMA, { ...DRAFT, "/amount": "5", "/speed": "fast" }, BEFORE), {
    ...BEFORE,
    amount: 5,
    speed: "fast",
  });
});

test("an argument of a wrong type is refused by name", () => {
  assert.throws(() => argumentsOf(SCHEMA, { ...DRAFT, "/amount": "much" }, BEFORE), /Amount must be a number/);
  assert.throws(() => parseArguments('{"amount": "much", "to": "Ann"}', SCHEMA), /Amount must be a number/);
  assert.throws(() => parseArguments('{"amount": 1}', SCHEMA), /To is required/);
  assert.throws(() => parseArguments("[1]", SCHEMA), /must be a JSON object/);
});

test("arguments that the schema does not have are kept, unless the tool refuses them", () => {
  assert.deepEqual(argumentsOf(SCHEMA, DRAFT, { ...BEFORE, note: 1 }), { note: 1, ...BEFORE });
  const strict = { ...SCHEMA, additionalProperties: false };
  assert.throws(() => parseArguments('{"amount": 1, "to": "Ann", "note": 1}', strict), /no argument “note”/);
});

test("without a schema any JSON object is taken", () => {
  assert.deepEqual(parseArguments('{"a": [1]}', undefined), { a: [1] });
});
