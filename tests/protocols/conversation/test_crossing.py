"""One thread, several protocols: it is begun over one, approved over another, and read over a third."""

import json
import urllib.parse
import urllib.request

import grpc
import pytest

from tests.protocols.grpc.client import WAIT
from tests.protocols.grpc.http_requests import Json
from tests.protocols.kontekst.calls import RunTalk, start_run
from tests.protocols.roz.calls import session_of, start_session, wait_for_turn
from tests.server.sockets.client import is_last
from tests.server.sockets.process import ServerProcess
from tests.websocket import blocking_receive_until, blocking_socket_to

pytestmark = [pytest.mark.wire, pytest.mark.processes]


def roboto(server: ServerProcess, method: str, path: str, body: Json | None = None) -> Json:
    url = f"http://127.0.0.1:{server.port}/v1/ai/threads{path}"
    request = urllib.request.Request(url, json.dumps(body).encode() if body else None, method=method)
    with urllib.request.urlopen(request, timeout=WAIT) as answer:  # noqa: S310 - a loopback address
        found: Json = json.load(answer)["data"]
        return found


def user_message(text: str) -> Json:
    return {"role": "user", "content": [{"text": text}]}


def session(server: ServerProcess, thread: str) -> Json:
    """A session as Roboto's clients see it once the agent has answered. Polls are held back by the server."""
    record = roboto(server, "GET", f"/{thread}")
    while record["status"] == "roboto_turn":
        token = urllib.parse.quote(record["continuation_token"])
        record = {**record, **roboto(server, "GET", f"/{thread}/delta?next_token={token}")}
    return roboto(server, "GET", f"/{thread}")


def conversation(session: Json) -> list[tuple[str, str]]:
    return [
        (message["role"], "".join(block.get("text", "") for block in message["content"]))
        for message in session["messages"]
    ]


def roles(run: RunTalk) -> list[str]:
    context = next(event.context_snapshot for event in run.seen if event.HasField("context_snapshot")).context
    return [row.role for row in context.messages if row.source == "history"]


def test_begun_in_roz_read_over_a_socket_continued_in_roboto_and_read_over_kontekst(
    server: ServerProcess, channel: grpc.Channel
) -> None:
    with start_session(channel) as talk:
        thread = session_of(talk)
        talk.say("stream 1")
        wait_for_turn(talk)
    first = [("user", "stream 1"), ("assistant", "hello world, ")]
    with blocking_socket_to(server.ws) as socket:
        socket.send(json.dumps({"threadId": thread, "runId": "look", "messages": [], "protocolVersion": "1.0"}))
        events = blocking_receive_until(socket, is_last)
    (shown,) = [event["messages"] for event in events if event["type"] == "MESSAGES_SNAPSHOT"]
    assert [(message["role"], message["content"]) for message in shown] == first
    assert conversation(session(server, thread)) == first
    roboto(server, "POST", f"/{thread}/messages", {"message": user_message("stream 2")})
    both = [*first, ("user", "stream 2"), ("assistant", "hello world, hello world, ")]
    assert conversation(session(server, thread)) == both
    with start_run(channel, "stream 1", session_id=thread) as run:
        list(run.rest())
    assert roles(run) == ["user", "assistant", "user", "assistant"]
