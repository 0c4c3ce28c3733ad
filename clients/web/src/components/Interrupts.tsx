/** Questions to the user: approvals and this page's own tools inside their calls, and forms at the end. */

import type { Interrupt, ResumeEntry, ToolCall } from "@ag-ui/core";
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { answer, answerCall, chat, isRunning } from "../chat";
import { ASK_PLACE, isClientTool, runSetTheme, SET_THEME, tools } from "../client-tools";
import { openCalls } from "../state/messages";
import { isApproval } from "../state/questions";
import type { ChatState } from "../state/types";
import { useStore } from "../store";
import { ApprovalCard, type Decision } from "./ApprovalCard";
import { PlaceForm } from "./PlaceForm";
import { SchemaForm } from "./SchemaForm";

/** True in a replay, where nothing can be answered. */
export const ReadOnly = createContext(false);

/** Questions whose call is not shown, and questions that belong to no call. */
export function Interrupts() {
  const interrupts = useStore(chat, (state) => state.interrupts);
  const messages = useStore(chat, (state) => state.messages);
  const isBusy = useStore(chat, isRunning);
  if (isBusy) return null;
  const calls = new Set(
    messages.flatMap((message) => (message.role === "assistant" ? (message.toolCalls ?? []) : [])).map(({ id }) => id),
  );
  const others = interrupts.filter((interrupt) => !isApproval(interrupt) || !calls.has(interrupt.toolCallId ?? ""));
  return (
    <>
      {others.map((interrupt) => (
        <InterruptCard key={interrupt.id} interrupt={interrupt} />
      ))}
    </>
  );
}

/** The question of a call, if there is one now. */
export function CallQuestion({ call, state }: { call: ToolCall; state: ChatState }) {
  const isReadOnly = useContext(ReadOnly);
  if (isReadOnly || isRunning(state)) return null;
  const interrupt = state.interrupts.find((each) => isApproval(each) && each.toolCallId === call.id);
  if (interrupt !== undefined) return <InterruptCard key={interrupt.id} interrupt={interrupt} />;
  return isOpenClientCall(call, state) ? <ClientToolCard key={call.id} call={call} /> : null;
}

/** True for a call of this page's tools that has no result. */
export function isOpenClientCall(call: ToolCall, state: ChatState): boolean {
  return isClientTool(call.function.name) && openCalls(state.messages).some(({ id }) => id === call.id);
}

interface InterruptCardProps {
  interrupt: Interrupt;
  onAnswer?: (entry: Omit<ResumeEntry, "interruptId">) => void;
}

/** One question. Without `onAnswer` it is one of the thread. */
export function InterruptCard({ interrupt, onAnswer = (entry) => void answer(interrupt, entry) }: InterruptCardProps) {
  if (!isApproval(interrupt)) {
    return (
      <SchemaForm
        interrupt={interrupt}
        onSubmit={(payload) => onAnswer({ status: "resolved", payload })}
        onCancel={() => onAnswer({ status: "cancelled" })}
      />
    );
  }
  const { toolName, arguments: text, reason, category, preview, parameters } = interrupt.metadata ?? {};
  const why = [category, reason].filter((each) => typeof each === "string").join(": ");
  return (
    <ApprovalCard
      tool={String(toolName)}
      argumentsText={typeof text === "string" ? text : "{}"}
      parameters={parameters}
      why={why}
      preview={typeof preview === "string" ? preview : undefined}
      expiresAt={interrupt.expiresAt}
      onDecide={(payload) => onAnswer({ status: "resolved", payload })}
    />
  );
}

function ClientToolCard({ call }: { call: ToolCall }) {
  const { name, arguments: text } = call.function;
  if (name === ASK_PLACE) return <PlaceForm call={call} />;
  if (name !== SET_THEME) return null;
  return (
    <ApprovalCard
      tool={name}
      argumentsText={text}
      parameters={tools.find((tool) => tool.name === name)?.parameters}
      why="This changes the page in front of you."
      onDecide={(decision) => void answerCall({ toolCallId: call.id, ...themeResult(text, decision) })}
    />
  );
}

/** Run `set_theme` as the user has decided. The decision is kept with the result, as the server does it. */
function themeResult(text: string, decision: Decision) {
  const { approved, editedArgs, reason } = decision;
  const metadata = { decision };
  if (!approved) {
    const denial = `The user denied this${reason === undefined ? "." : `: ${reason}`}`;
    return { content: denial, error: denial, metadata };
  }
  try {
    return { content: runSetTheme(editedArgs === undefined ? text : JSON.stringify(editedArgs)), metadata };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return { content: message, error: message, metadata };
  }
}
