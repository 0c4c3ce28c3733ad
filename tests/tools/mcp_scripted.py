"""An MCP server over HTTP whose answers a test chooses. It can forget its sessions, as a restarted server does."""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from agui_container.ports import ToolContent
from agui_container.tools.mcp.servers import HttpServer
from agui_container.tools.mcp.source import McpSource
from tests.contexts import run_context
from tests.tools.mcp_demo import serve_app
from tests.tools.mcp_fixtures import Times

Json = dict[str, object]

SESSION = "mcp-session-id"
ECHO: Json = {"name": "echo", "inputSchema": {"type": "object"}}


def text(words: str) -> Json:
    return {"type": "text", "text": words}


ERRORS: dict[str, tuple[str, str]] = {
    "a string": ('{"jsonrpc":"2.0","id":ID,"error":"No access."}', "No access."),
    "a list": ('{"jsonrpc":"2.0","id":ID,"error":["No access."]}', '["No access."]'),
    "true": ('{"jsonrpc":"2.0","id":ID,"error":true}', "true"),
    "no code": ('{"jsonrpc":"2.0","id":ID,"error":{"message":"No access."}}', "No access."),
    "a code that is a string": ('{"jsonrpc":"2.0","id":ID,"error":{"code":"E1","message":"No access."}}', "No access."),
    "no message": ('{"jsonrpc":"2.0","id":ID,"error":{"code":-32000}}', '{"code":-32000}'),
    "a message that is null": ('{"id":ID,"jsonrpc":"2.0","error":{"message":null}}', '{"message":null}'),
    "a message that is empty": (
        '{"jsonrpc":"2.0","id":ID,"error":{"code":1,"message":" "}}',
        "the tool gave no reason.",
    ),
    "no fields": ('{"jsonrpc":"2.0","id":ID,"error":{}}', "the tool gave no reason."),
    "null": ('{"jsonrpc":"2.0","id":ID,"error":null}', "the tool gave no reason."),
    "no version": ('{"id":ID,"error":{"code":1,"message":"No access."}}', "No access."),
    "the id at the end": ('{"error":"No access.","id":ID,"jsonrpc":"2.0"}', "No access."),
    "a result that is null": ('{"jsonrpc":"2.0","id":ID,"result":null,"error":{"message":"No access."}}', "No access."),
    "a result beside it": (
        '{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"x"}]},"error":"No access."}',
        "No access.",
    ),
    "neither": ('{"jsonrpc":"2.0","id":ID}', "The server sent neither a result nor an error."),
    "a line that is cut": (
        '{"jsonrpc":"2.0","id":ID,"error":{"code":-3',
        "The server reported an error that cannot be read.",
    ),
}
"""Answers with malformed errors, and what the model reads."""

RESULTS_WITH_ERROR: dict[str, str] = {
    "null": '{"jsonrpc":"2.0","id":ID,"error":null,"result":{"content":[{"type":"text","text":"carried out"}]}}',
    "false": '{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"carried out"}]},"error":false}',
}
"""Answers of servers that always send both fields."""


def too_large(digits: int) -> str:
    """Return an answer with integers of so many digits. ``json.dumps`` refuses to write them."""
    number = "9" * digits
    return f'{{"jsonrpc":"2.0","id":ID,"result":{{"structuredContent":{{"n":{number},"m":[-{number},1]}}}}}}'


def refused(status: int, code: int | None = None, message: str = "") -> Callable[[object], Response]:
    """Return the answer of a server that does not know the session, with an error of JSON-RPC if there is a code."""

    def answer(id_: object) -> Response:
        if code is None:
            return Response(status_code=status)
        error = {"code": code, "message": message}
        return JSONResponse({"jsonrpc": "2.0", "id": id_, "error": error}, status)

    return answer


@dataclass
class Scripted:
    """The server. ``pages`` returns a list of tools, ``result`` is the result of every call, or ``error`` its error.

    ``answer`` is the whole answer of every call, with ``ID`` for its id.
    """

    pages: Callable[[object], Json] = lambda _: {"tools": [ECHO]}
    result: Json = field(default_factory=lambda: {"content": [text("carried out")]})
    error: Json | None = None
    answer: str = ""
    refuse: Callable[[object], Response] = lambda _: Response(status_code=404)
    as_events: bool = False
    can_resume: bool = False
    """Its streams of events begin with an id, and a client that resumes one gets it again."""
    stream: str = ""
    """The last stream of events."""
    sessions: set[str] = field(default_factory=set)
    methods: list[str] = field(default_factory=list)
    """Requests that were processed."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        await (await self._answer(request))(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        if request.method != "POST":
            is_resumed = "last-event-id" in request.headers
            return Response(self.stream, media_type="text/event-stream") if is_resumed else Response(status_code=405)
        message: Json = await request.json()
        if "id" not in message:
            return Response(status_code=202)
        method = str(message["method"])
        if method == "initialize":
            return self._initialize(message)
        if request.headers.get(SESSION) not in self.sessions:
            return self.refuse(message["id"]) if SESSION in request.headers else Response(status_code=400)
        self.methods.append(method)
        params = message.get("params")
        cursor = params.get("cursor") if isinstance(params, dict) else None
        if method == "tools/list":
            return self._result(message, self.pages(cursor))
        return self._call(message)

    def _call(self, message: Json) -> Response:
        if self.answer:
            return self._send(self.answer.replace("ID", str(message["id"])))
        return self._answer_with(message, error=self.error) if self.error else self._result(message, self.result)

    def _initialize(self, message: Json) -> Response:
        self.methods.append("initialize")
        name = f"session-{len(self.methods)}"
        self.sessions.add(name)
        about = {"name": "scripted", "version": "1"}
        answer = self._result(
            message, {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": about}
        )
        answer.headers[SESSION] = name
        return answer

    def _result(self, message: Json, result: Json) -> Response:
        return self._answer_with(message, result=result)

    def _answer_with(self, message: Json, **answer: object) -> Response:
        return self._send(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}))

    def _send(self, body: str) -> Response:
        if self.as_events:
            begin = "id: 1\ndata:\n\n" if self.can_resume else ""
            self.stream = f"{begin}event: message\ndata: {body}\n\n"
            return Response(self.stream, media_type="text/event-stream")
        return Response(body, media_type="application/json")


@dataclass
class ScriptedRig:
    """A source and its scripted server."""

    source: McpSource
    server: Scripted
    times: Times

    async def names(self) -> Sequence[str]:
        return [tool.spec.name for tool in await self.source.tools(run_context())]

    async def call(self) -> ToolContent:
        """Call the first tool of the list."""
        return await (await self.source.tools(run_context()))[0].call({}, run_context())


@asynccontextmanager
async def scripted(server: Scripted | None = None, **settings: object) -> AsyncIterator[ScriptedRig]:
    server = server or Scripted()
    times = Times()
    async with serve_app(server) as port:
        fields = {"name": "demo", "url": f"http://127.0.0.1:{port}/mcp", "tool_prefix": "", **settings}
        source = McpSource(HttpServer.model_validate(fields), times.clocks)
        try:
            yield ScriptedRig(source, server, times)
        finally:
            await source.aclose()
