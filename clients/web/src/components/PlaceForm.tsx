/** The client tool `ask_place`: the user names a place, or takes the browser's. */

import type { ToolCall } from "@ag-ui/core";
import { useRef, useState } from "preact/hooks";
import { answerCall } from "../chat";
import { useQuestionFocus } from "./focus";
import { Icon } from "./icons";

const NO_ANSWER = "The user did not want to say.";

export function PlaceForm({ call }: { call: ToolCall }) {
  const [place, setPlace] = useState("");
  const element = useRef<HTMLFormElement>(null);
  useQuestionFocus(element);
  const submit = (event: Event) => {
    event.preventDefault();
    if (place.trim() !== "") void answerCall({ toolCallId: call.id, content: place.trim() });
  };
  return (
    <form class="card" tabIndex={-1} ref={element} onSubmit={submit} aria-label="Question about a place">
      <header class="card-head">
        <Icon name="place" />
        <h2>{questionOf(call)}</h2>
      </header>
      <label class="field">
        <span>Place</span>
        <input
          type="text"
          value={place}
          autoComplete="address-level2"
          placeholder="Berlin"
          onInput={(event) => setPlace(event.currentTarget.value)}
        />
      </label>
      <div class="form-actions">
        <button
          type="button"
          class="button"
          onClick={() => void answerCall({ toolCallId: call.id, content: NO_ANSWER, error: NO_ANSWER })}
        >
          Rather not
        </button>
        <button type="submit" class="button primary" disabled={place.trim() === ""}>
          Send
        </button>
      </div>
    </form>
  );
}

function questionOf(call: ToolCall): string {
  try {
    const { question } = JSON.parse(call.function.arguments) as { question?: unknown };
    return typeof question === "string" && question !== "" ? question.slice(0, 300) : "Which place?";
  } catch {
    return "Which place?";
  }
}
