/** A line above the text field about what the agent waits for. */

import { allowAll, chat, isRunning } from "../chat";
import { isClientTool } from "../client-tools";
import { openCalls } from "../state/messages";
import { isApproval } from "../state/questions";
import type { ChatState } from "../state/types";
import { useStore } from "../store";
import { openSteps } from "./ApprovalCard";
import { Icon } from "./icons";

export function WaitingBar() {
  const state = useStore(chat);
  const hasOpenStep = useStore(openSteps) > 0;
  const text = isRunning(state) ? "" : describe(state);
  if (text === "") return null;
  const canAllowAll = state.interrupts.filter(isApproval).length > 1;
  return (
    <div class="waiting-bar" role="status">
      <Icon name="hand" />
      <span>{text}</span>
      <div class="waiting-actions">
        {canAllowAll && (
          <button type="button" class="button" disabled={hasOpenStep} onClick={allowAll}>
            Allow all
          </button>
        )}
        <button type="button" class="button" onClick={showQuestion}>
          Show
        </button>
      </div>
    </div>
  );
}

/** Say what waits, and what becomes of a message that is written now. */
function describe({ interrupts, messages }: ChatState): string {
  const approvals = interrupts.filter(isApproval);
  const names = new Set(approvals.map(({ metadata }) => String(metadata?.toolName)));
  if (approvals.length > 0) {
    const what = approvals.length === 1 ? `${[...names][0]} waits` : `${approvals.length} calls wait`;
    return `${what} for your decision. A message is answered after it.`;
  }
  if (interrupts.length > 0) {
    return "The agent waits for your answer. A message is answered after it.";
  }
  const asks = openCalls(messages).some((call) => isClientTool(call.function.name));
  return asks ? "The assistant waits for your answer. A message goes on without it." : "";
}

function showQuestion(): void {
  const card = document.querySelector<HTMLElement>(".scroll .card");
  card?.scrollIntoView({ block: "center" });
  card?.focus({ preventScroll: true });
}
