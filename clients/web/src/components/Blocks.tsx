/** The blocks of an answer. Calls and subagents have blocks of subagents inside. */

import type { Block, LaneBlock } from "../state/blocks";
import type { ChatState, Notice } from "../state/types";
import { Activity } from "./Activity";
import { AppView, MCP_APPS } from "./AppView";
import { Arguments } from "./Arguments";
import { LaneView } from "./LaneView";
import { Markdown } from "./Markdown";
import { Reasoning } from "./Reasoning";
import { ToolCallView } from "./ToolCallView";

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
      return (
        <ToolCallView block={block} state={state}>
          {block.lanes.map((lane) => (
            <LaneWithBlocks key={lane.key} block={lane} state={state} />
          ))}
        </ToolCallView>
      );
    case "activity":
      return block.message.activityType === MCP_APPS ? (
        <AppView message={block.message} />
      ) : (
        <Activity message={block.message} />
      );
    case "lane":
      return <LaneWithBlocks block={block} state={state} />;
    case "notice":
      return <NoticeView notice={block.notice} />;
  }
}

function LaneWithBlocks({ block, state }: { block: LaneBlock; state: ChatState }) {
  return (
    <LaneView lane={block.lane}>
      <Blocks blocks={block.blocks} state={state} />
    </LaneView>
  );
}

/** A line of its own, or a question with its answer. */
function NoticeView({ notice: { text, answer } }: { notice: Notice }) {
  if (answer === undefined) return <p class="notice">{text}</p>;
  return (
    <div class="answered" role="group" aria-label={text}>
      <p>{text}</p>
      {answer === "" ? <p class="call-decision">Not answered</p> : <Arguments text={answer} label="Your answer" />}
    </div>
  );
}
