/** The CopilotKit runtime without a state of its own: the agent server has the threads and their runs. */

import { randomUUID } from "node:crypto";
import { type BaseEvent, EventType, type RunErrorEvent } from "@ag-ui/client";
import { ResumableHttpAgent, RunRefusedError } from "@agui-container/client";
import {
  AgentRunner,
  type AgentRunnerConnectRequest,
  type AgentRunnerRunRequest,
  type AgentRunnerStopRequest,
  CopilotRuntime,
} from "@copilotkit/runtime/v2";
import { createCopilotNodeListener } from "@copilotkit/runtime/v2/node";
import { catchError, Observable, of } from "rxjs";

/** A request listener for Node.js' `http` that answers the page. */
export function runtimeListener(url: string) {
  const agents = { default: new ResumableHttpAgent({ url }) };
  return createCopilotNodeListener({ runtime: new CopilotRuntime({ agents, runner: new ServerRunner(url) }) });
}

/** Leaves threads to the agent server, so a page that is loaded again finds them after the runtime was restarted. */
class ServerRunner extends AgentRunner {
  private readonly url: string;

  constructor(url: string) {
    super();
    this.url = url;
  }

  /** Run the agent with the middlewares of the runtime, such as that of `a2ui`. `agent.run()` would leave them out. */
  run({ agent, input }: AgentRunnerRunRequest) {
    const events = new Observable<BaseEvent>((page) => {
      const onEvent = ({ event }: { event: BaseEvent }) => page.next(event);
      agent.runAgent(input, { onEvent }).then(
        () => page.complete(),
        (error) => page.error(error),
      );
      return () => void agent.detachActiveRun();
    });
    return events.pipe(catchError(runError));
  }

  connect({ threadId, headers = {} }: AgentRunnerConnectRequest) {
    return new ThreadAgent({ url: this.url, headers }).show(threadId);
  }

  async isRunning({ threadId }: { threadId: string }) {
    return (await this.command("threads.get", threadId))?.activeRunId !== undefined;
  }

  async stop({ threadId, runId }: AgentRunnerStopRequest) {
    return (await this.command("cancel", threadId, { runId })) !== undefined;
  }

  private async command(type: string, threadId: string, fields = {}) {
    try {
      return await new ResumableHttpAgent({ url: this.url }).command({ type, threadId, ...fields });
    } catch (error) {
      if (error instanceof RunRefusedError) return undefined; // there is no such thread, or no run in it
      throw error;
    }
  }
}

/** A refusal as an event, because the runtime keeps exceptions from the page. */
function runError(error: unknown): Observable<BaseEvent> {
  if (!(error instanceof RunRefusedError)) throw error;
  const event: RunErrorEvent = { type: EventType.RUN_ERROR, message: error.message, code: error.code };
  return of(event);
}

class ThreadAgent extends ResumableHttpAgent {
  /** Show a thread, and follow its open run. */
  show(threadId: string) {
    const empty = { messages: [], tools: [], context: [], state: {}, forwardedProps: {} };
    return this.connect({ threadId, runId: randomUUID(), ...empty });
  }
}
