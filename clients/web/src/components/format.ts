/** Numbers and times for people. */

export function duration(milliseconds: number): string {
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 60_000) return `${(milliseconds / 1000).toFixed(1)} s`;
  return `${Math.floor(milliseconds / 60_000)} min ${Math.round((milliseconds % 60_000) / 1000)} s`;
}

export function count(value: number): string {
  return value.toLocaleString("en");
}

/** The heading under which a thread stands. */
export function day(seconds: number, now = new Date()): string {
  const today = new Date(now.getFullYear(), now.getMonth(), now.getDate()).getTime();
  const days = Math.ceil((today - seconds * 1000) / 86_400_000);
  if (days <= 0) return "Today";
  if (days === 1) return "Yesterday";
  return days <= 7 ? "Last 7 days" : "Earlier";
}

/** JSON as it is read best; text that is no JSON as it is. */
export function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** The arguments of a call on one line. */
export function oneLine(text: string, limit = 90): string {
  const line = text
    .slice(0, 10 * limit)
    .replace(/\s+/g, " ")
    .trim(); // a call that streams may have megabytes
  const shown = line === "{}" ? "" : line;
  return shown.length > limit ? `${shown.slice(0, limit)}…` : shown;
}

/** The beginning of a text that may be long. */
export function shortened(text: string, limit = 60): string {
  const characters = [...text];
  return characters.length > limit ? `${characters.slice(0, limit).join("")}…` : text;
}
