"""Attacks of ``bench.two_callers``, each of which continues until its process is ended.

Attacks that read a large thread are in ``bench.large_reads``.
"""

import http.client
import json
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, suppress
from itertools import count

import grpc
from h2.config import H2Configuration
from h2.connection import H2Connection
from websockets.exceptions import WebSocketException
from websockets.frames import Frame, Opcode
from websockets.sync.client import ClientConnection, connect

from agui_container.transports.gen.roz.v1 import agent_pb2 as roz
from bench.large_reads import READS

SESSION = "X-Amzn-Bedrock-AgentCore-Runtime-Session-Id"
NUMBERS = count(1)
DESCRIPTORS = 2_000
"""Open files of each process in attacks on bytes and connections. The server takes about 1,750 connections then."""

PIECE = 2_000_000
HISTORY = 4_500_000
MANY = 100
LISTED = 1_000

HANDSHAKE = (
    b"GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)


def request(session: str, text: str, **fields: object) -> bytes:
    """The request for a run on a thread of its own."""
    run_id = f"{session}-{next(NUMBERS)}"
    message = {"id": "m", "role": "user", "content": text}
    body = json.dumps({"threadId": run_id, "runId": run_id, "messages": [message], **fields}).encode()
    head = f"POST /invocations HTTP/1.1\r\nHost: x\r\n{SESSION}: {session}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def ask(port: int, data: bytes) -> socket.socket:
    """Send a request on a new connection, and read the beginning of the answer."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=60)
    connection.sendall(data)
    connection.recv(1 << 12)
    return connection


def abandoned(port: int) -> None:
    """Runs that wait for an hour, each left at once."""
    while True:
        ask(port, request("first", "wait 3600")).close()


def unread(port: int) -> None:
    """Long runs that nobody reads."""
    streams = [ask(port, request("first", "stream 400000")) for _ in range(18)]
    time.sleep(600)
    streams.clear()


def approvals(port: int) -> None:
    """Approvals that are asked for and not answered."""
    while True:
        ask(port, request("first", 'call calculate {"expression": "1+1"}')).close()


def threads(port: int) -> None:
    """Threads of a megabyte."""
    while True:
        ask(port, request("first", "x" * 1_000_000)).close()


def runs(port: int) -> None:
    """Short runs on four connections, as fast as they are answered."""

    def repeat() -> None:
        while True:
            with suppress(OSError, http.client.HTTPException), http_connection(port) as connection:
                while True:
                    run(connection)

    at_once(repeat, 4)


def messages(port: int) -> None:
    """Pings on 20 sockets, as fast as they are taken. A socket that is closed is opened again."""

    def repeat() -> None:
        while True:
            with suppress(EOFError, OSError, WebSocketException), open_socket(port) as socket:
                while True:
                    socket.send('{"type":"ping"}')

    at_once(repeat, 20)


def sockets(port: int) -> None:
    """As many sockets as there may be, and more that are refused."""
    sockets = []
    while True:
        try:
            sockets.append(open_socket(port))
        except WebSocketException:
            time.sleep(0.001)


def open_socket(port: int) -> ClientConnection:
    """Open a socket of the first caller."""
    return connect(f"ws://127.0.0.1:{port}/ws", additional_headers={SESSION: "first"}, proxy=None)


def bodies(port: int) -> None:
    """Requests of 2 MB that lack their last byte."""
    head = f"POST /invocations HTTP/1.1\r\nHost: x\r\nContent-Length: {PIECE}\r\n\r\n".encode()
    hold(lambda: connect_and_send(port, head + b"x" * (PIECE - 1)), MANY)


def frames(port: int) -> None:
    """Frames of 2 MB that lack their last byte, on 100 sockets. One that is closed is opened again."""
    frame = Frame(Opcode.TEXT, b"x" * PIECE).serialize(mask=True)[:-1]

    def send() -> ClientConnection:
        connection = open_socket(port)
        connection.socket.sendall(frame)
        return connection

    hold(send, MANY)


def heads(port: int) -> None:
    """Half-sent heads on more connections than there may be."""
    hold(lambda: connect_and_send(port, b"GET / HTTP/1.1\r\nHost: "), DESCRIPTORS - 100)


def connections(port: int) -> None:
    """Requests without an end on more connections than there may be."""
    hold(lambda: connect_and_send(port, b"POST /invocations HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{"), 1_900)


def pipelines(port: int) -> None:
    """Long runs, and 14,000 requests behind each. A connection that is closed is opened again."""

    def send() -> socket.socket:
        connection = ask(port, request("first", "wait 3600"))
        connection.sendall(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n" * 14_000)
        return connection

    hold(send, MANY)


def answers(port: int) -> None:
    """Answers of 6 MB that are not read."""
    with ask(port, request("first", "x" * 3 * PIECE)) as connection:
        while connection.recv(1 << 16):
            pass
        thread = f"first-{next(NUMBERS) - 1}"
    read = f"GET /threads/{thread} HTTP/1.1\r\nHost: x\r\n{SESSION}: first\r\n\r\n".encode()
    hold(lambda: connect_and_send(port, read), MANY)


def results(port: int) -> None:
    """Commands on 100 sockets whose results are not read: 20 times a thread of 2 MB."""
    thread = f"first-{next(NUMBERS)}"
    with ask(port, request("first", "x" * PIECE, threadId=thread)) as connection:
        while b"RUN_FINISHED" not in connection.recv(1 << 20):
            pass
    command = json.dumps({"command": {"type": "threads.get", "threadId": thread}}).encode()
    frames = Frame(Opcode.TEXT, command).serialize(mask=True) * 20

    def send() -> socket.socket:
        connection = ask(port, HANDSHAKE)
        connection.sendall(frames)
        return connection

    hold(send, MANY)


def listings(port: int) -> None:
    """Requests on 100 connections for one of 1,000 threads, and for the runs."""
    with http_connection(port) as connection:
        for _ in range(LISTED):
            run(connection)
    at_once(lambda: repeat_get(port, "/threads?limit=1", "/runs"), MANY)


def commands(port: int) -> None:
    """Commands on 20 sockets, as fast as they are answered, for one of 1,000 threads."""
    with http_connection(port) as connection:
        for _ in range(LISTED):
            run(connection)
    command = json.dumps({"command": {"type": "threads.list", "limit": 1}})

    def repeat() -> None:
        while True:
            with suppress(EOFError, OSError, WebSocketException), open_socket(port) as socket:
                while True:
                    socket.send(command)
                    socket.recv()

    at_once(repeat, 20)


def unauthorised(port: int) -> None:
    """Requests on 100 connections that are refused as those without a token are, here because of their page."""
    at_once(lambda: repeat_get(port, "/runs", Origin="https://other.example"), MANY)


def hundred(port: int) -> None:
    """Short runs on 100 new connections at the same time, as fast as they are answered."""

    def repeat() -> None:
        while True:
            with suppress(OSError, http.client.HTTPException), http_connection(port) as connection:
                run(connection)

    at_once(repeat, MANY)


def requests(port: int) -> None:
    """Requests on new connections, each left at once, as fast as they can be opened."""
    while True:
        with suppress(OSError):
            connect_and_send(port, b"GET /threads?limit=1 HTTP/1.1\r\nHost: x\r\n\r\n").close()


def opened(port: int) -> None:
    """New connections on which nothing is sent, each left at once."""
    while True:
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=60).close()


def http_connection(port: int) -> AbstractContextManager[http.client.HTTPConnection]:
    """Open a connection that is closed at the end of the block."""
    return closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60))


def run(connection: http.client.HTTPConnection) -> None:
    """Ask for a short run, and read it."""
    _, _, body = request("first", "hi").partition(b"\r\n\r\n")
    connection.request("POST", "/invocations", body, {SESSION: "first"})
    connection.getresponse().read()


def repeat_get(port: int, *paths: str, **headers: str) -> None:
    """Read paths on one connection, as fast as they are answered. A connection that is closed is opened again."""
    while True:
        with suppress(OSError, http.client.HTTPException), http_connection(port) as connection:
            while True:
                for path in paths:
                    connection.request("GET", path, headers={SESSION: "first", **headers})
                    connection.getresponse().read()


def goals(port: int) -> None:
    """Runs whose model answers a goal a hundred times, each with data that takes work to check."""
    calls = "\n".join(['call achieve_g {"a": ' + json.dumps([{"b": 1}] * 500) + "}"] * 100)
    schema = {"type": "object", "properties": {"a": {"items": {"anyOf": [{"required": ["c"]}] * 100}}}}
    while True:
        ask(port, request("first", calls, forwardedProps={"goals": [{"type": "g", "schema": schema}]})).close()


def sessions(port: int) -> None:
    """Sessions over gRPC with histories of 4.5 MB and long runs that nobody reads."""
    text = roz.ContentPart(text=roz.TextContent(text="x" * HISTORY))
    history = [roz.ConversationMessage(role="user", parts=[text])]
    start = roz.SessionRequest(start=roz.StartSession(history=history)).SerializeToString()
    run = roz.SessionRequest(user_message=roz.UserMessage(content="stream 400000")).SerializeToString()
    channel = grpc.insecure_channel(f"127.0.0.1:{port}")
    hold(lambda: channel.stream_stream("/roz.v1.AgentService/StreamSession")(iter((start, run))), MANY)


def calls(port: int) -> None:
    """Health checks over gRPC, 95 on each of many connections, with 15 KB of headers and without a message."""
    headers = [(":method", "POST"), (":scheme", "http"), (":path", "/grpc.health.v1.Health/Check"), (":authority", "x")]
    headers += [("content-type", "application/grpc"), ("te", "trailers"), *[("x-a", "x" * 1_000)] * 14]

    def send() -> socket.socket:
        client = H2Connection(H2Configuration(validate_outbound_headers=False))
        client.initiate_connection()
        for _ in range(95):
            client.send_headers(client.get_next_available_stream_id(), headers)
        return connect_and_send(port, client.data_to_send())

    hold(send, 40)


def connect_and_send(port: int, data: bytes) -> socket.socket:
    """Send data on a new connection, and read nothing."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=60)
    connection.sendall(data)
    return connection


def hold(connect: Callable[[], object], number: int) -> None:
    """Make connections without end, and hold the last ones."""
    held = deque[object](maxlen=number)
    while True:
        with suppress(EOFError, OSError, WebSocketException):
            held.append(connect())
        if len(held) == number:
            time.sleep(0.01)


def at_once(work: Callable[[], None], times: int) -> None:
    """Do the same in several threads."""
    workers = [threading.Thread(target=work, daemon=True) for _ in range(times)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


LOOP = (listings, commands, unauthorised, hundred, requests, opened)
RUNS = (abandoned, unread, approvals, threads, runs, messages, sockets, goals, *LOOP)
BYTES = (bodies, frames, heads, connections, pipelines, answers, results, sessions, calls)
ATTACKS = {attack.__name__: attack for attack in RUNS + READS + BYTES}
