/** An agent, and assistant-ui's adapters for what the server keeps: the messages of a thread, and ratings of them. */

import type { AgentSubscriber, Interrupt, RunAgentParameters } from "@ag-ui/client";
import { ResumableHttpAgent } from "@agui-container/client";
import { ExportedMessageRepository, type FeedbackAdapter, type ThreadHistoryAdapter } from "@assistant-ui/react";
import { fromAgUiMessages } from "@assistant-ui/react-ag-ui";
import { getThread, rate, type ThreadWithMessages } from "./server";

/** An agent whose next run may be one that is open at the server: it follows that one and starts none. */
export class ThreadAgent extends ResumableHttpAgent {
  hasOpenRun = false;

  override runAgent(parameters?: RunAgentParameters, subscriber?: AgentSubscriber) {
    if (!this.hasOpenRun) return super.runAgent(parameters, subscriber);
    this.hasOpenRun = false;
    return this.connectAgent(parameters, subscriber);
  }
}

/** Load a thread with its ratings and its open approvals. If a run is open there, the runtime follows it. */
export function serverHistory(agent: ThreadAgent): ThreadHistoryAdapter {
  return {
    async load() {
      const thread = await getThread(agent.threadId);
      if (!thread) return { messages: [] };
      agent.hasOpenRun = thread.activeRunId !== undefined;
      const messages = thread.waiting.length > 0 ? await messagesWithApprovals(agent, thread) : thread.messages;
      const rated = fromAgUiMessages(messages).map((message) => {
        const type = thread.feedback.find(({ messageId }) => messageId === message.id)?.sentiment;
        return type ? { ...message, metadata: { ...message.metadata, submittedFeedback: { type } } } : message;
      });
      return { ...ExportedMessageRepository.fromArray(rated), unstable_resume: agent.hasOpenRun };
    },
    async append() {}, // the server has written it down
  };
}

/** The messages, and on the one with the calls the interrupts that wait for an answer, where assistant-ui looks. */
async function messagesWithApprovals(agent: ThreadAgent, { messages }: ThreadWithMessages) {
  let interrupts: Interrupt[] = [];
  await agent.clone().connectAgent(undefined, {
    onRunFinishedEvent: (finished) => {
      if (finished.outcome === "interrupt") interrupts = finished.interrupts;
    },
  });
  const asking = messages.findLast(({ role }) => role === "assistant");
  const metadata = { custom: { agui: { interrupts } } };
  return messages.map((message) => (message === asking ? { ...message, metadata } : message));
}

export function serverFeedback(agent: ThreadAgent): FeedbackAdapter {
  return { submit: ({ message, type }) => void rate(agent.threadId, message.id, type) };
}
