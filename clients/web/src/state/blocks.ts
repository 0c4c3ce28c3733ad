/** Arrange the messages of a chat for display: turns, their blocks, and subagents nested in their tool calls. */

import type { Message, ToolCall } from "@ag-ui/core";
import { callStateOf } from "./reducer";
import type { CallState, ChatState, Lane, Notice, RunEnding } from "./types";

type Role<R extends Message["role"]> = Extract<Message, { role: R }>;

export type Block =
  | { kind: "text"; key: string; message: Role<"assistant"> }
  | { kind: "reasoning"; key: string; message: Role<"reasoning"> }
  | { kind: "activity"; key: string; message: Role<"activity"> }
  | { kind: "call"; key: string; call: ToolCall; state: CallState; result?: Role<"tool">; lanes: LaneBlock[] }
  | { kind: "notice"; key: string; notice: Notice }
  | LaneBlock;

export interface LaneBlock {
  kind: "lane";
  key: string;
  lane: Lane;
  blocks: Block[];
}

/** A user message, if there is one, and the blocks of its answer. */
export interface Turn {
  key: string;
  user?: Role<"user">;
  blocks: Block[];
  /** The assistant's last text, which feedback, copy and fork concern. */
  answer?: Role<"assistant">;
  /** How the turn's last run ended, if it has no complete answer. */
  ending?: RunEnding;
}

/** Arrange everything. The cost is linear in the number of messages, not in their length. */
export function arrange(state: ChatState): Turn[] {
  const results = new Map(
    state.messages.flatMap((message) => (message.role === "tool" ? [[message.toolCallId, message] as const] : [])),
  );
  const lanes = new Map<string, LaneBlock>();
  const calls = new Map<string, Extract<Block, { kind: "call" }>>();
  const turns: Turn[] = [];
  const turn = (): Turn => turns.at(-1) ?? addTurn(turns, "start");

  const placeOf = (laneId: string | undefined): Block[] => {
    if (laneId === undefined) return turn().blocks;
    const known = lanes.get(laneId);
    if (known !== undefined) return known.blocks;
    const lane = state.lanes[laneId] ?? { id: laneId, name: "Subagent", status: "finished" };
    const block: LaneBlock = { kind: "lane", key: laneId, lane, blocks: [] };
    lanes.set(laneId, block);
    const call = lane.parentToolCallId === undefined ? undefined : calls.get(lane.parentToolCallId);
    if (call !== undefined) call.lanes.push(block);
    else placeOf(lane.parentId).push(block);
    return block.blocks;
  };

  const noticesAfter = groupNotices(state.notices);
  const place = (message: Message): void => {
    const attributed = "subagentRunId" in message ? message.subagentRunId : undefined;
    if (message.role === "user" && attributed === undefined) {
      addTurn(turns, message.id).user = message;
      return;
    }
    const ending = state.endings[state.runs[message.id] ?? ""];
    if (ending !== undefined && attributed === undefined) turn().ending = ending;
    const blocks = placeOf(attributed);
    if (message.role === "reasoning") blocks.push({ kind: "reasoning", key: message.id, message });
    if (message.role === "activity") blocks.push({ kind: "activity", key: message.id, message });
    if (message.role !== "assistant") return;
    if (message.content || state.open[message.id]) {
      blocks.push({ kind: "text", key: message.id, message });
      if (attributed === undefined) turn().answer = message;
    }
    for (const call of message.toolCalls ?? []) {
      const result = results.get(call.id);
      const block: Extract<Block, { kind: "call" }> = {
        kind: "call",
        key: call.id,
        call,
        state: state.calls[call.id] ?? callStateOf(result),
        ...(result === undefined ? {} : { result }),
        lanes: [],
      };
      calls.set(call.id, block);
      blocks.push(block);
      for (const lane of Object.values(state.lanes)) {
        if (lane.parentToolCallId === call.id) placeOf(lane.id);
      }
    }
  };

  for (const notice of noticesAfter.get(null) ?? []) addNotice(turn().blocks, notice);
  for (const message of state.messages) {
    place(message);
    for (const notice of noticesAfter.get(message.id) ?? []) addNotice(turn().blocks, notice);
  }
  return turns;
}

function addTurn(turns: Turn[], key: string): Turn {
  const turn: Turn = { key, blocks: [] };
  turns.push(turn);
  return turn;
}

function addNotice(blocks: Block[], notice: Notice): void {
  blocks.push({ kind: "notice", key: notice.id, notice });
}

function groupNotices(notices: readonly Notice[]): Map<string | null, Notice[]> {
  const groups = new Map<string | null, Notice[]>();
  for (const notice of notices) {
    groups.set(notice.afterMessageId, [...(groups.get(notice.afterMessageId) ?? []), notice]);
  }
  return groups;
}
