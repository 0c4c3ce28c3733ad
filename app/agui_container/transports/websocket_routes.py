"""Routes of ``/ws``: the handshake of a WebSocket, and the reason why a handshake is refused.

Rule: a GET that is no handshake gets the refusal that a handshake would get, else status 426. A browser hides the
status and the body of a refused handshake, so pages read them here.
"""

from functools import partial
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket

from agui_container.engine.admission.quota import Limit
from agui_container.engine.service import Service
from agui_container.protocol.errors import AppError
from agui_container.transports.authentication import CallerAuthentication
from agui_container.transports.caller_middleware import AGENT, BEARER_PROTOCOL, caller_of, quota_of
from agui_container.transports.commands import CommandResponder
from agui_container.transports.error_responses import error_response, send_refusal
from agui_container.transports.websocket import WebSocketConnection

WS = "/ws"


def routes(
    service: Service,
    commands: CommandResponder,
    authentication: CallerAuthentication,
    *,
    max_body: int,
    by_agent: bool = False,
) -> list[BaseRoute]:
    """Return the routes.

    Args:
        service: the engine.
        commands: answers to commands.
        authentication: checks that the token of a connection is still valid.
        max_body: largest incoming frame, in bytes.
        by_agent: True if each agent has a path of its own, too.
    """

    async def socket(websocket: WebSocket) -> None:
        offered = websocket.scope.get("subprotocols", ())
        caller = caller_of(websocket)
        try:
            lease = quota_of(websocket).acquire(Limit.SOCKETS)
        except AppError as error:
            response = error_response(error, websocket)
            await send_refusal(error, response, websocket.scope, websocket.receive, websocket.send)
            return
        check_expiry = partial(authentication.check_expiry, caller)
        with lease:
            await websocket.accept(BEARER_PROTOCOL if BEARER_PROTOCOL in offered else None)
            connection = WebSocketConnection(websocket, service, commands, check_expiry, max_body=max_body)
            await connection.serve()

    async def explain_refusal(request: Request) -> Response:
        quota_of(request).check(Limit.SOCKETS)
        message = "This path takes the handshake of a WebSocket only"
        raise HTTPException(HTTPStatus.UPGRADE_REQUIRED, message, {"Upgrade": "websocket"})

    paths = [WS, AGENT + WS] if by_agent else [WS]
    return [route for path in paths for route in (WebSocketRoute(path, socket), Route(path, explain_refusal))]
