"""The official client and refused requests, and the last client before AG-UI 1.0."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.official.conversations import Ask
from tests.official.judge import Json, Judge, Turn
from tests.official.test_live import CONFIRM
from tests.server.sockets.client import is_last
from tests.server.sockets.process import ServerProcess, serving
from tests.websocket import blocking_receive_until, blocking_socket_to

pytestmark = pytest.mark.other_language


@contextmanager
def busy(server: ServerProcess, thread: str) -> Iterator[None]:
    ask = Ask("wait 60", thread)
    with blocking_socket_to(server.ws) as socket:
        socket.send(json.dumps({"threadId": thread, "runId": ask.run, "messages": ask.messages}))
        blocking_receive_until(socket, lambda frame: frame["type"] == "RUN_STARTED")
        yield
        socket.send(json.dumps({"command": {"type": "cancel"}}))
        blocking_receive_until(socket, is_last)


def run_on_busy_thread(judge: Judge, server: ServerProcess, thread: str, **agent: object) -> Turn:
    messages: list[Json] = [{"id": "u1", "role": "user", "content": "hello"}]
    with busy(server, thread):
        return judge.run(
            server.invocations, [{"runId": "refused"}], threadId=thread, initialMessages=messages, **agent
        ).turns[0]


@pytest.mark.parametrize("older", [False, True])
def test_a_busy_thread_is_an_exception_that_names_the_status_and_the_code(
    judge: Judge, assistant: ServerProcess, *, older: bool
) -> None:
    turn = run_on_busy_thread(judge, assistant, f"busy, older={older}", older=older)
    assert turn.wire["status"] == 409
    assert turn.error is not None
    assert "THREAD_BUSY" in turn.error


@pytest.mark.parametrize("older", [False, True])
def test_behind_agentcore_a_busy_thread_is_an_event_and_no_exception(judge: Judge, *, older: bool) -> None:
    with serving(error_status="stream") as server:
        turn = run_on_busy_thread(judge, server, f"busy, older={older}", older=older)
    assert (turn.error, turn.failed, turn.wire["status"]) == (None, None, 200)
    assert [(event["type"], event["code"]) for event in turn.events] == [("RUN_ERROR", "THREAD_BUSY")]
    assert turn.events[0]["metadata"]["retryable"] is True


THEN = {"runId": "r2", "tools": [CONFIRM], "answer": "yes, do"}


def converse(judge: Judge, assistant: ServerProcess, said: str, *turns: Json) -> list[Turn]:
    messages = [{"id": "u1", "role": "user", "content": said}]
    held = judge.run(assistant.invocations, turns, threadId=said, initialMessages=messages, older=True)
    assert [(turn.error, turn.failed, turn.printed) for turn in held.turns] == [(None, None, [])] * len(turns)
    return list(held.turns)


def test_a_client_tool_is_left_pending_and_its_result_continues_the_thread(
    judge: Judge, assistant: ServerProcess
) -> None:
    called, answered = converse(judge, assistant, 'call confirm {"q": 1}', {"runId": "r1", "tools": [CONFIRM]}, THEN)
    assert called.types[-1] == answered.types[-1] == "RUN_FINISHED"
    assert answered.text == "The result of confirm is yes, do."


def test_a_cancelled_run_ends(judge: Judge, assistant: ServerProcess) -> None:
    cancel = {"command": {"type": "cancel", "threadId": "wait 60"}}
    (turn,) = converse(judge, assistant, "wait 60", {"runId": "r1", "meanwhile": {"after": 3, "body": cancel}})
    assert turn.types[-1] == "RUN_FINISHED"


def test_reasoning_tools_and_subagents_come_as_they_are(judge: Judge, assistant: ServerProcess) -> None:
    for said in ("think about rain", "calculate 6*7", "delegate calculate 6*7"):
        (turn,) = converse(judge, assistant, said, {"runId": "r1"})
        assert turn.types[-1] == "RUN_FINISHED"
