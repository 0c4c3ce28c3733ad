/** The text field of the chat. Enter sends, or begins a line on a touch screen; Shift+Enter begins a line. */

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { type Attachment, contentOf, excess, type RefusedFile, readFiles, size } from "../attachments";
import { addressee, chat, isLoaded, isRunning, send, sendQueued, stop } from "../chat";
import { queueOf, queues, setQueue } from "../message-queue";
import { maxBodyBytes } from "../server";
import { rootOf } from "../state/branches";
import { textOf } from "../state/messages";
import { useStore } from "../store";
import { threads } from "../threads";
import { Icon, IconButton } from "./icons";
import { TOUCH, useMedia } from "./media";
import { WaitingBar } from "./WaitingBar";

export function Composer() {
  const [text, setText] = useState("");
  const [attachments, setAttachments] = useState<readonly Attachment[]>([]);
  const [reading, setReading] = useState<readonly File[]>([]);
  const [refused, setRefused] = useState<readonly RefusedFile[]>([]);
  const [problem, setProblem] = useState("");
  const isBusy = useStore(chat, isRunning);
  const isReady = useStore(isLoaded);
  const threadId = useAddressee();
  const conversation = rootOf(threadId);
  const isTouch = useMedia(TOUCH);
  const area = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);
  const shown = useRef(conversation);
  // The focus moves before the next key, which may be the one that searches.
  useLayoutEffect(() => {
    area.current?.focus();
    shown.current = conversation;
    setReading([]);
    setAttachments([]);
    setRefused([]);
    setProblem("");
  }, [conversation]);
  useEffect(() => grow(area.current), [text]);

  // A file that is read or uploaded sooner than an earlier one waits for it, so that the order is the person's.
  const added = useRef(Promise.resolve());
  const add = (chosen: Iterable<File>) => {
    const files = [...chosen];
    setReading((before) => [...before, ...files]);
    const result = readFiles(files);
    added.current = added.current.then(async () => {
      const { read, refused } = await result;
      if (shown.current !== conversation) return;
      setReading((before) => before.filter((file) => !files.includes(file)));
      setAttachments((before) => [...before, ...read]);
      setRefused((before) => [...before, ...refused]);
    });
  };
  useDroppedFiles(add);

  const canSend = reading.length === 0 && (text.trim() !== "" || attachments.length > 0);
  const submit = () => {
    if (!canSend) return;
    const content = contentOf(text.trim(), attachments);
    const tooMuch = excess(content, maxBodyBytes());
    setProblem(tooMuch === 0 ? "" : `The message is too large by ${size(tooMuch)}. The server would refuse it.`);
    if (tooMuch > 0) return;
    void send(content);
    setText("");
    setAttachments([]);
    setRefused([]);
  };

  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <WaitingBar />
      <QueuedMessages threadId={threadId} canSend={isReady && !isBusy} />
      {attachments.length > 0 && (
        <AttachmentList
          attachments={attachments}
          onRemove={(index) => setAttachments(attachments.filter((_, other) => other !== index))}
        />
      )}
      {reading.length > 0 && (
        <p class="attaching" role="status">
          {`Attaching ${reading.map(({ name }) => name).join(", ")}…`}
        </p>
      )}
      {refused.length > 0 && (
        <RefusedFiles files={refused} onRemove={(index) => setRefused(refused.filter((_, other) => other !== index))} />
      )}
      {problem !== "" && (
        <p class="field-error" role="alert">
          {problem}
        </p>
      )}
      <textarea
        ref={area}
        rows={1}
        value={text}
        placeholder="Write a message"
        aria-label="Message"
        onInput={(event) => setText(event.currentTarget.value)}
        onPaste={(event) => {
          const files = event.clipboardData?.files;
          if (files !== undefined && files.length > 0) {
            event.preventDefault();
            add(files);
          }
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter" && !event.shiftKey && !event.isComposing && !isTouch) {
            event.preventDefault();
            submit();
          }
          if (event.key === "ArrowUp" && text === "") editLast(event);
        }}
      />
      <div class="composer-bar">
        <input
          ref={picker}
          type="file"
          multiple
          hidden
          onChange={(event) => {
            add(event.currentTarget.files ?? []);
            event.currentTarget.value = "";
          }}
        />
        <IconButton icon="clip" label="Attach files" onClick={() => picker.current?.click()} />
        <span class="composer-hint">{isTouch ? "" : hint(isReady, isBusy, text !== "")}</span>
        {isBusy && (
          <button type="button" class="send" aria-label="Stop" title="Stop" onClick={() => stop()}>
            <Icon name="stop" />
          </button>
        )}
        {(!isBusy || canSend) && (
          <button type="submit" class="send" aria-label="Send" title="Send" disabled={!canSend}>
            <Icon name="send" />
          </button>
        )}
      </div>
    </form>
  );
}

function hint(isReady: boolean, isBusy: boolean, isWriting: boolean): string {
  if (!isReady) return isWriting ? "Enter sends it when the thread is shown" : "";
  if (isBusy) return isWriting ? "Enter sends it after this answer" : "Esc stops";
  return "Enter sends";
}

function useAddressee(): string {
  useStore(isLoaded);
  useStore(threads.selected);
  return useStore(chat, addressee);
}

/** Messages that wait. After a run that was stopped or has failed the user sends them. */
function QueuedMessages({ threadId, canSend }: { threadId: string; canSend: boolean }) {
  const waiting = useStore(queues, () => queueOf(threadId));
  if (waiting.length === 0) return null;
  return (
    <ul class="queued" aria-label="Messages that wait">
      {waiting.map(({ content }, index) => (
        <li key={index}>
          <span>{typeof content === "string" ? content : textOf({ id: "", role: "user", content }) || "Files"}</span>
          {canSend && index === 0 && (
            <button type="button" class="button" onClick={sendQueued}>
              Send now
            </button>
          )}
          <IconButton
            icon="close"
            label="Do not send"
            onClick={() =>
              setQueue(
                threadId,
                waiting.filter((_, other) => other !== index),
              )
            }
          />
        </li>
      ))}
    </ul>
  );
}

interface AttachmentListProps {
  attachments: readonly Attachment[];
  onRemove: (index: number) => void;
}

function AttachmentList({ attachments, onRemove }: AttachmentListProps) {
  return (
    <ul class="attachments" aria-label="Attachments">
      {attachments.map(({ name, part, preview }, index) => (
        <li key={index}>
          {part.type === "image" ? <img src={preview} alt="" /> : <Icon name="file" />}
          <span>{name}</span>
          <IconButton icon="close" label={`Remove ${name}`} onClick={() => onRemove(index)} />
        </li>
      ))}
    </ul>
  );
}

interface RefusedFilesProps {
  files: readonly RefusedFile[];
  onRemove: (index: number) => void;
}

function RefusedFiles({ files, onRemove }: RefusedFilesProps) {
  return (
    <ul class="attachments" aria-label="Files that are not attached" role="alert">
      {files.map(({ name, why }, index) => (
        <li key={index} class="is-refused">
          <Icon name="alert" />
          <span>
            <strong>{name}</strong> is not attached. {why}
          </span>
          <IconButton icon="close" label={`Dismiss ${name}`} onClick={() => onRemove(index)} />
        </li>
      ))}
    </ul>
  );
}

export function focusComposer(): void {
  document.querySelector<HTMLElement>(".composer textarea")?.focus();
}

function grow(area: HTMLTextAreaElement | null): void {
  if (area === null) return;
  area.style.height = "auto";
  area.style.height = `${Math.min(area.scrollHeight, window.innerHeight * 0.4)}px`;
}

/** Edit the last message on arrow up in an empty field. */
function editLast(event: Event): void {
  const buttons = document.querySelectorAll<HTMLButtonElement>('.user-message [aria-label="Edit and send again"]');
  const last = [...buttons].at(-1);
  if (last === undefined || last.disabled) return;
  event.preventDefault();
  last.click();
}

function useDroppedFiles(onFiles: (files: FileList) => void): void {
  const handler = useRef(onFiles);
  handler.current = onFiles;
  useEffect(() => {
    const root = document.documentElement;
    const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes("Files") === true;
    const over = (event: DragEvent) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      root.classList.add("is-dropping");
    };
    const leave = (event: DragEvent) => {
      if (event.relatedTarget === null) root.classList.remove("is-dropping");
    };
    const drop = (event: DragEvent) => {
      root.classList.remove("is-dropping");
      if (!hasFiles(event)) return;
      event.preventDefault();
      handler.current(event.dataTransfer!.files);
    };
    addEventListener("dragover", over);
    addEventListener("dragleave", leave);
    addEventListener("drop", drop);
    return () => {
      removeEventListener("dragover", over);
      removeEventListener("dragleave", leave);
      removeEventListener("drop", drop);
    };
  }, []);
}
