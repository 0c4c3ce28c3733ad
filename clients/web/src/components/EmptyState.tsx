/** A new chat, with one button for each suggestion. */

import { chat, isLoaded, send } from "../chat";
import { title } from "../config";
import { capabilities } from "../server";
import { useStore } from "../store";
import { Icon, type IconName } from "./icons";

interface Suggestion {
  icon: IconName;
  title: string;
  text: string;
}

const SUGGESTIONS: Suggestion[] = [
  { icon: "tool", title: "Call a tool", text: "calculate 2*(3+4)" },
  { icon: "spark", title: "See it think", text: "think about rain" },
  { icon: "agent", title: "Use a subagent", text: "delegate what time is it in Europe/Berlin" },
  { icon: "hand", title: "Approve a change", text: 'call set_theme {"theme": "dark"}' },
  { icon: "place", title: "Answer a question", text: 'call ask_place {"question": "Where are you?"}' },
  { icon: "stop", title: "Stop an answer", text: "wait 30" },
];

export function EmptyState() {
  const isOffline = useStore(capabilities, (known) => known === null || !isOtherAgent(known));
  const hasThread = useStore(chat, (state) => state.run.status !== "idle");
  const isReady = useStore(isLoaded);
  if (hasThread || !isReady) return null;
  return (
    <div class="empty">
      <h1>{title}</h1>
      <p class="empty-lead">{isOffline ? "Ask something, or try one of these." : "Ask something to begin."}</p>
      {isOffline && (
        <ul class="suggestions" aria-label="Suggestions">
          {SUGGESTIONS.map((suggestion) => (
            <li key={suggestion.text}>
              <button type="button" class="suggestion" onClick={() => void send(suggestion.text)}>
                <Icon name={suggestion.icon} />
                <span class="suggestion-title">{suggestion.title}</span>
                <code>{suggestion.text}</code>
              </button>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** An agent without the assistant's tools does not know these commands. */
function isOtherAgent(known: { tools?: { items?: unknown[] } }): boolean {
  return known.tools?.items === undefined;
}
