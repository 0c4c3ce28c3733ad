"""Duration of ``GET /ping`` while one gRPC client sends messages that are made to hold up the event loop.

    PYTHONPATH=app python -m bench.hostile_grpc                every message
    PYTHONPATH=app python -m bench.hostile_grpc tools history  the messages whose names contain one of these words

Starts a server of its own, with the assistant on the offline model. Each message is below ``AGUI_MAX_BODY_BYTES``, or
is a gzip file of more, and is sent three times. The pings are those of ``bench.hostile``, and so is the aim: a longest
ping below 50 ms for every message.
"""

import multiprocessing
import sys
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import NamedTuple

import grpc
from google.protobuf.struct_pb2 import Struct

from agui_container.transports.gen.kontekst import kontekst_pb2 as kontekst
from agui_container.transports.gen.roz.v1 import agent_pb2 as roz
from bench.hostile import MAX_BYTES, REPEATS, SECONDS, ping_until_told
from bench.ping import server

SESSION = "/roz.v1.AgentService/StreamSession"
RUN = "/kontekst.AgentService/Run"
EMPTY_HISTORY, EMPTY_CONTEXT, EMPTY_TOOL = b"\x2a\x00", b"\x32\x00", b"\x22\x00"
"""Encoded fields of a ``StartSession``."""

EMPTY_OBJECT, EMPTY_LIST, NULL = b"\x0a\x02\x2a\x00", b"\x0a\x02\x32\x00", b"\x0a\x00"
"""Encoded values of a ``ListValue``."""

SMALL = 99_000
"""Bytes of a message that is decoded on the event loop."""


class Sent(NamedTuple):
    """A call.

    Attributes:
        path: path of the rpc.
        requests: its messages.
        compression: encoding of the messages.
    """

    path: str
    requests: list[bytes]
    compression: grpc.Compression = grpc.Compression.NoCompression


def session(start: roz.StartSession, *requests: roz.SessionRequest) -> Sent:
    """A session, with a message at its end."""
    end = roz.SessionRequest(user_message=roz.UserMessage(content="hi"))
    return Sent(SESSION, [it.SerializeToString() for it in (roz.SessionRequest(start=start), *requests, end)])


def run(prompt: str, compression: grpc.Compression = grpc.Compression.NoCompression) -> Sent:
    """A run of kontekst."""
    start = kontekst.StartRunCommand(prompt=prompt)
    return Sent(RUN, [kontekst.RunCommand(start=start).SerializeToString()], compression)


def start_of(field: bytes, size: int) -> Sent:
    """A session whose start has one encoded field again and again."""
    return session(roz.StartSession.FromString(field * (size // len(field))))


def document(value: bytes, size: int) -> Struct:
    """A document with one list of encoded values."""
    found = Struct()
    found.fields["a"].list_value.MergeFromString(value * (size // len(value)))
    return found


def tool(parameters: Struct) -> Sent:
    """A session with one tool."""
    return session(roz.StartSession(tools=[roz.ToolSchema(name="f", parameters_schema=parameters)]))


def history(count: int, part: roz.ContentPart, role: str = "user") -> Sent:
    """A session that continues a conversation."""
    return session(roz.StartSession(history=[roz.ConversationMessage(role=role, parts=[part])] * count))


def make_nested(depth: int) -> Struct:
    """Return a document of objects inside each other."""
    found = inner = Struct()
    for _ in range(depth):
        inner = inner.fields["a"].struct_value
    inner.fields["b"].string_value = "x"
    return found


def registrations(count: int) -> list[roz.SessionRequest]:
    """Requests that register a thousand tools each."""
    tools = [roz.ToolSchema(name=f"t{number}") for number in range(1_000)]
    return [roz.SessionRequest(register_tools=roz.RegisterTools(source="s", tools=tools))] * count


def messages() -> Iterator[tuple[str, Sent]]:
    """Names, and what is sent."""
    text = roz.ContentPart(text=roz.TextContent(text="x"))
    call = roz.ContentPart(tool_use=roz.ToolUseContent(id="c", name="f"))
    tools = [roz.ToolSchema(name=f"t{number}", description="d") for number in range(10_000)]
    yield "10,000 tools", session(roz.StartSession(tools=tools))
    yield "1,000 tools", session(roz.StartSession(tools=tools[:1_000]))
    yield "100 registrations of 1,000 tools", session(roz.StartSession(), *registrations(100))
    yield "10,000 messages of history", history(10_000, text)
    yield "5,000 messages of history", history(5_000, text)
    yield "5,000 calls in a history", history(5_000, call, "assistant")
    yield "a history of one large text", history(1, roz.ContentPart(text=roz.TextContent(text="x" * MAX_BYTES)))
    yield "a history of empty messages", start_of(EMPTY_HISTORY, MAX_BYTES)
    yield "a small history of empty messages", start_of(EMPTY_HISTORY, SMALL)
    yield "empty tools", start_of(EMPTY_TOOL, MAX_BYTES)
    yield "empty contexts", start_of(EMPTY_CONTEXT, MAX_BYTES)
    yield "small empty contexts", start_of(EMPTY_CONTEXT, SMALL)
    yield "a schema of objects", tool(document(EMPTY_OBJECT, MAX_BYTES))
    yield "a schema of 80,000 objects", tool(document(EMPTY_OBJECT, 320_000))
    yield "a small schema of objects", tool(document(EMPTY_OBJECT, SMALL))
    yield "a schema of lists", tool(document(EMPTY_LIST, 320_000))
    yield "a schema of nothing", tool(document(NULL, 320_000))
    yield "a deep schema", tool(make_nested(30))
    modifier = roz.PermissionDecision(tool_call_id="c", modifier=document(EMPTY_OBJECT, 320_000))
    yield "edited arguments", session(roz.StartSession(), roz.SessionRequest(permission_decision=modifier))
    blocks = [roz.ContentBlock(text="x")] * 10_000
    yield (
        "blocks of a message",
        session(roz.StartSession(), roz.SessionRequest(user_message=roz.UserMessage(content="hi", context=blocks))),
    )
    yield "a prompt of megabytes", run("x" * MAX_BYTES)
    yield "calls by line", run("call f {}\n" * 900)
    yield "a gzip file of a large prompt", run("x" * MAX_BYTES, grpc.Compression.Gzip)
    yield "a gzip file of too much", run("x" * 10 * MAX_BYTES, grpc.Compression.Gzip)


def send(port: int, sent: Sent) -> str:
    """Make one call to its end. Returns its status."""
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        call = channel.stream_stream(sent.path)(iter(sent.requests), timeout=SECONDS, compression=sent.compression)
        try:
            for _ in call:
                pass
        except grpc.RpcError as error:
            return str(error.code().name)
        return "OK"


def main() -> None:
    """Measure and print one line for each message."""
    wanted = sys.argv[1:]
    ours, theirs = multiprocessing.Pipe()
    with server("assistant") as port:
        pinger = multiprocessing.Process(target=ping_until_told, args=(port, theirs), daemon=True)
        pinger.start()
        try:
            for name, sent in messages():
                if not wanted or any(word in name for word in wanted):
                    measure(port, name, sent, ours)
        finally:
            pinger.kill()
            pinger.join()


def measure(port: int, name: str, sent: Sent, control: Connection) -> None:
    """Send the same three times, and print the longest ping meanwhile."""
    control.send(None)
    control.recv()
    status, begun = "", time.perf_counter()
    for _ in range(REPEATS):
        status = send(port, sent)
    seconds = (time.perf_counter() - begun) / REPEATS
    control.send(None)
    sys.stdout.write(f"{name:34} {status:18} {seconds:6.2f} s, longest ping {control.recv():6.1f} ms\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
