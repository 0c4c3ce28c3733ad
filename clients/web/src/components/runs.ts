/** The server's runs of a thread, for the panels that list them. */

import { useEffect, useState } from "preact/hooks";
import { chat } from "../chat";
import { type RunFacts, runsOf } from "../connection/api";
import { useStore } from "../store";

/** Recent runs, the newest first, loaded again when a run has begun or ended. A component is of one thread only. */
export function useRuns(threadId: string) {
  const status = useStore(chat, ({ run }) => run.status);
  const [runs, setRuns] = useState<readonly RunFacts[]>([]);
  const [error, setError] = useState("");
  const fail = (failure: unknown) => setError(failure instanceof Error ? failure.message : String(failure));
  useEffect(() => {
    let isCurrent = true;
    const load = async () => {
      const found = await runsOf(threadId);
      if (isCurrent) setRuns(found);
    };
    setError("");
    load().catch(fail);
    return () => {
      isCurrent = false;
    };
  }, [status]);
  return { runs, error, fail };
}
