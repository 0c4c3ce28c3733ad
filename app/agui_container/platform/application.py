"""The platform as an application: the routes of AgentCore's data plane, and ``/_platform`` for people and tests."""

import json
import logging
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from html import escape

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute

from agui_container.platform.data_plane import DataPlane, PlatformOptions, describe_findings
from agui_container.platform.errors import PlatformError
from agui_container.transports.html_page import PAGE_HEADERS, html_document, wants_page

RUNTIME = "/runtimes/{runtime:path}"
"""The ARN has a slash, which clients write as %2F."""

MAX_DECISIONS = 200
REFRESH_SECONDS = 2
ROOM = "agui_container.platform"


class RecentDecisions(logging.Handler):
    """The latest log lines of the platform, newest first."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: deque[str] = deque(maxlen=MAX_DECISIONS)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one line."""
        self.lines.appendleft(record.getMessage())


class PlatformPage:
    """State of the platform as JSON, and as a page that a browser reloads.

    Args:
        plane: the data plane.
        decisions: the latest log lines.
    """

    def __init__(self, plane: DataPlane, decisions: RecentDecisions) -> None:
        self._plane = plane
        self._decisions = decisions

    async def show(self, request: Request) -> Response:
        """Return the page to a browser and JSON to everybody else."""
        state = self.state()
        if not wants_page(request):
            return JSONResponse(state)
        headers = {**PAGE_HEADERS, "Refresh": str(REFRESH_SECONDS)}
        return Response(html_document("agui platform", self._body()), 200, headers, media_type="text/html")

    def state(self) -> Mapping[str, object]:
        """Return sessions with their states and reasons, the rules, and the latest decisions."""
        return {
            "sessions": [session.describe() for session in self._plane.sessions.all().values()],
            "rules": describe_findings(self._plane.findings),
            "decisions": list(self._decisions.lines),
        }

    async def set_next_error(self, request: Request) -> Response:
        """Let the next request fail: ``{"code": "RATE_LIMIT_EXCEEDED"}``."""
        try:
            error = PlatformError[(await request.json())["code"]]
        except (ValueError, TypeError, KeyError):
            codes = ", ".join(PlatformError.__members__)
            return JSONResponse({"message": f'The body must be {{"code": …}} with one of {codes}.'}, 400)
        self._plane.script_error(error)
        return JSONResponse({"code": error.name})

    def _body(self) -> str:
        sessions = [session.describe() for session in self._plane.sessions.all().values()]
        rules = [finding for finding in describe_findings(self._plane.findings) if finding["state"] != "not seen"]
        columns = ("sessionId", "state", "reason", "container", "idleSeconds", "openRequests", "openSockets", "ping")
        lines = "".join(f"<li>{escape(line)}</li>" for line in self._decisions.lines)
        return (
            f"<h2>Sessions</h2>{table(columns, sessions)}"
            f"<h2>Rules</h2>{table(('rule', 'state', 'sentence', 'detail'), rules)}"
            f"<h2>Decisions</h2><ol class='small' reversed>{lines}</ol>"
        )


def table(columns: Sequence[str], rows: Sequence[Mapping[str, object]]) -> str:
    """Return a table as HTML."""
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    cells = ("".join(f"<td>{escape(shown_value(row[column]))}</td>" for column in columns) for row in rows)
    return f"<table class='small'><tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"


def shown_value(value: object) -> str:
    """Return a value of the state for people."""
    return value if isinstance(value, str) else json.dumps(value)


def build_platform(options: PlatformOptions) -> Starlette:
    """Build the platform. ``app.state.plane`` is its data plane. All containers end with the application's lifespan."""
    plane, decisions = DataPlane(options), RecentDecisions()
    page = PlatformPage(plane, decisions)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        room = logging.getLogger(ROOM)
        room.addHandler(decisions)
        room.setLevel(logging.INFO)
        yield
        await plane.aclose()
        room.removeHandler(decisions)

    well_known = f"{RUNTIME}/invocations/.well-known"
    routes = [
        Route(f"{RUNTIME}/invocations", plane.invoke, methods=["POST"]),
        WebSocketRoute(f"{RUNTIME}/ws", plane.connect),
        Route(f"{RUNTIME}/stopruntimesession", plane.stop, methods=["POST"]),
        Route(f"{well_known}/oauth-protected-resource", plane.protected_resource, methods=["GET"]),
        Route(f"{well_known}/agent-card.json", plane.refuse_operation, methods=["GET"]),
        Route(f"{RUNTIME}/commands", plane.refuse_operation, methods=["POST"]),
        Route("/_platform", page.show, methods=["GET"]),
        Route("/_platform/next-error", page.set_next_error, methods=["POST"]),
    ]
    app = Starlette(routes=routes, lifespan=lifespan)
    app.state.plane = plane
    return app
