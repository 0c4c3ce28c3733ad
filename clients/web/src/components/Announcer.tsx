/** A status line for screen readers: an answer begins, the answer's text, a question for the user. */

import { chat } from "../chat";
import { plainText } from "../markdown/render";
import type { ChatState } from "../state/types";
import { useStore } from "../store";

/** Length of an answer that is read aloud at once. */
const MOST_CHARACTERS = 2000;

export function Announcer() {
  const text = useStore(chat, announcement);
  return (
    <div class="visually-hidden" aria-live="polite" role="status">
      {text}
    </div>
  );
}

function announcement(state: ChatState): string {
  const { run, interrupts, pendingCalls } = state;
  if (run.status === "running") return "The assistant is answering.";
  if (run.status === "failed") return `The run failed. ${run.failure?.message ?? ""}`;
  if (run.status === "cancelled") return "The answer was stopped.";
  if (interrupts.length > 0 || pendingCalls.length > 0) return "The assistant waits for your answer.";
  if (run.status !== "finished") return "";
  const answer = state.messages.findLast(({ role }) => role === "assistant");
  const text = typeof answer?.content === "string" ? plainText(answer.content.slice(0, MOST_CHARACTERS)) : "";
  return text === "" ? "Done." : `The assistant says: ${text}`;
}
