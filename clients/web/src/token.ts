/**
 * The bearer token that the user has entered.
 *
 * Rule: the token is in memory only. A reload drops it, and no other tab has it.
 */

import { Store } from "./store";

export const token = new Store("");

/** Return the header with the token, or no header without a token. */
export function authorization(): Record<string, string> {
  return token.value === "" ? {} : { Authorization: `Bearer ${token.value}` };
}
