"""The official client against the examples that share state and delegate: its own copy of the state is the proof."""

from collections.abc import Iterator

import pytest

from tests.official.conversations import Ask, ClientTransport, check
from tests.official.judge import Json, Judge
from tests.sockets.process import ServerProcess, serving


@pytest.fixture(scope="module")
def sharing() -> Iterator[ServerProcess]:
    """A server around ``examples/state_agent.py``."""
    with serving(agent="examples.state_agent:agent") as server:
        yield server


@pytest.fixture(scope="module")
def team() -> Iterator[ServerProcess]:
    """A server around ``examples/team_agent.py``."""
    with serving(agent="examples.team_agent:agent") as server:
        yield server


def user(key: str, content: str) -> Json:
    return {"id": key, "role": "user", "content": content}


def test_the_clients_state_follows_the_tools(judge: Judge, sharing: ServerProcess) -> None:
    turns: list[Json] = [{"add": [user(f"u{at}", f'call add_item {{"item": "{item}"}}')]} for at, item in ITEMS]
    session = judge.run(sharing.invocations, turns, threadId="shopping")
    assert [check(judge, turn) for turn in session.turns] == ["RUN_FINISHED"] * 3
    assert session.state == {"items": ["milk", "eggs"]}
    assert [kind for turn in session.turns for kind in turn.types if kind.startswith("STATE")] == [
        "STATE_SNAPSHOT",
        "STATE_DELTA",
    ]
    assert "on the list already" in session.turns[2].text


ITEMS = list(enumerate(["milk", "eggs", "milk"]))


def test_an_activity_is_a_message_that_the_client_updates(judge: Judge, sharing: ServerProcess) -> None:
    session = judge.run(
        sharing.invocations, [{}], threadId="cooking", initialMessages=[user("u", 'call cook {"dish": "soup"}')]
    )
    assert check(judge, session.turns[0]) == "RUN_FINISHED"
    [activity] = [message for message in session.messages if message["role"] == "activity"]
    assert activity["content"] == {"title": "Cooking soup", "done": ["chop", "boil", "serve"]}


def test_any_agent_works_for_an_assistant(judge: Judge, team: ServerProcess) -> None:
    both = 'call poet {"task": "sea"}\ncall accountant {"task": "calculate 12*30"}'
    session = judge.run(team.invocations, [{}], threadId="team", initialMessages=[user("u", both)])
    turn = session.turns[0]
    assert check(judge, turn) == "RUN_FINISHED"
    results = [event["content"] for event in turn.events if event["type"] == "TOOL_CALL_RESULT"]
    assert results[-2:] == ["O sea, how you rhyme.", "The result of calculate is 360."]
    assert turn.types.count("SUBAGENT_FINISHED") == 2


@pytest.mark.parametrize(
    "said", ["delegate think hard", "delegate delegate calculate 6*7", "delegate fail", "delegate delegate fail"]
)
def test_delegation_is_legal_to_the_client(said: str, transport: ClientTransport, judge: Judge) -> None:
    turn = transport.ask(Ask(said))
    assert check(judge, turn) == "RUN_FINISHED"
    assert turn.types.count("SUBAGENT_STARTED") == said.count("delegate")
    ends = turn.types.count("SUBAGENT_FINISHED") + turn.types.count("SUBAGENT_ERROR")
    assert ends == said.count("delegate")


def test_a_conversation_with_subagents_goes_on(judge: Judge, assistant: ServerProcess) -> None:
    turns: list[Json] = [
        {"add": [user("u1", "delegate calculate 6*7")]},
        {"add": [user("u2", "stream 2")]},
    ]
    session = judge.run(assistant.invocations, turns, threadId="delegated")
    assert [check(judge, turn) for turn in session.turns] == ["RUN_FINISHED"] * 2
    assert session.turns[1].text == "hello world, hello world, "
    assert {message.get("subagentRunId") is None for message in session.messages} == {True, False}
