/** Say what was good or bad about an answer (docs/threads.md). */

import { useState } from "preact/hooks";
import { chat } from "../chat";
import { feedback, rate } from "../threads";

const CATEGORIES = {
  positive: ["correct", "helpful", "good_tool_use", "formatting", "other"],
  negative: [
    "incorrect",
    "incomplete",
    "tool_failure",
    "refused_valid_request",
    "formatting",
    "slow",
    "unsafe",
    "other",
  ],
};

interface FeedbackFormProps {
  messageId: string;
  sentiment: "positive" | "negative";
  onClose: () => void;
}

export function FeedbackForm({ messageId, sentiment, onClose }: FeedbackFormProps) {
  const known = feedback.value[messageId];
  const before = known?.sentiment === sentiment ? known : undefined;
  const [chosen, setChosen] = useState<readonly string[]>(before?.categories ?? []);
  const [notes, setNotes] = useState(before?.notes ?? "");
  const [error, setError] = useState("");
  const submit = async (event: Event) => {
    event.preventDefault();
    try {
      const text = notes.trim() === "" ? {} : { notes: notes.trim() };
      await rate(chat.value.threadId, { messageId, sentiment, categories: [...chosen], ...text });
      onClose();
    } catch (failure) {
      setError(failure instanceof Error ? failure.message : String(failure));
    }
  };
  const toggle = (name: string) =>
    setChosen(chosen.includes(name) ? chosen.filter((other) => other !== name) : [...chosen, name]);
  return (
    <form class="card feedback" onSubmit={submit} aria-label="Feedback">
      <fieldset>
        <legend>{sentiment === "positive" ? "What was good?" : "What went wrong?"}</legend>
        <div class="chips">
          {CATEGORIES[sentiment].map((name) => (
            <label key={name} class="chip">
              <input type="checkbox" checked={chosen.includes(name)} onChange={() => toggle(name)} />
              {name.replaceAll("_", " ")}
            </label>
          ))}
        </div>
      </fieldset>
      <label class="field">
        <span>Notes{chosen.includes("other") ? "" : " (optional)"}</span>
        <textarea
          rows={2}
          maxLength={4000}
          value={notes}
          required={chosen.includes("other")}
          onInput={(event) => setNotes(event.currentTarget.value)}
        />
      </label>
      {error !== "" && (
        <p class="field-error" role="alert">
          {error}
        </p>
      )}
      <div class="form-actions">
        <button type="button" class="button" onClick={onClose}>
          Cancel
        </button>
        <button type="submit" class="button primary">
          Send feedback
        </button>
      </div>
    </form>
  );
}
