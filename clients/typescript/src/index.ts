/** AG-UI agents for AGUI Container. See README.md. */

export type { BackoffOptions, Reconnect } from "./backoff.js";
export type { ConnectionOptions, WebSocketLike } from "./connection.js";
export {
  AgentClientError,
  CancelTimeoutError,
  ConnectionLostError,
  ERROR_CODES,
  type ErrorCode,
  RunRefusedError,
} from "./errors.js";
export { type Attachment, attachmentOf, type CommandSender } from "./files.js";
export { ResumableHttpAgent, type ResumableHttpAgentConfig } from "./resumable-http-agent.js";
export type { ResumeOptions } from "./run.js";
export type { Command, CommandResult, Provided } from "./transport.js";
export { type RunParameters, WebSocketAgent, type WebSocketAgentConfig } from "./websocket-agent.js";
export type { WebSocketFactory, WebSocketTransportOptions } from "./websocket-transport.js";
