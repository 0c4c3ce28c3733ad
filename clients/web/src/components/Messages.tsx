/** The conversation: turns and their blocks. */

import type { Message } from "@ag-ui/core";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { chat, isLoaded, isRunning, openThread, problem, tryAgain } from "../chat";
import { arrange, type Block, type Turn } from "../state/blocks";
import type { ChatState } from "../state/types";
import { useStore } from "../store";
import { Activity } from "./Activity";
import { AnswerActions } from "./AnswerActions";
import { EmptyState } from "./EmptyState";
import { Interrupts } from "./Interrupts";
import { Icon } from "./icons";
import { LaneView } from "./LaneView";
import { Markdown } from "./Markdown";
import { Reasoning } from "./Reasoning";
import { Steps } from "./Steps";
import { ToolCallView } from "./ToolCallView";
import { UserMessageView } from "./UserMessageView";

const SHOWN_TURNS = 40;
const NEAR_BOTTOM = 80;

export function Messages({ replay }: { replay?: ChatState | undefined }) {
  const live = useStore(chat);
  const state = replay ?? live;
  const { messages, lanes, calls, notices, open } = state;
  const turns = useMemo(() => arrange(state), [messages, lanes, calls, notices, open]);
  const [shown, setShown] = useState(SHOWN_TURNS);
  useEffect(() => setShown(SHOWN_TURNS), [state.threadId]);
  const { frame, content, isAway, toBottom } = useStickyScroll(state.threadId);
  const isBusy = isRunning(state);
  const isReplay = replay !== undefined;
  const isReady = useStore(isLoaded);
  const earlier = Math.max(0, turns.length - shown);
  return (
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
          {earlier > 0 && (
            <button type="button" class="quiet-button earlier" onClick={() => setShown(shown + SHOWN_TURNS)}>
              Show {Math.min(earlier, SHOWN_TURNS)} earlier
            </button>
          )}
          {turns.slice(earlier).map((turn, index, all) => (
            <TurnView key={turn.key} turn={turn} state={state} isLast={index === all.length - 1} isReplay={isReplay} />
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
    <section class="turn">
      {turn.user !== undefined && <UserMessageView message={turn.user} isReadOnly={isReplay} />}
      <Blocks blocks={turn.blocks} state={state} />
      {isOver && !isReplay && turn.answer !== undefined && <AnswerActions message={turn.answer} state={state} />}
    </section>
  );
}

export function Blocks({ blocks, state }: { blocks: readonly Block[]; state: ChatState }) {
  return (
    <>
      {blocks.map((block) => (
        <BlockView key={`${block.kind}-${block.key}`} block={block} state={state} />
      ))}
    </>
  );
}

function BlockView({ block, state }: { block: Block; state: ChatState }) {
  switch (block.kind) {
    case "text":
      return <Markdown text={block.message.content ?? ""} isOpen={state.open[block.message.id] === true} />;
    case "reasoning":
      return (
        <Reasoning
          text={block.message.content}
          isOpen={state.open[block.message.id] === true}
          time={state.times[block.message.id]}
        />
      );
    case "call":
      return <ToolCallView block={block} state={state} />;
    case "activity":
      return <Activity message={block.message} />;
    case "lane":
      return <LaneView block={block} state={state} />;
    case "notice":
      return <p class="notice">{block.notice.text}</p>;
  }
}

/** An animation while the run is open and no text arrives. */
function Working({ state }: { state: ChatState }) {
  const last = state.messages.at(-1) as Message | undefined;
  const isWriting = last !== undefined && state.open[last.id] === true;
  return (
    <div class={isWriting ? "working is-hidden" : "working"} aria-hidden="true">
      <span />
      <span />
      <span />
    </div>
  );
}

function Ending({ state, isReplay }: { state: ChatState; isReplay: boolean }) {
  const { status, failure } = state.run;
  if (status === "cancelled") return <p class="notice">You stopped this answer.</p>;
  if (status !== "failed" || failure === undefined) return null;
  return (
    <div class="failure" role="alert">
      <Icon name="alert" />
      <div>
        <p>{failure.message}</p>
        <p class="failure-code">{failure.code}</p>
      </div>
      {!isReplay && (
        <button type="button" class="button" onClick={() => void tryAgain()}>
          Try again
        </button>
      )}
    </div>
  );
}

function Problem() {
  const text = useStore(problem);
  const threadId = useStore(chat, (state) => state.threadId);
  if (text === "") return null;
  return (
    <div class="failure" role="alert">
      <Icon name="alert" />
      <p>{text}</p>
      <button type="button" class="button" onClick={() => void openThread(threadId)}>
        Load again
      </button>
    </div>
  );
}

/** Stay at the bottom while text arrives, unless the reader has scrolled up. */
function useStickyScroll(threadId: string) {
  const frame = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const isPinned = useRef(true);
  const [isAway, setAway] = useState(false);
  const toBottom = () => {
    isPinned.current = true;
    frame.current?.scrollTo({ top: frame.current.scrollHeight });
  };
  useLayoutEffect(toBottom, [threadId]);
  useEffect(() => {
    const [scroller, column] = [frame.current!, content.current!];
    const onScroll = () => {
      const away = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight;
      isPinned.current = away < NEAR_BOTTOM;
      setAway(away > scroller.clientHeight / 2);
    };
    const observer = new ResizeObserver(() => {
      if (isPinned.current) scroller.scrollTop = scroller.scrollHeight;
    });
    observer.observe(column);
    observer.observe(scroller);
    scroller.addEventListener("scroll", onScroll, { passive: true });
    return () => {
      observer.disconnect();
      scroller.removeEventListener("scroll", onScroll);
    };
  }, []);
  return { frame, content, isAway, toBottom };
}
