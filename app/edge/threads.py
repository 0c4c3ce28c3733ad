"""The routes of threads (design 4.2): each is a command of ``app.core.commands`` written as a URL.

Rule: a path is matched as it was sent. A slash separates, and one that is written as ``%2F`` is part of an id, so every
id has exactly one address and no id can pass for another route.
"""

from collections.abc import Awaitable, Callable
from urllib.parse import quote, unquote

from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Scope

from app.core.inbound import command_of, parse_fields
from app.edge.body import read_body
from app.edge.commands import Commands
from app.edge.gate import caller_of

NOT_KEPT = {"Cache-Control": "no-store"}
"""One address shows each caller something else, so nothing between may keep it."""


class ExactRoute(Route):
    """A route whose parameters are single segments of the path as it was sent, decoded afterwards."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """As every route, on the path that still has its escapes."""
        sent: bytes = scope.get("raw_path") or quote(scope["path"]).encode()
        match, found = super().matches({**scope, "path": sent.decode("latin-1")})
        if match is not Match.NONE:
            found["path_params"] = {name: unquote(value) for name, value in found["path_params"].items()}
        return match, found


def routes(commands: Commands, *, max_body: int) -> list[BaseRoute]:
    """The routes of threads. ``max_body`` bounds a body in bytes."""

    async def asked(request: Request, kind: str) -> dict[str, object]:
        """What the command gives. The path says more than the body, and the body more than the query."""
        body = await read_body(request, max_body) if request.method in {"POST", "PATCH"} else b""
        fields = {**request.query_params, **parse_fields(body or b"{}"), **request.path_params, "type": kind}
        return await commands.answer(command_of(fields), caller_of(request))

    def answers(kind: str) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            body = to_json(await asked(request, kind))  # a third of what the framework's own takes
            return Response(body, headers=NOT_KEPT, media_type="application/json")

        return answer

    async def transcript(request: Request) -> Response:
        result = await asked(request, "threads.transcript")
        return PlainTextResponse(str(result["transcript"]), headers=NOT_KEPT)

    thread = "/threads/{threadId}"
    return [
        ExactRoute("/threads", answers("threads.list")),
        ExactRoute(thread, answers("threads.get"), methods=["GET"]),
        ExactRoute(thread, answers("threads.rename"), methods=["PATCH"]),
        ExactRoute(thread, answers("threads.delete"), methods=["DELETE"]),
        ExactRoute(f"{thread}/transcript", transcript),
        ExactRoute(f"{thread}/delta", answers("threads.delta")),
        ExactRoute(f"{thread}/fork", answers("threads.fork"), methods=["POST"]),
        ExactRoute(f"{thread}/messages/{{messageId}}/feedback", answers("threads.feedback"), methods=["POST"]),
    ]
