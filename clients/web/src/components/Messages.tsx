/** The conversation: turns, and how they ended. */

import type { Message } from "@ag-ui/core";
import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { chat, isLoaded, isRunning, problem } from "../chat";
import { arrange, type Turn } from "../state/blocks";
import { rootOf } from "../state/branches";
import type { ChatState, RunEnding, RunFailure } from "../state/types";
import { useStore } from "../store";
import { loadEarlier, openThread, tryAgain } from "../thread";
import { AnswerActions } from "./AnswerActions";
import { Blocks } from "./Blocks";
import { EmptyState } from "./EmptyState";
import { Interrupts, ReadOnly } from "./Interrupts";
import { Icon } from "./icons";
import { Steps } from "./Steps";
import { useStickyScroll } from "./scrolling";
import { UserMessageView } from "./UserMessageView";

const SHOWN_TURNS = 40;

export function Messages({ replay }: { replay?: ChatState | undefined }) {
  const live = useStore(chat);
  const state = replay ?? live;
  const { messages, lanes, calls, notices, open } = state;
  const turns = useMemo(() => arrange(state), [messages, lanes, calls, notices, open]);
  const [shown, setShown] = useState(SHOWN_TURNS);
  const conversation = rootOf(state.threadId);
  useEffect(() => setShown(SHOWN_TURNS), [conversation]);
  const isBusy = isRunning(state);
  const isReplay = replay !== undefined;
  const isReady = useStore(isLoaded);
  const hidden = Math.max(0, turns.length - shown);
  const first = turns[hidden]?.key;
  const { frame, content, isAway, toBottom } = useStickyScroll(conversation, first);
  const showEarlier = async () => {
    if (hidden === 0) await loadEarlier();
    setShown((count) => count + SHOWN_TURNS);
  };
  return (
    <ReadOnly.Provider value={isReplay}>
      <div class="scroll-frame">
        <div class="scroll" ref={frame} tabIndex={-1}>
          <div
            class={isReady ? "column" : "column is-loading"}
            ref={content}
            role="log"
            aria-label="Conversation"
            aria-busy={isBusy}
            aria-live="off"
          >
            {turns.length === 0 && !isBusy && !isReplay && <EmptyState />}
            {(hidden > 0 || state.earlier !== undefined) && <Earlier key={first} frame={frame} onShow={showEarlier} />}
            {turns.slice(hidden).map((turn, index, all) => (
              <TurnView
                key={turn.key}
                turn={turn}
                state={state}
                isLast={index === all.length - 1}
                isReplay={isReplay}
              />
            ))}
            {isBusy && <Working state={state} />}
            <Steps steps={state.steps} isRunning={isBusy} />
            {!isReplay && <Interrupts />}
            <Ending state={state} isReplay={isReplay} />
            {!isReplay && <Problem />}
          </div>
        </div>
        {isAway && (
          <button type="button" class="to-bottom" onClick={toBottom} aria-label="Go to the latest message">
            <Icon name="down" />
          </button>
        )}
      </div>
    </ReadOnly.Provider>
  );
}

interface EarlierProps {
  frame: RefObject<HTMLElement | null>;
  onShow: () => Promise<void>;
}

/** Earlier messages are shown when the reader has scrolled up to this button, or presses it. */
function Earlier({ frame, onShow }: EarlierProps) {
  const [state, setState] = useState<"idle" | "loading" | "failed">("idle");
  const button = useRef<HTMLButtonElement>(null);
  const show = () => {
    setState("loading");
    onShow().catch(() => setState("failed"));
  };
  useEffect(() => {
    const options = { root: frame.current, rootMargin: "600px 0px 0px 0px" };
    const observer = new IntersectionObserver((entries) => entries.at(-1)!.isIntersecting && show(), options);
    observer.observe(button.current!);
    return () => observer.disconnect();
  }, []);
  return (
    <button type="button" class="quiet-button earlier" ref={button} disabled={state === "loading"} onClick={show}>
      {state === "failed" ? "Earlier messages were not loaded. Try again" : "Show earlier messages"}
    </button>
  );
}

interface TurnProps {
  turn: Turn;
  state: ChatState;
  isLast: boolean;
  isReplay: boolean;
}

function TurnView({ turn, state, isLast, isReplay }: TurnProps) {
  const isOver = !(isLast && isRunning(state));
  return (
    <section class={isLast ? "turn is-last" : "turn"}>
      {turn.user !== undefined && <UserMessageView message={turn.user} isReadOnly={isReplay} />}
      <Blocks blocks={turn.blocks} state={state} />
      {!isLast && turn.ending !== undefined && <TurnEnding ending={turn.ending} />}
      {isOver && !isReplay && turn.answer !== undefined && <AnswerActions message={turn.answer} state={state} />}
    </section>
  );
}

/** An animation while the run is open and no text arrives; in an open text it begins when the text pauses. */
function Working({ state }: { state: ChatState }) {
  const last = state.messages.at(-1) as Message | undefined;
  const isWriting = last !== undefined && state.open[last.id] === true;
  const length = isWriting && typeof last.content === "string" ? last.content.length : 0;
  return (
    <div key={length} class={isWriting ? "working is-writing" : "working"} aria-hidden="true">
      <span />
      <span />
      <span />
    </div>
  );
}

/** The end of an earlier turn that has no complete answer. */
function TurnEnding({ ending }: { ending: RunEnding }) {
  if (ending.status === "cancelled") return <p class="notice">{stopped(ending)}</p>;
  const { failure } = ending;
  return (
    <div class="notice">
      <p>{`The run failed. ${failure?.message ?? ""}`}</p>
      {failure !== undefined && <FailureCode failure={failure} />}
    </div>
  );
}

function stopped({ isByUser }: Pick<RunEnding, "isByUser">): string {
  return isByUser ? "You stopped this answer." : "This answer was stopped.";
}

/** The end of the last run, if it has no complete answer. */
function Ending({ state, isReplay }: { state: ChatState; isReplay: boolean }) {
  const { status, failure } = state.run;
  const again = isReplay ? null : (
    <button type="button" class="button" onClick={() => void tryAgain()}>
      Try again
    </button>
  );
  if (status === "cancelled") {
    return (
      <div class="stopped">
        <p class="notice">{stopped(state.run)}</p>
        {again}
      </div>
    );
  }
  if (status === "failed" && failure !== undefined) return <Failure failure={failure}>{again}</Failure>;
  const isHeld = state.interrupts.length > 0 && state.messages.at(-1)?.role === "user";
  return isHeld ? <p class="notice">This message is answered once you have decided.</p> : null;
}

/** Something that failed outside of a run. */
function Problem() {
  const failure = useStore(problem);
  const threadId = useStore(chat, (state) => state.threadId);
  if (failure === null) return null;
  return (
    <Failure failure={failure}>
      <button type="button" class="button" onClick={() => void openThread(threadId)}>
        Load again
      </button>
    </Failure>
  );
}

/** An error with its code, and the id by which the server's log has it. */
function Failure({ failure, children }: { failure: RunFailure; children: ComponentChildren }) {
  return (
    <div class="failure" role="alert">
      <Icon name="alert" />
      <div>
        <p>{failure.message}</p>
        <FailureCode failure={failure} />
      </div>
      {children}
    </div>
  );
}

function FailureCode({ failure: { code, requestId } }: { failure: RunFailure }) {
  return (
    <p class="failure-code">
      {code}
      {requestId !== undefined && ` · request ${requestId}`}
    </p>
  );
}
