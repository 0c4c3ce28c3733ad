"""An MCP server over HTTP whose answers a test chooses. It can forget its sessions, as a restarted server does."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from agui_container.ports import RunContext, ToolContent
from agui_container.tools.mcp.servers import HttpServer
from agui_container.tools.mcp.source import McpSource
from tests.contexts import run_context
from tests.tools.mcp_demo import serve_app
from tests.tools.mcp_fixtures import Time

Json = dict[str, object]

SESSION = "mcp-session-id"
ECHO: Json = {"name": "echo", "inputSchema": {"type": "object"}}
NEWEST = "2026-07-28"


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def refused(status: int, code: int | None = None, message: str = "") -> Callable[[object], Response]:
    """Return the answer of a server that refuses a request, with an error of JSON-RPC if there is a code."""

    def answer(id_: object) -> Response:
        challenge = {"www-authenticate": 'Bearer realm="demo"'} if status == 401 else {}
        if code is None:
            return Response(status_code=status, headers=challenge)
        error = {"code": code, "message": message}
        return JSONResponse({"jsonrpc": "2.0", "id": id_, "error": error}, status)

    return answer


@dataclass
class Scripted:
    """The server, of 2026-07-28 if ``is_newest``, else with sessions. ``refusals`` replace answers by method."""

    listing: Callable[[object], Json] = lambda _: {"tools": [ECHO]}
    result: Json = field(default_factory=lambda: {"content": [text("carried out")]})
    refusals: dict[str, Callable[[object], Response]] = field(default_factory=dict)
    forgotten: Callable[[object], Response] = lambda _: Response(status_code=404)
    is_newest: bool = False
    instructions: str = ""
    sessions: set[str] = field(default_factory=set)
    methods: list[str] = field(default_factory=list)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            request = Request(scope, receive)
            await (await self._answer(request))(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        if request.method != "POST":
            return Response(status_code=405)
        message: Json = await request.json()
        id_, method = message.get("id"), str(message["method"])
        if id_ is None:
            return Response(status_code=202)
        if method in self.refusals:
            return self.refusals[method](id_)
        is_first = method in {"initialize", "server/discover"}
        if not (is_first or self.is_newest) and request.headers.get(SESSION) not in self.sessions:
            return self.forgotten(id_)
        params = message.get("params")
        result = self._result(method, params if isinstance(params, dict) else {})
        if result is None:
            return refused(400, -32601, "Method not found")(id_)
        self.methods.append(method)
        if self.is_newest:
            result = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **result}
        answer = JSONResponse({"jsonrpc": "2.0", "id": id_, "result": result})
        if method == "initialize":
            answer.headers[SESSION] = f"session-{len(self.methods)}"
            self.sessions.add(f"session-{len(self.methods)}")
        return answer

    def _result(self, method: str, params: Json) -> Json | None:
        about: Json = {"capabilities": {"tools": {}}, "serverInfo": {"name": "scripted", "version": "1"}}
        about["instructions"] = self.instructions
        match method, self.is_newest:
            case "server/discover", True:
                return {**about, "supportedVersions": [NEWEST]}
            case "initialize", False:
                return {**about, "protocolVersion": "2025-06-18"}
            case "tools/list", _:
                return self.listing(params.get("cursor"))
            case "tools/call", _:
                return self.result
        return None


@dataclass
class ScriptedRig:
    source: McpSource
    server: Scripted
    time: Time

    async def names(self) -> Sequence[str]:
        return [tool.spec.name for tool in await self.source.tools(run_context())]

    async def call(self, ctx: RunContext | None = None) -> ToolContent:
        ctx = ctx or run_context()
        return await (await self.source.tools(ctx))[0].call({}, ctx)


@asynccontextmanager
async def scripted(server: Scripted | None = None, **settings: object) -> AsyncIterator[ScriptedRig]:
    server = server or Scripted()
    time = Time()
    async with serve_app(server) as port:
        fields = {"name": "demo", "url": f"http://127.0.0.1:{port}/mcp", "tool_prefix": "", **settings}
        source = McpSource(HttpServer.model_validate(fields), time)
        try:
            yield ScriptedRig(source, server, time)
        finally:
            await source.aclose()
