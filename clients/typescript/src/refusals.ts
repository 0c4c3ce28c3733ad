/**
 * Errors of responses that refuse a request or the handshake of a socket.
 *
 * Rule: a response of the server has the server's error in its body, and the response of a gateway has another body.
 */

import { ConnectionDropped, RunRefusedError } from "./errors.js";
import { serverSentEvents } from "./sse.js";
import { parseObject, refusal } from "./transport.js";

/** HTTP statuses of a gateway whose server does not answer at the moment. */
const RETRYABLE_STATUSES = new Set([429, 502, 503, 504]);

/** HTTP statuses of a gateway that does not accept the caller. */
const CALLER_STATUSES = new Set([401, 403]);

const UPGRADE_REQUIRED = 426;

/** The error of a response whose status is no success. */
export async function requestError(response: Response, timeoutMs: number): Promise<Error> {
  return (await serverError(response, timeoutMs)) ?? gatewayError(response.status);
}

/**
 * The error of a handshake that failed, from the response to a GET of the same URL.
 *
 * @param isCallerKnown true if a socket of the caller has opened before. A gateway may route no GET, so its status then
 *   says little about the caller.
 */
export async function handshakeError(
  response: Response,
  timeoutMs: number,
  isCallerKnown: boolean,
): Promise<Error | undefined> {
  const { ok, status, body } = response;
  if (ok || status === UPGRADE_REQUIRED) {
    await body?.cancel();
    return undefined;
  }
  const error = await serverError(response, timeoutMs);
  return error ?? (CALLER_STATUSES.has(status) && !isCallerKnown ? gatewayError(status) : undefined);
}

async function serverError({ body }: Response, timeoutMs: number): Promise<RunRefusedError | undefined> {
  if (!body) return undefined;
  try {
    for await (const { data } of serverSentEvents(body, timeoutMs)) return refusal(parseObject(data));
  } catch {} // the body of a gateway has another format
  return undefined;
}

function gatewayError(status: number): Error {
  if (RETRYABLE_STATUSES.has(status)) return new ConnectionDropped(`A gateway answered with status ${status}.`);
  const message = `The request was answered with status ${status}.`;
  return new RunRefusedError({ code: `HTTP_${status}`, message, retryable: false });
}
