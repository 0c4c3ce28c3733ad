"""Goals of sessions: calls of their tools are answered, and the agent is asked for what it leaves out."""

import json
from collections.abc import Sequence
from itertools import count
from pathlib import Path

import pytest
from ag_ui.core import AssistantMessage, FunctionCall, Message, ToolCall, ToolMessage, UserMessage
from msgspec.structs import replace

from agui_container.ports.records import RunStatus
from agui_container.protocols.roboto import turns
from agui_container.protocols.roboto.goals import (
    MAX_CALLS,
    MAX_DATA,
    DeclaredGoal,
    Step,
    declare,
    last_turn,
    next_step,
    schema_of,
)
from agui_container.protocols.roboto.requests import (
    CreateEvents,
    DatasetSummary,
    DatasetTriage,
    Goal,
    MessageFacts,
    read,
)
from tests.engine.doubles import Json
from tests.protocols.roboto.conftest import Api, serving_api
from tests.protocols.roboto.test_routes import LOOK, results, texts

pytestmark = pytest.mark.wire

SUMMARY = {"goal_type": "dataset_summary", "dataset_id": "ds_1"}
TRIAGE = {"goal_type": "dataset_triage", "dataset_id": "d", "label_vocabulary": {"good": "Well.", "bad": "Not."}}
SUMMARISE = 'call achieve_dataset_summary {"summary": "Short."}'


def statuses(held: Json) -> list[str]:
    return [goal["status"] for goal in held["goals"]]


USER = UserMessage(id="u", content="Go.")


def prompt() -> UserMessage:
    return UserMessage(id="p", content="Achieve", metadata=MessageFacts(is_prompt=True).metadata())


def call(name: str = "achieve_dataset_summary", arguments: str = '{"summary": "x"}', call_id: str = "c1") -> Message:
    function = FunctionCall(name=name, arguments=arguments)
    return AssistantMessage(id=f"m-{call_id}", tool_calls=[ToolCall(id=call_id, function=function)])


def result(call_id: str = "c1") -> ToolMessage:
    return ToolMessage(id=f"t-{call_id}", tool_call_id=call_id, content="…")


def declared(goal: Json = SUMMARY, **fields: object) -> DeclaredGoal:
    (found,) = declare([read(Goal, goal)], "u", 1.0)  # type: ignore[arg-type]
    return replace(found, **fields)


def step_after(*messages: Message, goal: DeclaredGoal, status: RunStatus = RunStatus.FINISHED) -> Step:
    ids = count()
    return next_step([goal], last_turn(messages), status, lambda: f"new-{next(ids)}", 9.0)


def answer_to(arguments: str, goal: Json = SUMMARY, name: str = "achieve_dataset_summary") -> str:
    (answer,) = step_after(USER, call(name, arguments), goal=declared(goal)).messages
    assert isinstance(answer, ToolMessage)
    return str(answer.error or answer.content)


def test_a_call_that_fails_is_the_one_that_the_goal_names_while_it_is_pending() -> None:
    (goal,) = step_after(USER, call(arguments="{}"), goal=declared()).changed
    assert (goal.status, goal.call_id, goal.concluded_at) == ("pending", "c1", None)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ("{}", "'summary' is a required property"),
        ('{"summary": 5}', "'summary': 5 is not of type 'string'"),
        ("[", "must be a JSON object"),
        (json.dumps({"summary": "x" * MAX_DATA}), f"has more than {MAX_DATA} characters as JSON"),
    ],
)
def test_a_call_with_other_data_gets_the_error(arguments: str, error: str) -> None:
    assert answer_to(arguments) == f"achieve_dataset_summary: {error}."


@pytest.mark.parametrize("labels", [["good"], ["good", "bad", "good"], ["good", "good"]])
def test_a_triage_needs_one_decision_for_each_label(labels: list[str]) -> None:
    def answer(labels: Sequence[str]) -> str:
        rows = [{"label": it, "applies": True, "justification": "So.", "confidence": 1} for it in labels]
        return answer_to(json.dumps({"label_decisions": rows}), TRIAGE, "achieve_dataset_triage")

    assert answer(labels) != "The goal is achieved."
    assert answer(["bad", "good"]) == "The goal is achieved."


ACHIEVED = declared(status="achieved", call_id="c1", concluded_at=2.0)
FAILED_CALLS = [it for n in range(MAX_CALLS) for it in (call(call_id=f"c{n}"), result(f"c{n}"))]
STEPS: dict[str, tuple[DeclaredGoal, Sequence[Message], RunStatus, str]] = {
    "an achieved goal ends the turn": (ACHIEVED, [USER, call(), result()], RunStatus.FINISHED, ""),
    "an agent that stops is asked": (declared(), [USER], RunStatus.FINISHED, "UserMessage"),
    "and asked again": (declared(), [USER, prompt(), prompt()], RunStatus.FINISHED, "UserMessage"),
    "and at last no more": (declared(), [USER, prompt(), prompt(), prompt()], RunStatus.FINISHED, "failed"),
    "a failed run ends the turn": (declared(), [USER, call()], RunStatus.ERROR, "failed"),
    "a cancelled run ends the turn": (declared(), [USER], RunStatus.CANCELLED, "failed"),
    "an approval is waited for": (declared(), [USER, call()], RunStatus.INTERRUPTED, ""),
    "a client's own tool is waited for": (
        declared(),
        [USER, call("client_look", "{}"), call(call_id="c2")],
        RunStatus.FINISHED,
        "",
    ),
    "a second call of an achieved goal is answered": (
        ACHIEVED,
        [USER, call(), result(), call(call_id="c2")],
        RunStatus.FINISHED,
        "ToolMessage",
    ),
    "calls without end end the turn": (
        declared(),
        [USER, *FAILED_CALLS, call(call_id="last")],
        RunStatus.FINISHED,
        "failed",
    ),
    "a message through another protocol ends the turn": (
        declared(),
        [USER, UserMessage(id="v", content="Stop.")],
        RunStatus.FINISHED,
        "failed",
    ),
}


@pytest.mark.parametrize(("goal", "messages", "status", "follows"), STEPS.values(), ids=STEPS)
def test_what_follows_a_run(goal: DeclaredGoal, messages: Sequence[Message], status: RunStatus, follows: str) -> None:
    step = step_after(*messages, goal=goal, status=status)
    ends = [changed.status for changed in step.changed if not step.messages]
    assert [*ends, *(type(it).__name__ for it in step.messages)] == ([follows] if follows else [])


def test_a_turn_whose_process_has_ended_between_two_runs_answers_the_same_call_alike() -> None:
    (answer,) = step_after(USER, call(), goal=ACHIEVED).messages
    assert answer.content == "The goal is achieved."


def test_each_goal_asks_for_the_result_that_the_package_reads() -> None:
    summary = DatasetSummary(dataset_id="ds_1")
    triage = DatasetTriage(dataset_id="ds_1", label_vocabulary={"good": "All is well."})
    events = CreateEvents(dataset_id="ds_1", event_vocabulary={"stop": "It stops."})
    goals = declare([summary, triage, events, summary], "u", 1.0)
    assert [goal.tool for goal in goals][2:] == ["achieve_create_events", "achieve_dataset_summary_2"]
    assert schema_of(summary)["required"] == ["summary"]
    decision = json.loads(json.dumps(schema_of(triage)))["properties"]["label_decisions"]["items"]
    assert decision["properties"]["label"] == {"type": "string", "enum": ["good"]}
    event = json.loads(json.dumps(schema_of(events)))["properties"]["events"]["items"]
    assert (event["required"], event["properties"]["name"]["enum"]) == (["name", "start_time", "end_time"], ["stop"])
    assert event["properties"]["tags"]["maxItems"] == 0  # there is no vocabulary of tags
    context = goals[1].context
    assert (context.description, "All is well." in context.value) == ("The goal of achieve_dataset_triage", True)


async def test_goals_begin_pending_and_are_achieved_by_their_calls(api: Api) -> None:
    record = await api.start(SUMMARISE, goals=[SUMMARY])
    assert (record["status"], statuses(record)) == ("roboto_turn", ["pending"])
    held = await api.finished(record)
    (goal,) = held["goals"]
    assert (held["status"], goal["status"], goal["message_sequence_num"]) == ("user_turn", "achieved", 0)
    assert goal["goal_data"] == {**SUMMARY, "summary_format_spec_prompt": None}
    assert goal["achieve_tool_use_id"] == held["messages"][1]["content"][0]["tool_use_id"]
    assert goal["concluded_at"] >= goal["created"]
    assert texts(held)[-1] == "The result of achieve_dataset_summary is The goal is achieved."


async def test_an_agent_that_leaves_a_goal_out_is_asked_for_it_and_the_goal_fails_in_the_end(api: Api) -> None:
    held = await api.finished(await api.start("stream 1", goals=[SUMMARY]))
    assert (held["status"], statuses(held)) == ("goals_failed", ["failed"])
    assert [message["role"] for message in held["messages"]].count("user") == 1
    asked = [it.get("content") for it in (await api.http.get(f"/threads/{held['thread_id']}")).json()["messages"]]
    assert sum("Achieve the goals: achieve_dataset_summary." in str(content) for content in asked) == 3
    held = await api.say(held, "stream 1")
    assert (held["status"], statuses(held)) == ("user_turn", ["failed"])


async def test_goals_stay_pending_while_the_client_runs_a_tool_and_are_achieved_beside_its_result(api: Api) -> None:
    held = await api.finished(
        await api.start(f"{SUMMARISE}\ncall client_look {{}}", goals=[SUMMARY], client_tools=[LOOK])
    )
    assert (held["status"], statuses(held)) == ("client_tool_turn", ["pending"])
    looked = held["messages"][1]["content"][1]["tool_use_id"]
    await api.data("POST", f"/{held['thread_id']}/tool-results", results(looked))
    held = await api.finished({**held, "status": "roboto_turn"})
    assert (held["status"], statuses(held)) == ("user_turn", ["achieved"])


async def test_a_fork_amid_a_turn_with_goals_is_the_users_turn_without_client_tools(api: Api) -> None:
    held = await api.finished(await api.start("call client_look {}", goals=[SUMMARY], client_tools=[LOOK]))
    fork = await api.data("POST", f"/{held['thread_id']}/fork", {"message_sequence_num": 1})
    assert (fork["status"], statuses(fork)) == ("goals_failed", ["failed"])
    plain = await api.finished(await api.start("call client_look {}", client_tools=[LOOK]))
    fork = await api.data("POST", f"/{plain['thread_id']}/fork", {"message_sequence_num": 1})
    assert (plain["status"], fork["status"]) == ("client_tool_turn", "user_turn")
    assert fork["messages"][1]["content"][0]["answered_by_server"] is True


async def test_a_poll_continues_a_turn_whose_process_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def end_of_the_process(*_: object) -> None:
        return None

    store = f"sqlite:///{tmp_path}/sessions.db"
    with monkeypatch.context() as patch:
        patch.setattr(turns.Turns, "_continue_goals", end_of_the_process)
        async with serving_api(store=store) as api:
            record = await api.start(SUMMARISE, goals=[SUMMARY])
            while (await api.http.get(f"/threads/{record['thread_id']}")).json()["status"] == "agent_turn":
                pass
    async with serving_api(store=store) as api:
        held = await api.finished({**record, "status": "roboto_turn"})  # the run may have ended before the answer
        assert (held["status"], statuses(held)) == ("user_turn", ["achieved"])
