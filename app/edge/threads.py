"""The routes of threads: each is a command of ``app.core.commands`` written as a URL.

Rule: the path says more than the body, and the body more than the query.
"""

from collections.abc import Awaitable, Callable

from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute

from app.core.inbound import command_of
from app.edge.body import read_body, understand_fields
from app.edge.commands import Commands
from app.edge.exact import ExactRoute
from app.edge.gate import caller_of
from app.engine.service import Service

NOT_KEPT = {"Cache-Control": "no-store"}
"""One address shows each caller something else, so nothing between may keep it."""


def routes(service: Service, commands: Commands, *, max_body: int) -> list[BaseRoute]:
    """Return the routes of threads. ``max_body`` bounds a body in bytes."""

    async def asked(request: Request, kind: str) -> dict[str, object]:
        """What the command gives."""
        body = await read_body(request, max_body, service) if request.method in {"POST", "PATCH"} else b""
        fields = {**request.query_params, **await understand_fields(body), **request.path_params, "type": kind}
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
