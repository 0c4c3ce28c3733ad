"""The official client and refused requests: an exception with an error status, an event in a stream."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.official.conversations import Ask
from tests.official.judge import Json, Judge, Turn
from tests.official.servers import serving
from tests.requirements import requirement
from tests.sockets.client import is_last
from tests.sockets.process import ServerProcess
from tests.websocket import blocking_receive_until, blocking_socket_to


@contextmanager
def busy(server: ServerProcess, thread: str) -> Iterator[None]:
    """A thread with an active run, until the block is left."""
    ask = Ask("wait 60", thread)
    with blocking_socket_to(server.ws) as socket:
        socket.send(json.dumps({"threadId": thread, "runId": ask.run, "messages": ask.messages}))
        blocking_receive_until(socket, lambda frame: frame["type"] == "RUN_STARTED")
        yield
        socket.send(json.dumps({"command": {"type": "cancel"}}))
        blocking_receive_until(socket, is_last)


def run_on_busy_thread(judge: Judge, server: ServerProcess, thread: str, **agent: object) -> Turn:
    """A run that the client asks for on a busy thread."""
    messages: list[Json] = [{"id": "u1", "role": "user", "content": "hello"}]
    with busy(server, thread):
        return judge.run(
            server.invocations, [{"runId": "refused"}], threadId=thread, initialMessages=messages, **agent
        ).turns[0]


@pytest.mark.parametrize("older", [False, True])
@requirement("http.status")
def test_a_busy_thread_is_an_exception_that_names_the_status_and_the_code(
    judge: Judge, assistant: ServerProcess, *, older: bool
) -> None:
    turn = run_on_busy_thread(judge, assistant, f"busy, older={older}", older=older)
    assert turn.wire["status"] == 409
    assert turn.error is not None
    assert "THREAD_BUSY" in turn.error


@pytest.mark.parametrize("older", [False, True])
@requirement("http.status-stream")
def test_behind_agentcore_a_busy_thread_is_an_event_and_no_exception(judge: Judge, *, older: bool) -> None:
    with serving(error_status="stream") as server:
        turn = run_on_busy_thread(judge, server, f"busy, older={older}", older=older)
    assert (turn.error, turn.failed, turn.wire["status"]) == (None, None, 200)
    assert [(event["type"], event["code"]) for event in turn.events] == [("RUN_ERROR", "THREAD_BUSY")]
    assert turn.events[0]["metadata"]["retryable"] is True


@requirement("http.status-stream")
def test_behind_agentcore_an_input_that_fails_validation_is_an_event_too(judge: Judge) -> None:
    with serving(error_status="stream") as server:
        turn = judge.run(server.invocations, [{"runId": 513 * "r"}], threadId="long run id").turns[0]
    assert (turn.error, turn.failed, turn.wire["status"]) == (None, None, 200)
    assert [(event["type"], event["code"]) for event in turn.events] == [("RUN_ERROR", "VALIDATION_ERROR")]
    assert turn.events[0]["message"].startswith("runId: ")
