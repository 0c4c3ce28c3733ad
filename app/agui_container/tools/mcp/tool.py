"""Calls of one tool of an MCP server.

Rules: a call is made again only if the server cannot have processed it, or with the answers that it has asked for. The
output schema of a tool is not checked: the package does that on the event loop, where a long result would hold up all
runs.

Source: "Tools" and "Multi Round-Trip Requests" in the Model Context Protocol specification.
"""

import asyncio
import contextlib
import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, Protocol

from ag_ui.core import ResumeEntry
from ag_ui.core import Tool as ToolSpec
from mcp import Client, MCPError
from mcp_types import (
    URL_ELICITATION_REQUIRED,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    ElicitationRequiredErrorData,
    ElicitRequest,
    ElicitRequestParams,
    ElicitResult,
    InputRequiredResult,
)
from msgspec import Struct
from msgspec.structs import replace
from pydantic import TypeAdapter, ValidationError

from agui_container.log_values import format_fields
from agui_container.ports import RunContext, Suspension, ToolContent, ToolError, ToolSuspension, consent_question
from agui_container.tools.mcp.apps import AppFacts, result_for_app, show_app
from agui_container.tools.mcp.connection import UNCERTAIN, Send
from agui_container.tools.mcp.content import NO_REASON, content_of
from agui_container.tools.mcp.elicitation import AskedState, question_of, suspended, with_answers
from agui_container.tools.mcp.open_call import CallAnswer, OpenCall
from agui_container.tools.mcp.servers import Server

logger = logging.getLogger(__name__)

ROUND_SECONDS = 0.25
"""Seconds before a call that its server wants to be made again, without a question to a person."""

ANSWER: Final = TypeAdapter[CallAnswer](CallAnswer)

CUT_OFF = "the call was started and cut off; whether it took effect is not known."
ASKS_WITHIN_CALL: Final = ("no back-channel", "server-initiated requests is unavailable")
"""Words of the Python SDK and of fastmcp for a question within a call that the protocol version does not allow."""

NOT_OFFERED: Final = {"sampling/createMessage": "Sampling not supported", "roots/list": "List roots not supported"}
"""Requests to a client, and the words with which the package refuses them within a call."""

NEEDS: Final = "{} needs '{}', which this client does not offer."

WITHIN_CALL: Final = ""
"""The name of a question within a call, which needs none."""


class SendCall(Protocol):
    async def __call__(self, send: Send[CallAnswer], *, call: OpenCall) -> CallAnswer:
        """Send the request of a call, in a session that is open."""


class McpTool(Struct, frozen=True):
    """One tool of a server. Implements ``ports.Tool``, ``ports.Resumable`` and ``ports.Instructed``.

    Attributes:
        spec: description for the model.
        remote_name: its name at the server.
        server: configuration of the server.
        request: sends a request of a call to it.
        waiting: open calls that wait for an answer, by id. Connections of several callers share them.
        app: the tool's page, and whom the tool is for.
        instructions: the server's text about its tools.
    """

    spec: ToolSpec
    remote_name: str
    server: Server
    request: SendCall
    waiting: dict[str, OpenCall]
    app: AppFacts = AppFacts()
    instructions: str = ""

    @property
    def source_name(self) -> str:
        return self.server.name

    async def call(self, arguments: Mapping[str, object], ctx: RunContext) -> ToolContent:
        """Call the tool at the server. If the task is cancelled, the server is asked to cancel the call.

        Raises:
            ToolError: the tool failed, sent no message within ``server.timeout``, or the connection was lost.
            ToolSuspension: the server asks a person.
        """
        return await self._call(AskedState(dict(arguments)), ctx)

    async def resume(self, suspension: Suspension, answers: Sequence[ResumeEntry], ctx: RunContext) -> ToolContent:
        """Pass the answers on to the server. Raises the same exceptions as ``call``."""
        state, still_open = with_answers(suspension, answers)
        if still_open:
            raise ToolSuspension(suspended(still_open, state))
        if state.open_call is None:
            return await self._call(state, ctx)
        call = self.waiting.pop(state.open_call, None)
        if call is None:
            raise ToolError(CUT_OFF)
        call.ctx = ctx
        call.answer(ElicitResult.model_validate(state.responses[WITHIN_CALL], by_name=False))
        return await self._content_of(call, state)

    async def call_for_app(self, arguments: Mapping[str, object], ctx: RunContext) -> Mapping[str, object]:
        """Call the tool for an app, which gets the result as it is. Raises ``ToolError``."""
        call = OpenCall(ctx, self.server.timeout, partial(self._send, AskedState(dict(arguments))))
        await call.settled()
        with contextlib.suppress(ToolSuspension):
            if call.task.done() and isinstance(answer := self._answer_of(call), CallToolResult):
                return result_for_app(answer)
        call.task.cancel()
        raise ToolError(f"{self.remote_name} asks a person, which it cannot do in a call of an app.")

    async def _call(self, state: AskedState, ctx: RunContext) -> ToolContent:
        call = OpenCall(ctx, self.server.timeout, partial(self._send, state))
        try:
            return await self._content_of(call, state)
        except ToolError as error:
            for method, words in NOT_OFFERED.items():
                if method in str(error) or words in str(error):
                    raise ToolError(NEEDS.format(self.remote_name, method)) from error
            if any(each in str(error) for each in ASKS_WITHIN_CALL):
                fields = {"server": self.server.name, "tool": self.remote_name, "handshake": "initialize"}
                logger.warning("MCP tool asks within its call, which needs the setting %s", format_fields(fields))
            raise

    async def _content_of(self, call: OpenCall, state: AskedState) -> ToolContent:
        """Wait for the result of a call, or for a question in its place. Raises as ``call``."""
        await call.settled()
        if not call.task.done():
            self._keep_open(call)
            asked: Mapping[str, ElicitRequestParams] = {WITHIN_CALL: call.question.result()}
            state = AskedState(state.arguments, open_call=call.id)
        else:
            answer = self._answer_of(call)
            if isinstance(answer, CallToolResult):
                if self.app.resource_uri is not None:
                    show_app(self.app.resource_uri, self.server.name, state.arguments, answer, call.ctx)
                return content_of(answer)
            asked = elicitations_of(answer, self.spec.name)
            state = AskedState(state.arguments, request_state=answer.request_state)
        questions = {key: question_of(params, call.ctx.tool_call_id) for key, params in asked.items()}
        raise ToolSuspension(suspended(questions, state))

    def _keep_open(self, call: OpenCall) -> None:
        """Keep a call whose server has asked within it, until the answer or the end."""
        self.waiting[call.id] = call
        call.task.add_done_callback(lambda it: it.cancelled() or it.exception())  # asyncio must not log it
        call.task.add_done_callback(lambda _: self.waiting.pop(call.id, None))
        call.ctx.background(call.ended())

    async def _send(self, state: AskedState, call: OpenCall) -> CallAnswer:
        answer = await self.request(partial(self._send_once, state, call), call=call)
        while isinstance(answer, InputRequiredResult) and not answer.input_requests:
            await asyncio.sleep(ROUND_SECONDS)
            state = replace(state, responses={}, request_state=answer.request_state)
            answer = await self.request(partial(self._send_once, state, call), call=call)
        return answer

    async def _send_once(self, state: AskedState, call: OpenCall, client: Client) -> CallAnswer:
        given = {"inputResponses": state.responses or None, "requestState": state.request_state}
        fields = {"name": self.remote_name, "arguments": state.arguments, **given}
        request = CallToolRequest(params=CallToolRequestParams.model_validate(fields, by_name=False))
        return await client.session.send_request(request, ANSWER, progress_callback=call.report)

    def _answer_of(self, call: OpenCall) -> CallAnswer:
        """Return the answer of a call that has ended. Raises as ``call``."""
        try:
            return call.task.result()
        except TimeoutError as error:
            raise ToolError(f"{self.spec.name} did not respond for {self.server.timeout:g} seconds.") from error
        except ValidationError as error:
            raise ToolError(UNCERTAIN.format(self.server.name)) from error
        except MCPError as error:
            if error.code == URL_ELICITATION_REQUIRED:
                raise_for_links(error, call.ctx)
            raise ToolError(error.message.strip() or NO_REASON) from error


def elicitations_of(answer: InputRequiredResult, tool: str) -> Mapping[str, ElicitRequestParams]:
    """Return what a server asks in place of a result. Raises ``ToolError`` if that is no question to a person."""
    requests = answer.input_requests or {}
    for request in requests.values():
        if not isinstance(request, ElicitRequest):
            raise ToolError(NEEDS.format(tool, request.method))
    return {key: request.params for key, request in requests.items() if isinstance(request, ElicitRequest)}


def raise_for_links(error: MCPError, ctx: RunContext) -> None:
    """Ask a person to open links first, as a server from before 2026-07-28 needs. The call is made again then."""
    with contextlib.suppress(ValidationError):
        required = ElicitationRequiredErrorData.model_validate(error.error.data)
        links = [consent_question(each.url, each.message) for each in required.elicitations]
        asked = [link.model_copy(update={"tool_call_id": ctx.tool_call_id}) for link in links]
        raise ToolSuspension(Suspension(asked)) from error
