"""Requests of Roboto's clients: their translation and their refusal."""

import pytest
from msgspec import Struct

from agui_container.protocol.errors import AppError
from agui_container.protocols.roboto import messages
from agui_container.protocols.roboto.goals import declare, request_for
from agui_container.protocols.roboto.requests import (
    MAX_BLOCKS,
    DatasetSummary,
    DatasetTriage,
    Facts,
    MessageFacts,
    SendRequest,
    SentToolResult,
    StartRequest,
    ToolResultsRequest,
    ToolSpec,
    read,
)
from agui_container.protocols.roboto.views import Position
from tests.engine.doubles import Json

HELLO = {"role": "user", "content": [{"text": "Hello"}, {"text": "you"}]}
TRIAGE = {"goal_type": "dataset_triage", "dataset_id": "d"}
SUMMARY = DatasetSummary(dataset_id="ds_1")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "messages, goals or invoke_skills must be there."),
        (
            {"messages": [{"role": "assistant", "content": [{"text": "x"}]}]},
            "the last of messages must be of role user.",
        ),
        ({"messages": [{"role": "roboto", "content": [{"text": "x"}]}]}, "messages.0.role: "),
        ({"messages": [{"role": "user", "content": []}]}, "messages.0.content: "),
        ({"messages": [HELLO], "goals": 6 * [{}]}, "goals: "),
        ({"messages": [HELLO], "visibility": "public"}, "visibility: "),
        ({"messages": [HELLO], "analysis_scope": {"start_time": 2, "end_time": 1}}, "analysis_scope: start_time must"),
        ({"messages": [HELLO], "client_tools": [{"name": "recall"}]}, "client_tools.0.name: "),
        (
            {"messages": [HELLO], "client_tools": [{"name": "client_look", "input_schema": {"type": "string"}}]},
            "client_tools.0: input_schema: the tool 'client_look' needs an object schema",
        ),
        ({"messages": [HELLO], "invoke_skills": 2 * [{"skill_id": "s"}]}, "invoke_skills: "),
        ({"goals": [{"goal_type": "dataset_summary"}]}, "goals.0: Object missing required field `dataset_id`."),
        ({"goals": [{**TRIAGE, "label_vocabulary": {}}]}, "goals.0.label_vocabulary: "),
        ({"goals": [{**TRIAGE, "label_vocabulary": {"no label": "x"}}]}, "goals.0.label_vocabulary"),
        (
            {"goals": [{"goal_type": "create_events", "dataset_id": "d"}]},
            "goals.0: Object missing required field `event_v",
        ),
        ({"goals": [{"goal_type": "mine"}]}, "goals.0.goal_type: "),
        ({"goals": [{}]}, "goals.0: "),
    ],
)
def test_a_start_that_is_wrong_is_refused_by_the_name_of_the_field(body: object, message: str) -> None:
    with pytest.raises(AppError) as caught:
        read(StartRequest, body)
    assert caught.value.message.startswith(message)


@pytest.mark.parametrize("given", [{}, {"input_schema": {}}, {"input_schema": None}])
def test_a_client_tool_without_a_schema_has_no_arguments(given: Json) -> None:
    tool = read(ToolSpec, {"name": "client_look", **given})
    assert tool.input_schema == {"type": "object", "properties": {}}


@pytest.mark.parametrize("body", [{}, {"message": {"role": "assistant", "content": [{"text": "x"}]}}])
def test_a_send_without_the_users_words_goals_or_a_skill_is_refused(body: object) -> None:
    with pytest.raises(AppError, match="message"):
        read(SendRequest, body)


@pytest.mark.parametrize("token", ["x", "1.2.3", "", "1.0.0.aaaaaaaaaaaa.xxxxxxxxxxxx"])
def test_a_token_that_is_none_is_refused(token: str) -> None:
    with pytest.raises(AppError, match="next_token"):
        Position.parse(token)


def test_unknown_members_of_newer_clients_are_ignored() -> None:
    assert read(StartRequest, {"messages": [HELLO], "newer": 1}).messages[0].text == "Hello\nyou"


def run(**facts: object) -> messages.NewRun:
    session = Facts(tools=[ToolSpec(name="client_look", description="Look.")])
    return messages.NewRun("t1", "r1", 5.0, session, **facts)  # type: ignore[arg-type]


def test_a_start_becomes_the_input_of_a_run() -> None:
    body = {
        "messages": [{"role": "assistant", "content": [{"text": "Welcome."}]}, HELLO],
        "system_prompt": "Be brief.",
        "client_context": {"dataset_ids": ["ds_1"], "view_ids": []},
    }
    found = messages.start_input(run(goals=declare([SUMMARY], "r1-user", 5.0)), read(StartRequest, body))
    assert [(it.role, it.content) for it in found.messages] == [
        ("system", "Be brief."),
        ("assistant", "Welcome."),
        ("user", "Hello\nyou"),
    ]
    assert [tool.name for tool in found.tools or ()] == ["client_look", "achieve_dataset_summary"]
    assert (found.context or [])[0].value == '{"dataset_ids": ["ds_1"]}'
    props = found.forwarded_props or {}
    assert props["onBusy"] == "reject"
    facts = MessageFacts.of(found.messages[-1].metadata)
    assert (found.messages[-1].id, facts.created, facts.is_sent) == ("r1-user", 5.0, False)


def test_a_scope_is_told_with_every_run_of_the_session() -> None:
    request = read(SendRequest, {"message": HELLO, "analysis_scope": {"start_time": 1}})
    found = messages.message_input(messages.NewRun("t1", "r1", 5.0, Facts(scope=request.analysis_scope)), request)
    assert [it.value for it in found.context or ()] == ['{"start_time":1}']
    metadata = found.messages[0].metadata
    assert MessageFacts.of(metadata).is_sent
    assert metadata is not None
    assert metadata["roboto"]["sent"] is True, "the name in stored messages stays"


@pytest.mark.parametrize(
    ("body", "text", "skill"),
    [
        (
            {"goals": [{"goal_type": "dataset_summary", "dataset_id": "d"}]},
            request_for(["achieve_dataset_summary"]),
            None,
        ),
        ({"invoke_skills": [{"skill_id": "tidy", "version": 2}]}, "Use the skill tidy.", {"name": "tidy"}),
    ],
)
def test_a_turn_without_words_gets_words_of_the_server(body: object, text: str, skill: object) -> None:
    request = read(SendRequest, body)
    found = messages.message_input(run(goals=declare(request.goals or [], "r1-user", 5.0)), request)
    assert [it.content for it in found.messages] == [text]
    assert (found.forwarded_props or {}).get("skill") == skill
    assert not MessageFacts.of(found.messages[0].metadata).is_sent  # no client holds it


def test_results_become_tool_messages() -> None:
    body = {
        "tool_results": [
            {"tool_use_id": "c1", "tool_name": "client_look", "runtime_ms": 4, "status": "success", "output": {"a": 1}},
            {"tool_use_id": "c2", "tool_name": "client_look", "status": "error", "output": {"error": "No."}},
            {"tool_use_id": "c3", "tool_name": "client_look", "status": "declined", "output": None},
        ]
    }
    results: list[SentToolResult] = read(ToolResultsRequest, body).tool_results
    found = messages.results_input(run(), results, [])
    rows = [(it.tool_call_id, it.content, it.error) for it in found.messages if it.role == "tool"]
    assert rows == [
        ("c1", '{"a": 1}', None),
        ("c2", '{"error": "No."}', "No."),
        ("c3", "{}", "The user declined it."),
    ]
    assert MessageFacts.of(found.messages[0].metadata).runtime_ms == 4


MANY = 6_000


@pytest.mark.parametrize(
    ("kind", "document", "message"),
    [
        (StartRequest, {"messages": [1] * MANY}, "messages: Expected `array` of length <= 1000."),
        (
            StartRequest,
            {"messages": [{"role": "user", "content": [1] * MANY}] * 2},
            f"messages.0.content: Expected `array` of length <= {MAX_BLOCKS}.",
        ),
        (StartRequest, {"messages": [{"role": "user", "content": [1] * 3_000}] * 2}, "messages.0.content.0: "),
        (
            DatasetTriage,
            {**TRIAGE, "label_vocabulary": dict.fromkeys(map(str, range(MANY)))},
            "label_vocabulary: Expected `object` of length <= 50.",
        ),
    ],
)
def test_a_list_of_very_many_items_is_refused_with_one_error(kind: type[Struct], document: Json, message: str) -> None:
    with pytest.raises(AppError) as refused:
        read(kind, document)
    assert refused.value.message.startswith(message)
    assert ";" not in refused.value.message
