/** A message of the user: its attachments, its versions, and an editor that sends it again. */

import type { UserMessage } from "@ag-ui/core";
import { useState } from "preact/hooks";
import { chat, edit, isRunning } from "../chat";
import { versionsOf } from "../state/branches";
import { textOf } from "../state/messages";
import { useStore } from "../store";
import { openThread } from "../thread";
import { threads } from "../threads";
import { focusComposer } from "./Composer";
import { ContentParts } from "./ContentParts";
import { copyText } from "./copy";
import { IconButton } from "./icons";
import { TOUCH, useMedia } from "./media";

export function UserMessageView({ message, isReadOnly }: { message: UserMessage; isReadOnly: boolean }) {
  const [isEditing, setEditing] = useState(false);
  const isBusy = useStore(chat, isRunning);
  const refusal = useStore(chat, (state) => state.unsent[message.id]);
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
        {text !== "" && <UserText text={text} />}
      </div>
      {!isReadOnly && <VersionSwitch messageId={message.id} />}
      {refusal !== undefined && !isBusy && <p class="user-note">{`Not sent${refusal === "" ? "" : `: ${refusal}`}`}</p>}
    </article>
  );
}

/** More than this is folded. */
const LONG = { characters: 2_000, lines: 24 };

/** The text of a message. Text that was pasted may be long, so it is folded until somebody wants to read it. */
function UserText({ text }: { text: string }) {
  const isLong = text.length > LONG.characters || text.split("\n", LONG.lines + 1).length > LONG.lines;
  const [isUnfolded, setUnfolded] = useState(false);
  if (!isLong) return <p class="user-text">{text}</p>;
  return (
    <div class="user-text">
      <p class={isUnfolded ? "" : "is-folded"}>{text}</p>
      <button type="button" class="quiet-button" aria-expanded={isUnfolded} onClick={() => setUnfolded(!isUnfolded)}>
        {isUnfolded ? "Show less" : "Show all"}
      </button>
    </div>
  );
}

/** The versions of a message, each with what followed it. */
function VersionSwitch({ messageId }: { messageId: string }) {
  const threadId = useStore(chat, (state) => state.threadId);
  const list = useStore(threads.list);
  const isBusy = useStore(chat, isRunning);
  const versions = versionsOf(list, threadId, messageId);
  if (versions === undefined) return null;
  const { threadIds, at } = versions;
  const step = (label: string, to: number) => (
    <IconButton
      icon="chevron"
      class={to < at ? "is-back" : ""}
      label={label}
      disabled={isBusy || threadIds[to] === undefined}
      onClick={() => void openThread(threadIds[to]!)}
    />
  );
  return (
    <div class="versions" role="group" aria-label="Versions">
      {step("Version before", at - 1)}
      <span>
        {at + 1}/{threadIds.length}
      </span>
      {step("Next version", at + 1)}
    </div>
  );
}

function Editor({ message, text, onClose }: { message: UserMessage; text: string; onClose: () => void }) {
  const [draft, setDraft] = useState(text);
  const isBusy = useStore(chat, isRunning);
  const isTouch = useMedia(TOUCH);
  const submit = () => {
    if (isBusy || draft.trim() === "") return;
    onClose();
    const others = typeof message.content === "string" ? [] : message.content.filter((part) => part.type !== "text");
    const content = others.length === 0 ? draft : [...others, { type: "text" as const, text: draft }];
    void edit({ ...message, content });
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
        if (event.key === "Enter" && !event.shiftKey && !isTouch) {
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
