"""An agent that is an AG-UI server elsewhere, named by its URL or by the ARN of an AgentCore runtime.

Rules:

- The input is forwarded as it came, and events are handed on as they come. The server elsewhere keeps its own thread
  under the same id.
- A run that ends here before it has ended there is cancelled there, because AgentCore tells its containers nothing of
  a connection that is closed.
- A caller's bearer token is forwarded. Without one, requests to AgentCore are signed. The client's package is imported
  only for such an agent.
"""

import json
from collections.abc import AsyncGenerator, Mapping
from uuid import NAMESPACE_URL, uuid5

import httpx
from ag_ui.core import BaseEvent, Event, EventType, RunAgentInput
from pydantic import TypeAdapter

from agui_container.ports import RunContext

SESSION_HEADER = "X-Amzn-Bedrock-AgentCore-Runtime-Session-Id"
CONNECT_SECONDS, CANCEL_SECONDS = 10.0, 5.0
TERMINAL = (EventType.RUN_FINISHED, EventType.RUN_ERROR)

_EVENT: TypeAdapter[BaseEvent] = TypeAdapter(Event)


class RemoteAgent:
    """Forwards runs to a server.

    Args:
        reference: URL of the server's ``/invocations``, or the ARN of a runtime.

    Raises:
        ValueError: the ARN is not one of a runtime.
    """

    def __init__(self, reference: str) -> None:
        self._url, self._signature = reference, None
        if reference.startswith("arn:"):
            from agui_client.agentcore import SigV4, agentcore_url  # noqa: PLC0415 - see the module's rule

            self._url = agentcore_url(reference)
            self._signature = SigV4(reference.split(":")[3])

    async def run(self, input: RunAgentInput, ctx: RunContext) -> AsyncGenerator[BaseEvent, None]:
        """Yield the events of the run elsewhere. Raises exceptions of httpx."""
        token = ctx.caller.headers.get("authorization")
        headers = {
            "Content-Type": "application/json",
            "Accept": "text/event-stream",
            SESSION_HEADER: str(uuid5(NAMESPACE_URL, input.thread_id)),
            **({"Authorization": token} if token else {}),
        }
        auth = None if token else self._signature
        body = input.model_dump_json(by_alias=True, exclude_none=True)
        timeout = httpx.Timeout(None, connect=CONNECT_SECONDS)
        async with httpx.AsyncClient(headers=headers, auth=auth, timeout=timeout) as http:
            is_open = True
            try:
                async with http.stream("POST", self._url, content=body) as answer:
                    answer.raise_for_status()
                    async for line in answer.aiter_lines():
                        if line.startswith("data:"):
                            event = _EVENT.validate_json(line[5:])
                            is_open = event.type not in TERMINAL
                            yield event
            finally:
                if is_open:
                    await self._cancel(http, {"threadId": input.thread_id, "runId": input.run_id})

    async def _cancel(self, http: httpx.AsyncClient, run: Mapping[str, str]) -> None:
        command = {**run, "command": {"type": "cancel", **run}}
        try:
            await http.post(self._url, content=json.dumps(command), timeout=CANCEL_SECONDS)
        except httpx.HTTPError:
            return  # the server elsewhere ends a run without a reader by itself
