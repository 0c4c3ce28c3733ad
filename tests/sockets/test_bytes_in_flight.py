"""Requests that do not end, responses that are not read, and what callers make the server keep take bounded memory.

Memory is measured from outside the process.
"""

import asyncio
import contextlib
import json
import socket
from contextlib import AsyncExitStack, ExitStack

import pytest
from grpclib.exceptions import GRPCError
from h2.events import SettingsAcknowledged
from websockets.frames import Frame, Opcode

from agui_container.server.uvicorn_protocols import MAX_HEAD
from agui_container.transports.gen.roz.v1 import agent_pb2 as roz
from agui_container.transports.grpc.open_calls import MAX_UNVERIFIED_CALLS
from tests.engine.doubles import Json
from tests.grpc.callers import connect_caller, is_served
from tests.grpc.h2 import Raw
from tests.requirements import requirement
from tests.sockets.client import PATIENCE, HttpExchange, ask, get, request, run_input, wait_until
from tests.sockets.process import ServerProcess, Servers
from tests.websocket import receive_frame, socket_to

BUDGET = 40_000_000
MARGIN = 60_000_000
"""Memory besides the counted bytes: copies of a few bodies, connections, and what the allocator keeps."""

PIECE = 2_000_000
THREAD = 6_000_000
"""Bytes of a thread: more than the kernel takes of a response that is not read."""
CLIENTS = 60
HISTORY = 4_500_000
"""Bytes of a history, of which four fit into half of the budget."""

SESSION_MARGIN = 30_000_000
"""Memory besides these histories. It has no room for the parts of refused ones, 2 MB each."""

HEADER, HEADERS = b"a: b\r\n", 16_000
"""A small header, and as many as make a head of 100 kB. They take 25 times as much memory once they are parsed."""

VALUE = 100_000
"""Bytes of a header, of which a head may have one."""


FLOODS = 30
CHECKS = 95
CALL_BYTES = 120_000
"""Memory of a call with 15 KB of headers, with its part of the connections."""

LOG_BYTES = 10_000_000
LONG_RUNS = 4
COMMANDS = 2
WINDOW = 65_536
SESSION = "X-Amzn-Bedrock-AgentCore-Runtime-Session-Id"
ATTACKER, OTHER, READER = f"{SESSION}: attacker", f"{SESSION}: other", f"{SESSION}: reader"


@pytest.fixture
def bounded(servers: Servers, request: pytest.FixtureRequest) -> ServerProcess:
    """A server with the smallest budget. One caller, named by its session, may use half of it.

    Each test has a server of its own, because connections of another test may not have released their bytes yet.
    """
    return servers(
        AGUI_CONSOLE_TITLE=request.node.name[:80],
        AGUI_MAX_BYTES_IN_FLIGHT=str(BUDGET),
        AGUI_AGENT="assistant",
        AGUI_LIMIT_BY="session",
        MALLOC_MMAP_THRESHOLD_="262144",
    )


def half_sent(size: int = PIECE) -> bytes:
    """A request without its last byte."""
    return request("POST", "/invocations", b"x" * (size - 1), (f"Content-Length: {size}", ATTACKER))


async def assert_served(server: ServerProcess) -> None:
    """A large request of another caller is served."""
    document = run_input("x" * PIECE)
    body = json.dumps(document).encode()
    answer = await ask(server.port, request("POST", "/invocations", body, (f"Content-Length: {len(body)}", OTHER)))
    assert answer.status == 200
    assert answer.events[-1]["type"] == "RUN_FINISHED"


async def test_bodies_that_do_not_end_take_no_more_than_half_of_the_budget(bounded: ServerProcess) -> None:
    before = bounded.memory
    half = await asyncio.gather(*(HttpExchange.open(bounded.port, half_sent()) for _ in range(CLIENTS)))
    await asyncio.gather(*(exchange.writer.drain() for exchange in half))
    await assert_served(bounded)
    for exchange in half:
        exchange.writer.write(b"x")
    answers = await asyncio.gather(*(exchange.head() for exchange in half))
    assert bounded.memory - before < BUDGET / 2 + MARGIN
    assert {answer.status for answer in answers} == {400, 429}
    assert {answer.headers.get("retry-after") for answer in answers if answer.status == 429} == {"1"}


async def test_frames_that_do_not_end_take_no_more_than_half_of_the_budget(bounded: ServerProcess) -> None:
    before = bounded.memory
    connections = [await socket_to(bounded.port, additional_headers={SESSION: "attacker"}) for _ in range(CLIENTS)]
    frame = Frame(Opcode.TEXT, b"x" * PIECE).serialize(mask=True)[:-1]
    for connection in connections:
        connection.transport.write(frame)

    async def closed() -> bool:
        return sum(connection.close_code is not None for connection in connections) >= CLIENTS - BUDGET / 2 / PIECE

    await wait_until(closed)
    assert bounded.memory - before < BUDGET / 2 + MARGIN
    codes = [connection.close_code for connection in connections]
    assert set(codes) <= {1013, None}
    await assert_served(bounded)
    for connection in connections:
        connection.transport.abort()


async def store_thread(server: ServerProcess, session: str) -> None:
    """Make a thread that takes megabytes to show."""
    body = json.dumps(run_input("x" * THREAD, thread="big")).encode()
    answer = await ask(server.port, request("POST", "/invocations", body, (f"Content-Length: {len(body)}", session)))
    assert answer.status == 200


async def test_responses_that_are_not_read_take_no_more_than_half_of_the_budget(bounded: ServerProcess) -> None:
    await store_thread(bounded, READER)
    before = bounded.memory
    sent = request("GET", "/threads/big", headers=(READER,))
    unread = [await HttpExchange.open(bounded.port, sent, window=WINDOW) for _ in range(CLIENTS)]
    heads = await asyncio.gather(*(exchange.head() for exchange in unread))
    statuses = [exchange.status for exchange in heads]
    assert (statuses.count(200), statuses.count(429)) == (BUDGET // 2 // THREAD, CLIENTS - BUDGET // 2 // THREAD)
    assert bounded.memory - before < BUDGET / 2 + MARGIN
    await assert_served(bounded)
    taken = next(exchange for exchange in heads if exchange.status == 200)
    assert len(json.loads(b"".join([piece async for piece in taken.body()]))["messages"][0]["content"]) == THREAD


async def test_polls_that_wait_hold_no_session(bounded: ServerProcess) -> None:
    await store_thread(bounded, READER)
    delta = "/v1/ai/threads/big/delta"
    token = ""
    for _ in range(2):  # the second answer has no change, so the next request with its token waits
        answer = await ask(bounded.port, request("GET", delta + token, headers=(READER,)))
        token = f"?next_token={answer.json()['data']['continuation_token']}"
    before = bounded.memory
    polls = []
    for _ in range(CLIENTS):
        polls.append(await HttpExchange.open(bounded.port, request("GET", delta + token, headers=(READER,))))
        behind = "/v1/ai/threads/big?load_messages=false"  # is read in the same turns, so the poll waits afterwards
        assert (await ask(bounded.port, request("GET", behind, headers=(READER,)))).status == 200
    assert bounded.memory - before < BUDGET / 2 + MARGIN
    await assert_served(bounded)
    body = b'{"title": "Renamed"}'
    renaming = request("PATCH", "/threads/big", body, (f"Content-Length: {len(body)}", READER))
    assert (await ask(bounded.port, renaming)).status == 200
    heads = await asyncio.gather(*(exchange.head() for exchange in polls))
    assert {exchange.status for exchange in heads} <= {200, 429}


async def test_descriptions_and_files_count_as_other_responses_do(bounded: ServerProcess) -> None:
    for _ in range(CLIENTS):
        await HttpExchange.open(bounded.port, half_sent())
    paths = ("/openapi.json", "/docs", "/console/app.js")

    async def answers(session: str) -> list[int]:
        return [(await ask(bounded.port, request("GET", path, headers=(session,)))).status for path in paths]

    async def refused() -> bool:
        return await answers(ATTACKER) == [429, 429, 429]

    await wait_until(refused)
    assert await answers(OTHER) == [200, 200, 200]


async def test_results_that_are_not_taken_from_sockets_take_no_more_than_half_of_the_budget(
    bounded: ServerProcess,
) -> None:
    await store_thread(bounded, f"{SESSION}: socket-reader")
    before = bounded.memory
    command = json.dumps({"command": {"type": "threads.get", "threadId": "big"}, "id": "1"})
    async with AsyncExitStack() as stack:
        connections = []
        for _ in range(CLIENTS // 3):
            sock = socket.create_connection(("127.0.0.1", bounded.port))
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, WINDOW)
            options: Json = {"sock": sock, "max_queue": 1, "additional_headers": {SESSION: "socket-reader"}}
            connections.append(await socket_to(bounded.port, **options))
            stack.callback(connections[-1].transport.abort)
        for connection in connections:
            for _ in range(COMMANDS):
                await connection.send(command)
        await assert_served(bounded)
        assert bounded.memory - before < BUDGET / 2 + MARGIN
        frames = [await receive_frame(connection) for connection in connections for _ in range(COMMANDS)]
    assert {frame["control"] for frame in frames} == {"result", "error"}
    assert {frame.get("code") for frame in frames} == {None, "RATE_LIMIT_EXCEEDED"}
    await ask(bounded.port, request("GET", "/threads/big", headers=(f"{SESSION}: socket-reader",)))  # behind the others


# --- gRPC calls, heads of requests and events of runs -----------------------------------------------------------------


def begin_checks(client: Raw) -> None:
    """Begin health checks whose message does not come, each with headers of 15 KB that take few bytes."""
    for _ in range(CHECKS):
        client.call("/grpc.health.v1.Health/Check", *[("x-a", "x" * 1_000)] * 14)
    client.ping()


@requirement("grpc.memory")
async def test_health_checks_without_a_message_take_a_bounded_amount_of_memory(bounded: ServerProcess) -> None:
    with Raw(bounded.port) as client:
        await asyncio.to_thread(client.until, SettingsAcknowledged)  # gRPC is imported
        before = bounded.memory
        with ExitStack() as connections:
            for _ in range(FLOODS):
                await asyncio.to_thread(begin_checks, connections.enter_context(Raw(bounded.port)))
            assert bounded.memory - before < MAX_UNVERIFIED_CALLS * CALL_BYTES
            await assert_served(bounded)


@requirement("grpc.memory")
async def test_histories_of_grpc_sessions_take_no_more_than_half_of_the_budget(bounded: ServerProcess) -> None:
    text = roz.ContentPart(text=roz.TextContent(text="x" * HISTORY))
    history = [roz.ConversationMessage(role="user", parts=[text])]
    async with AsyncExitStack() as closing:
        attacker, other = (connect_caller(bounded.port, name, closing) for name in ("attacker", "other"))
        assert await is_served(other)
        before = bounded.memory
        for _ in range(BUDGET // 2 // HISTORY):
            await attacker.begin_session(history=history)
        for _ in range(CLIENTS // 2):
            with pytest.raises(GRPCError, match="AGUI_MAX_BYTES_IN_FLIGHT"):
                await attacker.begin_session(history=history)
        assert bounded.memory - before < BUDGET / 2 + SESSION_MARGIN
        assert await is_served(other)


async def until_ended(exchange: HttpExchange) -> None:
    """Read until the server ends the connection."""
    async with asyncio.timeout(PATIENCE):
        with contextlib.suppress(ConnectionError):
            await exchange.reader.read()


@requirement("caller.connections")
@pytest.mark.parametrize("end", [b"", b"\r\nContent-Length: 2\r\n\r\n{"], ids=["incomplete", "complete"])
async def test_heads_with_many_headers_take_a_bounded_amount_of_memory(bounded: ServerProcess, end: bytes) -> None:
    before = bounded.memory
    head = b"POST /invocations HTTP/1.1\r\nHost: x\r\n" + (HEADER * HEADERS).removesuffix(b"\r\n") + end
    sent = await asyncio.gather(*(HttpExchange.open(bounded.port, head) for _ in range(CLIENTS)))
    await asyncio.gather(*map(until_ended, sent))
    assert bounded.memory - before < CLIENTS * MAX_HEAD
    await assert_served(bounded)


@requirement("caller.logs")
async def test_events_of_runs_that_are_not_read_take_no_more_than_the_limit_of_their_caller(servers: Servers) -> None:
    server = servers(AGUI_AGENT="assistant", AGUI_LIMIT_BY="session", AGUI_CALLER_LIMITS=f'{{"logBytes": {LOG_BYTES}}}')
    before = server.memory
    unread = []
    for _ in range(LONG_RUNS):
        body = json.dumps(run_input("stream 400000")).encode()
        sent = request("POST", "/invocations", body, (f"Content-Length: {len(body)}", ATTACKER))
        unread.append(await HttpExchange.open(server.port, sent, window=WINDOW))

    async def ended() -> bool:
        return bool((await get(server.port, "/ping"))["status"] == "Healthy")

    assert {(await exchange.head()).status for exchange in unread} == {200}
    await wait_until(ended)
    assert server.memory - before < LOG_BYTES + MARGIN
    await assert_served(server)
    endings = [(await exchange.rest()).events[-1] for exchange in unread]
    assert {ending.get("code") for ending in endings} == {"RATE_LIMIT_EXCEEDED"}
