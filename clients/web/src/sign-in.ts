/**
 * Sign-in at the issuer of the server's tokens: authorization code with PKCE.
 *
 * Rule: the token is in memory only. While the user is at the issuer, the tab keeps what belongs to that one sign-in,
 * and forgets it when the user is back.
 */

import { endpoint } from "./config";
import { Store } from "./store";
import { token } from "./token";

interface SignIn {
  clientId: string;
  scope: string;
  authorizationEndpoint: string;
  tokenEndpoint: string;
}

interface Attempt {
  state: string;
  verifier: string;
  /** The thread that was shown, as the address has it. */
  hash: string;
}

const KEY = "agui.sign-in";
const described = document.documentElement.dataset.signIn;
const signIn: SignIn | null = described === undefined ? null : (JSON.parse(described) as SignIn);

export const canSignIn = signIn !== null;
/** A sentence about the last attempt, if it has failed. */
export const signInProblem = new Store("");

/** Go to the issuer. The page is loaded again when the user comes back. */
export async function beginSignIn(): Promise<void> {
  if (signIn === null) return;
  if (crypto.subtle === undefined) {
    signInProblem.set("Signing in needs https, or localhost.");
    return;
  }
  const attempt: Attempt = { state: random(), verifier: random(), hash: location.hash };
  sessionStorage.setItem(KEY, JSON.stringify(attempt));
  const address = new URL(signIn.authorizationEndpoint);
  const query = {
    response_type: "code",
    client_id: signIn.clientId,
    redirect_uri: endpoint(""),
    scope: signIn.scope,
    state: attempt.state,
    code_challenge: await challengeOf(attempt.verifier),
    code_challenge_method: "S256",
  };
  for (const [name, value] of Object.entries(query)) address.searchParams.set(name, value);
  location.assign(address);
}

/** Get the token if the user comes back from the issuer. The address loses the code, which is good once. */
export async function finishSignIn(): Promise<void> {
  const answer = new URLSearchParams(location.search);
  const kept = signIn === null || !answer.has("state") ? null : sessionStorage.getItem(KEY);
  if (signIn === null || kept === null) return;
  sessionStorage.removeItem(KEY);
  const { state, verifier, hash } = JSON.parse(kept) as Attempt;
  history.replaceState(null, "", location.pathname + hash);
  const code = answer.get("code");
  if (answer.get("state") !== state || code === null) {
    const why = answer.get("error_description") ?? answer.get("error");
    signInProblem.set(why === null ? "The sign-in did not come from this page. Try again." : `Not signed in: ${why}`);
    return;
  }
  const form = { grant_type: "authorization_code", code, redirect_uri: endpoint(""), client_id: signIn.clientId };
  try {
    const response = await fetch(signIn.tokenEndpoint, {
      method: "POST",
      body: new URLSearchParams({ ...form, code_verifier: verifier }),
    });
    const issued = (await response.json()) as { access_token?: string; error?: string; error_description?: string };
    if (issued.access_token === undefined) throw new Error(issued.error_description ?? issued.error);
    token.set(issued.access_token);
  } catch (error) {
    signInProblem.set(`The issuer gave no token. ${error instanceof Error ? error.message : ""}`);
  }
}

export function signOut(): void {
  token.set("");
}

function random(): string {
  return base64(crypto.getRandomValues(new Uint8Array(32)));
}

async function challengeOf(verifier: string): Promise<string> {
  return base64(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier))));
}

function base64(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replace(/=+$/, "");
}
