/** The official client, the agents that reconnect and the parts of files, in a chunk that loads after the first paint. */

import { type BaseEvent, transformChunks, verifyEvents } from "@ag-ui/client";
import type { Observable } from "rxjs";

export { attachmentOf, ResumableHttpAgent, WebSocketAgent } from "@agui-container/client";

/** Events as the official client accepts them: chunks expanded, order checked. */
export function verified(events: Observable<BaseEvent>): Observable<BaseEvent> {
  return verifyEvents()(transformChunks()(events));
}
