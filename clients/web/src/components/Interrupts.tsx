/** Questions to the user: approvals, forms, and this page's own tools. */

import type { Interrupt, ToolCall } from "@ag-ui/core";
import { answer, answerCall, chat } from "../chat";
import { ASK_PLACE, isClientTool, runSetTheme, SET_THEME } from "../client-tools";
import { openCalls } from "../state/messages";
import { useStore } from "../store";
import { ApprovalCard, type Decision } from "./ApprovalCard";
import { PlaceForm } from "./PlaceForm";
import { SchemaForm } from "./SchemaForm";

export function Interrupts() {
  const interrupts = useStore(chat, (state) => state.interrupts);
  const messages = useStore(chat, (state) => state.messages);
  const status = useStore(chat, (state) => state.run.status);
  if (status === "running") return null;
  const calls = openCalls(messages).filter((call) => isClientTool(call.function.name));
  return (
    <>
      {interrupts.map((interrupt) => (
        <InterruptCard key={interrupt.id} interrupt={interrupt} />
      ))}
      {calls.map((call) => (
        <ClientToolCard key={call.id} call={call} />
      ))}
    </>
  );
}

function InterruptCard({ interrupt }: { interrupt: Interrupt }) {
  const { toolName, arguments: text, reason, category } = interrupt.metadata ?? {};
  if (interrupt.reason !== "tool_call" || typeof toolName !== "string") {
    return (
      <SchemaForm
        interrupt={interrupt}
        onSubmit={(payload) => void answer(interrupt, { status: "resolved", payload })}
        onCancel={() => void answer(interrupt, { status: "cancelled" })}
      />
    );
  }
  const why = [category, reason].filter((each) => typeof each === "string").join(": ");
  const decide = (decision: Decision) => void answer(interrupt, { status: "resolved", payload: payloadOf(decision) });
  return (
    <ApprovalCard
      tool={toolName}
      argumentsText={typeof text === "string" ? text : "{}"}
      why={why}
      expiresAt={interrupt.expiresAt}
      onDecide={decide}
    />
  );
}

function payloadOf({ isApproved, editedArgs, reason }: Decision): Record<string, unknown> {
  if (!isApproved) return reason === "" ? { approved: false } : { approved: false, reason };
  return editedArgs === undefined ? { approved: true } : { approved: true, editedArgs };
}

function ClientToolCard({ call }: { call: ToolCall }) {
  const { name, arguments: text } = call.function;
  if (name === ASK_PLACE) return <PlaceForm call={call} />;
  if (name !== SET_THEME) return null;
  const decide = ({ isApproved, editedArgs, reason }: Decision) => {
    if (!isApproved) {
      const denial = `The user denied this${reason === "" ? "." : `: ${reason}`}`;
      void answerCall(call.id, denial, denial);
      return;
    }
    try {
      void answerCall(call.id, runSetTheme(editedArgs === undefined ? text : JSON.stringify(editedArgs)));
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      void answerCall(call.id, message, message);
    }
  };
  return (
    <ApprovalCard tool={name} argumentsText={text} why="This changes the page in front of you." onDecide={decide} />
  );
}
