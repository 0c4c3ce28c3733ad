"""The official client against the built-in assistant on the offline model: every command, on both transports."""

import pytest

from tests.official.conversations import Ask, ClientTransport, check
from tests.official.judge import Json, Judge
from tests.server.sockets.process import ServerProcess
from tests.sse import events_of

pytestmark = pytest.mark.other_language

CONFIRM = {
    "name": "confirm",
    "description": "Ask the user.",
    "parameters": {"type": "object", "properties": {"q": {"type": "integer"}}},
}


CALL = 'call calculate {"expression":"1+1"}'


@pytest.mark.parametrize(
    ("said", "order", "answer"),
    [
        ("stream 50", ["TEXT_MESSAGE_START"], 50 * "hello world, "),
        ("think hard", ["REASONING_MESSAGE_END", "TEXT_MESSAGE_START"], "I have thought hard."),
        ("calculate 2*(3+4)", ["TOOL_CALL_END", "TOOL_CALL_RESULT", "TEXT_MESSAGE_START"], "14"),
        ("what time is it", ["TOOL_CALL_RESULT", "TEXT_MESSAGE_START"], "The result of current_time is"),
        (f"{CALL}\n{CALL}", ["TOOL_CALL_END", "TOOL_CALL_END", "TOOL_CALL_RESULT", "TOOL_CALL_RESULT"], "is 2, and"),
        ("call no_such {}", ["TOOL_CALL_RESULT", "TEXT_MESSAGE_START"], "no_such"),
        ("wait 0", ["TEXT_MESSAGE_START"], "Done."),
        ("hello", ["TEXT_MESSAGE_START"], "stream 5"),
        ("\U0001f600", ["TEXT_MESSAGE_START"], "stream 5"),
        ("stream 0", [], ""),
    ],
)
def test_every_command_of_the_offline_model_is_legal(
    said: str, order: list[str], answer: str, transport: ClientTransport, judge: Judge
) -> None:
    turn = transport.ask(Ask(said))
    assert check(judge, turn) == "RUN_FINISHED"
    assert turn.events[-1]["outcome"]["type"] == "success"
    assert [kind for kind in turn.types if kind in order] == order
    assert answer in turn.text


@pytest.mark.parametrize("binary", [False, True])
def test_a_client_tool_is_left_pending_and_its_result_continues_the_thread(
    judge: Judge, assistant: ServerProcess, *, binary: bool
) -> None:
    turns: list[Json] = [{"runId": "r1", "tools": [CONFIRM]}, {"runId": "r2", "tools": [CONFIRM], "answer": "yes, do"}]
    message = {"id": "u1", "role": "user", "content": 'call confirm {"q":1}'}
    agent = {"threadId": f"client-tool, binary={binary}", "initialMessages": [message], "binary": binary}
    first, second = judge.run(assistant.invocations, turns, **agent).turns
    assert check(judge, first) == check(judge, second) == "RUN_FINISHED"
    call = next(event for event in first.events if event["type"] == "TOOL_CALL_START")
    assert first.events[-1]["outcome"] == {"type": "success", "pendingToolCallIds": [call["toolCallId"]]}
    assert "TOOL_CALL_RESULT" not in first.types
    assert "yes, do" in second.text
    assert "TOOL_CALL_START" not in second.types


def test_the_official_client_keeps_which_tools_failed(judge: Judge, assistant: ServerProcess) -> None:
    said = 'call calculate {"expression":"1/0"}\ncall calculate {"expression":"6*7"}'
    message = {"id": "u1", "role": "user", "content": said}
    held = judge.run(assistant.invocations, [{"runId": "r1"}], threadId="failed-tool", initialMessages=[message])
    assert check(judge, held.turns[0]) == "RUN_FINISHED"
    beside = [message["metadata"] for message in held.messages if message["role"] == "tool"]
    assert [metadata.get("failed") for metadata in beside] == [True, None]
    assert all(metadata["durationMs"] >= 0 for metadata in beside)


def test_the_official_client_can_cancel_with_a_run_of_its_own(judge: Judge, assistant: ServerProcess) -> None:
    command = {"type": "cancel", "runId": "asked"}
    body = {"threadId": "forwarded", "runId": "asking", "messages": [], "forwardedProps": {"command": command}}
    turn = {"runId": "asked", "meanwhile": {"after": 3, "body": body}}
    message = {"id": "u", "role": "user", "content": "wait 30"}
    report = judge.run(assistant.invocations, [turn], threadId="forwarded", initialMessages=[message]).turns[0]
    assert check(judge, report) == "RUN_FINISHED"
    assert report.events[-1]["outcome"] == {"type": "cancelled"}
    assert report.meanwhile is not None
    assert report.meanwhile["status"] == 200
    answered = events_of(report.meanwhile["text"].encode())
    assert judge.verify(answered, enforce=True).clean
    assert [event["type"] for event in answered] == ["RUN_STARTED", "CUSTOM", "RUN_FINISHED"]


@pytest.mark.parametrize("binary", [False, True])
def test_a_client_that_aborts_can_go_on_in_the_same_thread(
    judge: Judge, assistant: ServerProcess, *, binary: bool
) -> None:
    turns: list[Json] = [
        {"add": [{"id": "u1", "role": "user", "content": "wait 30"}], "abortAfter": 3},
        {"add": [{"id": "u2", "role": "user", "content": "stream 2"}]},
    ]
    first, second = judge.run(assistant.invocations, turns, threadId=f"aborted, binary={binary}", binary=binary).turns
    assert first.error is None
    assert binary or first.events[-1]["code"] == "abort"  # the client says so of streams of text only
    assert check(judge, second) == "RUN_FINISHED"
    assert second.text == "hello world, hello world, "
