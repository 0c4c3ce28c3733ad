/** assistant-ui's adapter for the list of threads that the server keeps. */

import type { UseAgUiThreadListAdapter } from "@assistant-ui/react-ag-ui";
import { useCallback, useEffect, useMemo, useState } from "react";
import type { ThreadAgent } from "./adapters";
import { deleteThread, listThreads, type Thread } from "./server";

/** @param open shows another thread, with an agent of its own. */
export function useThreadList(agent: ThreadAgent, open: (threadId: string) => void): UseAgUiThreadListAdapter {
  const [threads, setThreads] = useState<Thread[]>([]);
  const refresh = useCallback(() => void listThreads().then(setThreads), []);
  useEffect(() => {
    refresh();
    return agent.subscribe({ onRunFinalized: refresh }).unsubscribe; // a thread gets its title when its first run ends
  }, [agent, refresh]);

  return useMemo(() => {
    const leaveFor = async (threadId: string) => {
      await agent.detachActiveRun(); // the run continues at the server; an unmount of the runtime would stop it
      open(threadId);
    };
    return {
      threadId: agent.threadId,
      threads: threads.map(({ threadId, title }) => ({ id: threadId, title, status: "regular" })),
      onSwitchToNewThread: () => leaveFor(crypto.randomUUID()),
      onSwitchToThread: async (threadId) => {
        await leaveFor(threadId);
        return { messages: [] }; // the history adapter of the other thread loads them
      },
      onDelete: async (threadId) => {
        await deleteThread(threadId);
        if (threadId === agent.threadId) open(crypto.randomUUID());
        else refresh();
      },
    };
  }, [agent, threads, open, refresh]);
}
