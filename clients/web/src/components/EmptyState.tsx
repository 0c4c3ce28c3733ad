/** A new chat, with one button for each suggestion. */

import { chat, isLoaded, send } from "../chat";
import { greeting, logo } from "../config";
import { agentOf, capabilities, chosenAgent, customOf } from "../server";
import { useStore } from "../store";
import { Icon, type IconName } from "./icons";
import { SignInButton } from "./SignInButton";

interface Suggestion {
  icon: IconName;
  title: string;
  text: string;
}

/** Commands of the offline model. */
const OFFLINE: Suggestion[] = [
  { icon: "tool", title: "Call a tool", text: "calculate 2*(3+4)" },
  { icon: "spark", title: "See it think", text: "think about rain" },
  { icon: "agent", title: "Use a subagent", text: "delegate what time is it in Europe/Berlin" },
  { icon: "hand", title: "Approve a change", text: 'call set_theme {"theme": "dark"}' },
  { icon: "place", title: "Answer a question", text: 'call ask_place {"question": "Where are you?"}' },
  { icon: "stop", title: "Stop an answer", text: "wait 30" },
];

export function EmptyState() {
  const known = useStore(capabilities);
  const chosen = useStore(chosenAgent);
  const hasThread = useStore(chat, (state) => state.run.status !== "idle");
  const isReady = useStore(isLoaded);
  if (hasThread || !isReady) return null;
  const agent = agentOf(known, chosen);
  const suggestions = suggestionsOf(agent.suggestions ?? customOf(known).suggestions, agent.model?.provider);
  return (
    <div class="empty">
      {logo !== "" && <img class="empty-logo" src={logo} alt="" />}
      <h1>{greeting}</h1>
      {agent.description !== undefined && <p class="empty-lead">{agent.description}</p>}
      <SignInButton />
      <p class="empty-lead">
        {suggestions.length > 0 ? "Ask something, or try one of these." : "Ask something to begin."}
      </p>
      {suggestions.length > 0 && (
        <ul class="suggestions" aria-label="Suggestions">
          {suggestions.map((suggestion) => (
            <li key={suggestion.text}>
              <button type="button" class="suggestion" onClick={() => void send(suggestion.text)}>
                <Icon name={suggestion.icon} />
                <span class="suggestion-title">{suggestion.title}</span>
                {suggestion.title !== suggestion.text && <code>{suggestion.text}</code>}
              </button>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** Suggestions of the agent, or else the commands of the offline model where it answers. */
function suggestionsOf(texts: unknown, provider: string | undefined): readonly Suggestion[] {
  if (Array.isArray(texts)) return texts.map((text) => ({ icon: "spark", title: text, text }));
  return provider === "offline" ? OFFLINE : [];
}
