"""Requests, sockets' messages and gRPC calls of one caller that arrive together take turns with those of another."""

import asyncio
import json
from collections.abc import Iterable
from functools import partial
from itertools import pairwise

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from hyperframe.frame import HeadersFrame
from starlette.types import Message, Receive, Scope, Send

from agui_container.engine.run.fairness import RequestTurns
from agui_container.main import build_app
from agui_container.ports.auth import Principal
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.settings import Settings
from agui_container.transports.accounts import Accounts
from agui_container.transports.authentication import CallerAuthentication
from agui_container.transports.browser_policy import BrowserPolicy
from agui_container.transports.bytes_in_flight import ByteBudget
from agui_container.transports.caller_middleware import CallerMiddleware
from agui_container.transports.grpc.call_buffer import CallBuffer
from tests.engine.doubles import START, WAIT, eventually, forever, make_service
from tests.requirements import requirement

FIRST, SECOND = "192.0.2.1", "192.0.2.2"
MANY = 100
SOON = 3
"""Requests of another caller that begin before one that arrives behind all of them, and one more."""


class Tokens:
    """An authenticator that takes any token for its subject."""

    async def authenticate(self, token: str | None) -> Principal:
        if token is None:
            raise AppError(ErrorCode.UNAUTHORIZED, "There is no token.")
        return Principal("https://issuer.example", token, START + 1)

    def check_expiry(self, principal: Principal) -> None:
        """Every token is valid."""

    async def aclose(self) -> None:
        """There is nothing to close."""


async def answer(scope: Scope, _: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body"})


def middleware(authentication: CallerAuthentication) -> CallerMiddleware:
    """The middleware in front of an application that answers everything."""

    async def ensure_open() -> None:
        """The application needs nothing."""

    return CallerMiddleware(
        answer,
        browsers=BrowserPolicy((), ()),
        authentication=authentication,
        by_session=False,
        accounts=Accounts(),
        refused_status=None,
        budget=ByteBudget(1_000_000),
        turns=RequestTurns(),
        ensure_open=ensure_open,
        error_forms={},
    )


def scope_of(path: str, address: str, token: str | None = None, kind: str = "http") -> Scope:
    headers = [] if token is None else [(b"authorization", f"Bearer {token}".encode())]
    names = {"type": kind, "method": "GET", "path": path, "raw_path": path.encode(), "root_path": "", "scheme": "http"}
    return {**names, "query_string": b"", "headers": headers, "client": (address, 1)}


async def order_of_answers(app: CallerMiddleware, scopes: Iterable[Scope]) -> list[tuple[int, int]]:
    """Ask at the same time. Returns the number and the status of each request, in the order of the answers."""
    answers = list[tuple[int, int]]()

    async def ask(number: int, scope: Scope) -> None:
        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                answers.append((number, message["status"]))

        await app(scope, asyncio.Queue[Message]().get, send)

    async with asyncio.timeout(WAIT), asyncio.TaskGroup() as tasks:
        for number, scope in enumerate(scopes):
            tasks.create_task(ask(number, scope))
    return answers


@requirement("caller.requests_in_turn")
@pytest.mark.parametrize(
    ("flood", "status", "last"),
    [
        (scope_of("/threads", FIRST), 401, scope_of("/threads", SECOND, "alice")),
        (scope_of("/threads", FIRST), 401, scope_of("/threads", FIRST, "alice")),
        (scope_of("/threads", FIRST, "mallory"), 200, scope_of("/threads", FIRST, "alice")),
        (scope_of("/docs", FIRST), 200, scope_of("/docs", SECOND)),
        (scope_of("/threads", FIRST), 401, scope_of("/ping", FIRST)),
    ],
    ids=["no tokens", "no tokens from the same address", "one principal", "open pages", "ping"],
)
async def test_a_request_behind_a_hundred_of_another_caller_is_answered_among_the_first(
    flood: Scope, status: int, last: Scope
) -> None:
    app = middleware(CallerAuthentication(Tokens()))
    answers = await order_of_answers(app, [*(dict(flood) for _ in range(MANY)), last])
    assert sorted(answers) == [*((number, status) for number in range(MANY)), (MANY, 200)]
    assert (MANY, 200) in answers[:SOON]


@requirement("caller.requests_in_turn")
async def test_a_message_behind_those_on_ten_sockets_of_another_caller_is_answered_among_the_first() -> None:
    app, answered = build_app(Settings(), make_service(forever)), list[str]()
    frame = {"type": "websocket.receive", "text": json.dumps({"command": {"type": "runs.list"}})}
    async with asyncio.timeout(WAIT), asyncio.TaskGroup() as tasks:
        incoming = list[asyncio.Queue[Message]]()
        accepted = list[str]()

        def connect(address: str) -> None:
            messages = asyncio.Queue[Message]()
            incoming.append(messages)
            messages.put_nowait({"type": "websocket.connect"})

            async def send(message: Message) -> None:
                (accepted if message["type"] == "websocket.accept" else answered).append(address)

            tasks.create_task(app(scope_of("/ws", address, kind="websocket"), messages.get, send))

        for address in [FIRST] * 10 + [SECOND]:
            connect(address)
        await eventually(lambda: len(accepted) == len(incoming))
        *others, last = incoming
        for messages in others:
            for _ in range(MANY // 10):
                messages.put_nowait(frame)
        last.put_nowait(frame)
        await eventually(lambda: len(answered) == MANY + 1)
        for messages in incoming:
            messages.put_nowait({"type": "websocket.disconnect", "code": 1000})
    assert answered.index(SECOND) < MANY // 10


def calls(number: int) -> bytes:
    """The bytes of a client that begins so many calls on one connection."""
    client = H2Connection(H2Configuration(client_side=True, header_encoding="ascii"))
    client.initiate_connection()
    for _ in range(number):
        stream = client.get_next_available_stream_id()
        client.send_headers(stream, [(":method", "POST"), (":scheme", "http"), (":path", "/"), (":authority", "here")])
        client.send_data(stream, b"x")
    return client.data_to_send()


def connect(turns: RequestTurns, address: str, number: int) -> CallBuffer:
    """A connection on which so many calls have arrived."""
    frames = CallBuffer(turns, address)
    frames.max_frame_size = 16_384
    frames.add_data(calls(number))
    return frames


def begin_calls(frames: CallBuffer, name: str, begun: list[str]) -> None:
    """Begin the calls of a connection in their turns, and add a name to ``begun`` for each."""
    begun.extend(name for frame in frames if isinstance(frame, HeadersFrame))
    if frames.has_waiting_call:
        frames.wait(partial(begin_calls, frames, name, begun))


@requirement("caller.requests_in_turn")
async def test_a_grpc_call_behind_a_hundred_of_another_caller_begins_among_the_first() -> None:
    turns, begun, numbers = RequestTurns(), list[str](), [0]
    for _ in range(10):
        begin_calls(connect(turns, FIRST, MANY // 10), FIRST, begun)
    begin_calls(connect(turns, SECOND, 1), SECOND, begun)
    async with asyncio.timeout(WAIT):
        while len(begun) < MANY + 1:
            numbers.append(len(begun))
            await asyncio.sleep(0)
    assert SECOND in begun[:SOON]
    assert max(later - earlier for earlier, later in pairwise(numbers)) == 1


async def test_calls_on_two_connections_of_one_caller_take_turns() -> None:
    turns, begun = RequestTurns(), list[str]()
    for name in ("one", "two"):
        begin_calls(connect(turns, FIRST, 3), name, begun)
    await eventually(lambda: len(begun) == 6)
    assert begun == ["one", "one", "two", "one", "two", "two"]


async def test_a_grpc_connection_that_has_ended_does_not_keep_others_waiting() -> None:
    turns, begun = RequestTurns(), list[str]()
    begin_calls(connect(turns, SECOND, 1), SECOND, begun)
    ended = connect(turns, FIRST, 2)
    list(ended)
    ended.wait(lambda: None)
    begin_calls(connect(turns, FIRST, 1), FIRST, begun)
    await eventually(lambda: FIRST in begun)
