/** Find what an event changed in the shared state, as JSON pointers. */

const MAX_COMPARED = 5_000;
const MAX_CHANGED = 500;

export function escapePointer(key: string): string {
  return key.replaceAll("~", "~0").replaceAll("/", "~1");
}

/** Compare two values and list their differences. The work is bounded, also for a state of several megabytes. */
export function changedPaths(before: unknown, after: unknown): string[] {
  const changed: string[] = [];
  const pending: [unknown, unknown, string][] = [[before, after, ""]];
  for (let compared = 0; pending.length > 0 && compared < MAX_COMPARED && changed.length < MAX_CHANGED; compared++) {
    const [old, now, path] = pending.pop()!;
    if (Object.is(old, now)) continue;
    if (!isContainer(old) || !isContainer(now) || Array.isArray(old) !== Array.isArray(now)) {
      changed.push(path);
      continue;
    }
    for (const key of Object.keys(now)) {
      if (pending.length > MAX_COMPARED) break;
      pending.push([old[key], now[key], `${path}/${escapePointer(key)}`]);
    }
    if (Object.keys(old).length > Object.keys(now).length) changed.push(path);
  }
  return changed;
}

function isContainer(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
