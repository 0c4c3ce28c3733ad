/** What model calls cost, where the server knows the prices of their models. */

import type { TokenUsage } from "@ag-ui/core";

/** US dollars for a million tokens. */
export interface Price {
  input: number;
  output: number;
  cachedInput?: number;
}

/** Return the cost in US dollars as people read it, or an empty text if a model has no price. */
export function costOf(usage: readonly TokenUsage[], prices: Readonly<Record<string, Price>>): string {
  let dollars = 0;
  for (const { model, inputTokens = 0, outputTokens = 0, cachedInputTokens = 0 } of usage) {
    const price = prices[model ?? ""];
    if (price === undefined) return "";
    const { input, output, cachedInput = input } = price;
    dollars += (inputTokens - cachedInputTokens) * input + cachedInputTokens * cachedInput + outputTokens * output;
  }
  return usage.length === 0 ? "" : `$${(dollars / 1_000_000).toFixed(dollars < 1_000_000 ? 4 : 2)}`;
}
