"""Commands that are parsed from bodies, alone or inside an input."""

import json

import pytest

from agui_container.protocol.parser import CommandRequest, MalformedRequest
from agui_core.commands import Attach
from tests.engine.doubles import Json, ask
from tests.protocol.test_parser import parse_json, refusal, run_input


def test_a_command_inside_an_input_may_name_another_run() -> None:
    body = ask("t", "c1", forwardedProps={"command": {"type": "attach", "runId": "r", "threadId": "u"}})
    assert parse_json(body) == CommandRequest(Attach(thread_id="u", run_id="r"), "t", "c1", None, "1.0")


@pytest.mark.parametrize("command", [None, "cancel", [], 7, {}, {"type": "goto"}, {"type": ["cancel"]}])
def test_a_forwarded_command_of_somebody_else_stays_in_the_input(command: object) -> None:
    assert run_input(forwardedProps={"command": command}).forwarded_props == {"command": command}


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ({"type": "attach", "after": -1}, "command.after"),
        ({"type": "attach", "runId": "r" * 513}, "command.runId"),
        ({"type": "cancel", "threadId": []}, "command.threadId"),
        ({"type": "explode"}, "command"),
        ("cancel", "command"),
        (None, "command"),
    ],
)
def test_a_bad_bare_command_is_refused_by_field(command: object, path: str) -> None:
    assert refusal(json.dumps({"command": command}).encode()).startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"messages": [1] * 10_001}, "messages: has 10001 items; at most 10000 are taken."),
        ({"tools": [1] * 1_001}, "tools: has 1001 items; at most 1000 are taken."),
        ({"resume": [1] * 1_001}, "resume: has 1001 items; at most 1000 are taken."),
        ({"messages": [{"toolCalls": [1] * 4_001}]}, "messages: one has 4001 parts and calls; at most 4000 are taken."),
        (
            {"messages": [{"content": [1] * 2_000}] * 5 + [{"toolCalls": [1]}]},
            "messages: have 10001 parts and calls",
        ),
    ],
)
def test_lists_are_bounded_before_they_are_looked_at(fields: Json, message: str) -> None:
    assert refusal(json.dumps({**ask(), **fields}).encode()).startswith(message)


@pytest.mark.parametrize(
    ("body", "frame_id"),
    [
        ({"command": {"type": "explode"}, "id": 7}, 7),
        ({"command": None, "id": {"a": 1}}, {"a": 1}),
        ({"type": "pong", "id": "seven"}, "seven"),
        ({"messages": [], "id": 0}, 0),
        ({"command": None}, None),
        ({"type": "ping", "id": 513 * "x"}, None),
        ({"command": None, "id": 513 * "x"}, None),
    ],
)
def test_a_refusal_knows_what_the_frame_is_called(body: Json, frame_id: object) -> None:
    with pytest.raises(MalformedRequest) as refused:
        parse_json(body)
    assert refused.value.frame_id == frame_id
