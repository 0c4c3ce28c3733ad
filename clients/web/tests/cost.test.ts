import assert from "node:assert/strict";
import { test } from "node:test";
import { costOf } from "../src/state/cost";

const PRICES = { small: { input: 1, output: 4, cachedInput: 0.5 }, plain: { input: 1, output: 4 } };

test("calls cost what their models cost, and cached input its own price", () => {
  const usage = { inputTokens: 1_000_000, outputTokens: 250_000, cachedInputTokens: 500_000 };
  assert.equal(costOf([{ ...usage, model: "small" }], PRICES), "$1.75");
  assert.equal(costOf([{ ...usage, model: "plain" }], PRICES), "$2.00");
  assert.equal(
    costOf(
      [
        { ...usage, model: "small" },
        { ...usage, model: "plain" },
      ],
      PRICES,
    ),
    "$3.75",
  );
  assert.equal(costOf([{ inputTokens: 96, outputTokens: 28, model: "small" }], PRICES), "$0.0002");
});

test("nothing is said of calls without a price", () => {
  assert.equal(
    costOf(
      [
        { inputTokens: 1, model: "small" },
        { inputTokens: 1, model: "other" },
      ],
      PRICES,
    ),
    "",
  );
  assert.equal(costOf([], PRICES), "");
});
