/**
 * Addresses of the server, the session of this browser, and the settings of the page.
 *
 * Rule: addresses are relative to the page, so it works behind any path prefix.
 */

const SESSION_KEY = "agui.session";
export const SESSION_HEADER = "X-Amzn-Bedrock-AgentCore-Runtime-Session-Id";

const root = document.documentElement.dataset;

export const title = root.title || "Chat";
/** The headline of a new chat. */
export const greeting = root.greeting || title;
/** The address of an image beside the title; empty if there is none. */
export const logo = root.logo ?? "";
export const accent = root.accent || "#4a5bd4";

export function endpoint(path: string): string {
  return new URL(path, document.baseURI.replace(/[?#].*$/, "")).href;
}

export function newId(): string {
  if (crypto.randomUUID !== undefined) return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16)); // a page that came over plain HTTP has no randomUUID
  return [...bytes].map((byte, index) => ([4, 6, 8, 10].includes(index) ? "-" : "") + hex(byte)).join("");
}

function hex(byte: number): string {
  return byte.toString(16).padStart(2, "0");
}

/**
 * One session for all tabs of this browser, so that they see the same threads.
 *
 * AgentCore takes ids of 33 to 256 characters. An id of another length is replaced.
 */
function loadSession(): string {
  const stored = read(SESSION_KEY);
  if (stored !== null && stored.length >= 33 && stored.length <= 256) return stored;
  const created = newId();
  write(SESSION_KEY, created);
  return created;
}

type Storage = "localStorage" | "sessionStorage";

/** Read a setting of this browser, or of this tab; null where storage is turned off. */
export function read(key: string, storage: Storage = "localStorage"): string | null {
  try {
    return window[storage].getItem(key);
  } catch {
    return null;
  }
}

export function write(key: string, value: string, storage: Storage = "localStorage"): void {
  try {
    window[storage].removeItem(key); // an old value must not outlive one that is too large
    window[storage].setItem(key, value);
  } catch {
    // The setting then holds until the page is closed.
  }
}

export const session = loadSession();
