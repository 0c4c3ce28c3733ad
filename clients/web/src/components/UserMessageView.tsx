/** A message of the user, with its attachments. An edit sends the conversation again up to this message. */

import type { UserMessage } from "@ag-ui/core";
import { useState } from "preact/hooks";
import { chat, isRunning, send } from "../chat";
import { textOf } from "../state/messages";
import { useStore } from "../store";
import { focusComposer } from "./Composer";
import { ContentParts } from "./ContentParts";
import { copyText } from "./copy";
import { IconButton } from "./icons";

export function UserMessageView({ message, isReadOnly }: { message: UserMessage; isReadOnly: boolean }) {
  const [isEditing, setEditing] = useState(false);
  const isBusy = useStore(chat, isRunning);
  const text = textOf(message);
  if (isEditing) return <Editor message={message} text={text} onClose={() => setEditing(false)} />;
  const parts = typeof message.content === "string" ? [] : message.content.filter((part) => part.type !== "text");
  return (
    <article class="user-message" aria-label="You">
      {parts.length > 0 && <ContentParts parts={parts} />}
      <div class="user-row">
        {!isReadOnly && (
          <div class="actions">
            <IconButton icon="copy" label="Copy your message" onClick={() => void copyText(text)} />
            <IconButton icon="edit" label="Edit and send again" disabled={isBusy} onClick={() => setEditing(true)} />
          </div>
        )}
        {text !== "" && <p class="user-text">{text}</p>}
      </div>
    </article>
  );
}

function Editor({ message, text, onClose }: { message: UserMessage; text: string; onClose: () => void }) {
  const [draft, setDraft] = useState(text);
  const isBusy = useStore(chat, isRunning);
  const submit = () => {
    if (isBusy || draft.trim() === "") return;
    onClose();
    const others = typeof message.content === "string" ? [] : message.content.filter((part) => part.type !== "text");
    void send(others.length === 0 ? draft : [...others, { type: "text", text: draft }], message.id);
  };
  return (
    <form
      class="user-editor"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
      onKeyDown={(event) => {
        if (event.isComposing) return; // the key belongs to an input method
        if (event.key === "Enter" && !event.shiftKey) {
          event.preventDefault();
          submit();
          focusComposer();
        }
        if (event.key === "Escape") {
          onClose();
          focusComposer();
        }
      }}
    >
      <textarea
        aria-label="Edit your message"
        value={draft}
        rows={Math.min(10, draft.split("\n").length + 1)}
        onInput={(event) => setDraft(event.currentTarget.value)}
        ref={(node) => node?.focus()}
      />
      <div class="form-actions">
        <button type="button" class="button" onClick={onClose}>
          Cancel
        </button>
        <button type="submit" class="button primary" disabled={isBusy}>
          Send
        </button>
      </div>
    </form>
  );
}
