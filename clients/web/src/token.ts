/**
 * The bearer token that the user has entered.
 *
 * Rule: it is kept in memory only. It is gone when the page is loaded again, and no other tab has it.
 */

import { Store } from "./store";

export const token = new Store("");

/** The header of a plain request; none without a token. */
export function authorization(): Record<string, string> {
  return token.value === "" ? {} : { Authorization: `Bearer ${token.value}` };
}
