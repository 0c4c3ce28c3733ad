/** Actions on an answer: copy, rate, ask again, fork the thread. */

import type { AssistantMessage } from "@ag-ui/core";
import { useState } from "preact/hooks";
import { askAgain, isRunning } from "../chat";
import type { ChatState } from "../state/types";
import { useStore } from "../store";
import { fork } from "../thread";
import { feedback } from "../threads";
import { copyText } from "./copy";
import { FeedbackForm } from "./FeedbackForm";
import { IconButton } from "./icons";

export function AnswerActions({ message, state }: { message: AssistantMessage; state: ChatState }) {
  const stored = useStore(feedback, (all) => all[message.id]);
  const [rating, setRating] = useState<"positive" | "negative" | null>(null);
  const [isCopied, setCopied] = useState(false);
  const isBusy = isRunning(state);
  const copy = async () => {
    setCopied(await copyText(message.content ?? ""));
    setTimeout(() => setCopied(false), 1500);
  };
  return (
    <div class="answer-foot">
      <div class="actions">
        <IconButton icon={isCopied ? "check" : "copy"} label="Copy answer" onClick={() => void copy()} />
        <IconButton
          icon="up"
          label="Good answer"
          pressed={stored?.sentiment === "positive"}
          onClick={() => setRating(rating === "positive" ? null : "positive")}
        />
        <IconButton
          icon="thumbDown"
          label="Bad answer"
          pressed={stored?.sentiment === "negative"}
          onClick={() => setRating(rating === "negative" ? null : "negative")}
        />
        <IconButton icon="retry" label="Ask again" disabled={isBusy} onClick={() => void askAgain(message.id)} />
        <IconButton icon="fork" label="Fork from here" disabled={isBusy} onClick={() => void fork(message.id)} />
      </div>
      {rating !== null && (
        <FeedbackForm key={rating} messageId={message.id} sentiment={rating} onClose={() => setRating(null)} />
      )}
    </div>
  );
}
