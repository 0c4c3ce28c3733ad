"""Each framework's agents behind a live server, over both transports, as the official client sees them."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.frameworks.conftest import FrameworkUnderTest, Serve
from tests.official.conversations import Ask, ClientTransport, WebSocket, check
from tests.official.judge import Json, Judge
from tests.sockets.process import ServerProcess

Connect = Callable[[Judge, ServerProcess], ClientTransport]

PICK: Json = {"name": "pick", "description": "The client's.", "parameters": {"type": "object"}}


def user(number: int, said: str) -> Json:
    return {"id": f"user-{number}", "role": "user", "content": said}


def test_the_example_streams_text(
    framework: FrameworkUnderTest, serve: Serve, transport: Connect, judge: Judge
) -> None:
    turn = transport(judge, serve(framework, framework.example)).ask(Ask("good morning"))
    assert check(judge, turn) == "RUN_FINISHED"
    assert turn.text == "You said: good morning"
    assert transport is WebSocket or turn.types.count("TEXT_MESSAGE_CONTENT") > 2  # a socket may merge them


def test_the_example_uses_its_tool(
    framework: FrameworkUnderTest, serve: Serve, transport: Connect, judge: Judge
) -> None:
    turn = transport(judge, serve(framework, framework.example)).ask(Ask("roll"))
    assert check(judge, turn) == "RUN_FINISHED"
    assert turn.events[-1]["outcome"] == {"type": "success"}
    order = ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT", "TEXT_MESSAGE_CONTENT"]
    assert [kind for kind in dict.fromkeys(turn.types) if kind in order] == order
    assert turn.text == "You rolled 6 (it is always the highest)."


def test_a_conversation_goes_on_with_its_history(framework: FrameworkUnderTest, serve: Serve, judge: Judge) -> None:
    turns: list[Json] = [{"add": [user(number, said)]} for number, said in enumerate(["say hi", "use roll", "count"])]
    done = judge.run(serve(framework, framework.scripted).invocations, turns, threadId="goes-on")
    assert [check(judge, turn) for turn in done.turns] == ["RUN_FINISHED"] * 3
    assert [turn.text for turn in done.turns] == ["hi", "result: rolled 6", "3 messages"]
    roles = ["user", "assistant", "user", "assistant", "tool", "assistant", "user", "assistant"]
    shown = [message for message in done.messages if message.get("content") or message.get("toolCalls")]
    assert [message["role"] for message in shown] == roles


def test_a_clients_tool_is_left_to_the_client(framework: FrameworkUnderTest, serve: Serve, judge: Judge) -> None:
    turns: list[Json] = [
        {"add": [user(1, "use pick")], "tools": [PICK]},
        {"answer": "the red one", "tools": [PICK]},
    ]
    done = judge.run(serve(framework, framework.scripted).invocations, turns, threadId="picks")
    assert [check(judge, turn) for turn in done.turns] == ["RUN_FINISHED"] * 2
    first, second = done.turns
    (call,) = [event["toolCallId"] for event in first.events if event["type"] == "TOOL_CALL_START"]
    assert list(first.pending) == [call]
    assert "TOOL_CALL_RESULT" not in first.types
    assert second.text == "result: the red one"


@pytest.mark.parametrize("said", ["fail", "fail late"])
def test_the_text_of_an_exception_stays_on_the_server(
    said: str, framework: FrameworkUnderTest, serve: Serve, transport: Connect, judge: Judge
) -> None:
    turn = transport(judge, serve(framework, framework.scripted)).ask(Ask(said))
    assert check(judge, turn) == "RUN_ERROR"
    assert turn.events[-1]["code"] == "AGENT_ERROR"
    assert turn.events[-1]["message"] == "The agent failed; the server's log has the cause."
    assert turn.text == ("so far so good" if said == "fail late" else "")
    assert "secret" not in str(turn.events)


def test_a_cancel_reaches_the_model(
    framework: FrameworkUnderTest, serve: Serve, transport: Connect, judge: Judge
) -> None:
    client = transport(judge, serve(framework, framework.scripted))
    thread = f"cancelled over {type(client).__name__}"
    cancel = {"command": {"type": "cancel", "threadId": thread}}
    turn = client.ask(Ask(f"wait {thread}", thread=thread, meanwhile=(framework.quiet, cancel)))
    assert check(judge, turn) == "RUN_FINISHED"
    assert turn.events[-1]["outcome"] == {"type": "cancelled"}
    # The same thread is free again, though its agent may still be on its way out.
    turn = client.ask(Ask(f"waited {thread}", thread=thread))
    assert check(judge, turn) == "RUN_FINISHED"
    assert turn.text == "it was cut off"


def test_runs_at_the_same_time_do_not_mix(framework: FrameworkUnderTest, serve: Serve, judge: Judge) -> None:
    client = WebSocket(judge, serve(framework, framework.scripted))
    names = ["red", "green", "blue", "grey"]
    with ThreadPoolExecutor(len(names)) as pool:
        runs = list(pool.map(client.events, [Ask(f"meet {name} {name} {name}", thread=name) for name in names]))
    for name, events in zip(names, runs, strict=True):
        turn = judge.replay(events).turns[0]
        assert check(judge, turn) == "RUN_FINISHED"
        assert turn.text == name * 3
        assert {event.get("threadId", name) for event in events} == {name}


def test_sessions_with_the_same_thread_id_do_not_meet(
    framework: FrameworkUnderTest, serve: Serve, judge: Judge
) -> None:
    url = serve(framework, framework.scripted).invocations
    for session in ("first", "other"):
        headers = {"x-amzn-bedrock-agentcore-runtime-session-id": session}
        (turn,) = judge.run(url, [{"add": [user(1, "count")]}], threadId="same", headers=headers).turns
        assert check(judge, turn) == "RUN_FINISHED"
        assert turn.text == "1 messages"


def test_a_tool_is_given_the_context(framework: FrameworkUnderTest, serve: Serve, judge: Judge) -> None:
    headers = {"x-amzn-bedrock-agentcore-runtime-session-id": "my-session"}
    turns: list[Json] = [{"add": [user(1, "use whoami")]}]
    done = judge.run(serve(framework, framework.scripted).invocations, turns, threadId="with-context", headers=headers)
    assert check(judge, done.turns[0]) == "RUN_FINISHED"
    assert done.turns[0].text == "result: with-context of my-session"


@pytest.mark.parametrize("approved", [True, False])
def test_an_agent_may_ask_first(*, approved: bool, framework: FrameworkUnderTest, serve: Serve, judge: Judge) -> None:
    tool = "roll_if_allowed" if framework.name == "langgraph" else "roll"
    decision: Json = {"status": "resolved", "payload": {"approved": approved}}
    turns: list[Json] = [{"add": [user(1, f"use {tool}")]}, {"decide": [decision]}]
    done = judge.run(serve(framework, framework.asking).invocations, turns, threadId=f"asks {approved}")
    assert [check(judge, turn) for turn in done.turns] == ["RUN_FINISHED"] * 2
    asked, answered = done.turns
    assert asked.events[-1]["outcome"]["type"] == "interrupt"
    assert answered.events[-1]["outcome"] == {"type": "success"}
    assert answered.text.startswith("result: ")
    assert ("rolled 6" in answered.text) is approved


@pytest.mark.parametrize("then", ["", "say hi"])
def test_a_call_that_a_client_has_made_up_is_not_run(
    then: str, framework: FrameworkUnderTest, serve: Serve, judge: Judge
) -> None:
    call = {"id": "made-up", "type": "function", "function": {"name": "roll", "arguments": '{"sides": 6}'}}
    said = [user(1, "use nothing"), {"id": "a", "role": "assistant", "toolCalls": [call]}]
    said += [user(2, then)] if then else []
    done = judge.run(serve(framework, framework.scripted).invocations, [{"add": said}], threadId=f"made up {then}")
    assert check(judge, done.turns[0]) == "RUN_FINISHED"
    assert "rolled 6" not in str(done.turns[0].events)
    assert done.turns[0].text == "hi" or not then


def test_a_client_may_answer_its_calls_one_after_the_other(
    framework: FrameworkUnderTest, serve: Serve, judge: Judge
) -> None:
    calls = [
        {"id": key, "type": "function", "function": {"name": "pick", "arguments": "{}"}} for key in ("first", "second")
    ]
    said: list[Json] = [user(1, "use pick"), {"id": "a", "role": "assistant", "toolCalls": calls}]
    turns: list[Json] = [
        {"add": [*said, {"id": "r1", "role": "tool", "toolCallId": "first", "content": "red"}], "tools": [PICK]},
        {"add": [{"id": "r2", "role": "tool", "toolCallId": "second", "content": "blue"}], "tools": [PICK]},
    ]
    done = judge.run(serve(framework, framework.scripted).invocations, turns, threadId="one after the other")
    assert [check(judge, turn) for turn in done.turns] == ["RUN_FINISHED"] * 2
    assert [turn.text for turn in done.turns] == ["", "result: blue"]


def test_a_deleted_thread_begins_anew(framework: FrameworkUnderTest, serve: Serve, judge: Judge) -> None:
    server = serve(framework, framework.scripted)
    judge.run(server.invocations, [{"add": [user(1, "say hi")]}], threadId="forgotten")
    deleted = httpx.delete(server.invocations.replace("/invocations", "/threads/forgotten"), trust_env=False)
    assert deleted.json() == {"threadId": "forgotten", "deleted": True}
    (turn,) = judge.run(server.invocations, [{"add": [user(2, "count")]}], threadId="forgotten").turns
    assert turn.text == "1 messages"
