"""Commands that are parsed from bodies, alone or inside an input, and refusals that name the field."""

import json

import pytest

from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocol.parser import CommandRequest, MalformedRequest, parse, parse_command
from agui_core.commands import (
    CATEGORIES,
    MAX_ID,
    MAX_NOTES,
    MAX_PAGE,
    MAX_TITLE,
    Attach,
    FeedbackCategory,
    FeedbackSentiment,
    ThreadsFeedback,
    ThreadsGet,
    ThreadsRename,
)
from tests.engine.doubles import Json, ask
from tests.protocol.test_parser import parse_json, refusal, run_input


def feedback(**fields: object) -> Json:
    said = {"threadId": "t1", "messageId": "m1", "sentiment": "negative", **fields}
    return {"type": "threads.feedback", **said}


@pytest.mark.parametrize(
    "document",
    [
        {"command": {"type": "threads.get", "threadId": "t1"}},
        {"command": {"type": "threads.get"}, "threadId": "t1"},
        {"command": {"type": "threads.get", "threadId": None}, "threadId": "t1"},
        ask("t1", "c1", forwardedProps={"command": {"type": "threads.get"}}),
        ask("t2", "c1", forwardedProps={"command": {"type": "threads.get", "threadId": "t1"}}),
    ],
)
def test_a_thread_is_named_by_the_command_or_by_what_is_around_it(document: Json) -> None:
    asked = parse(json.dumps(document).encode())
    assert isinstance(asked, CommandRequest)
    assert asked.command == ThreadsGet(thread_id="t1")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ({"type": "threads.get"}, "command.threadId: Field required"),
        ({"type": "threads.get", "threadId": ""}, "command.threadId: String should have at least 1 character"),
        ({"type": "threads.get", "threadId": "t", "messages": 0}, "command.messages: must be true or false"),
        ({"type": "threads.delete", "threadId": "x" * (MAX_ID + 1)}, "command.threadId: String should have at most"),
        ({"type": "threads.list", "limit": 0}, "command.limit: Input should be greater than or equal to 1"),
        ({"type": "threads.list", "limit": MAX_PAGE + 1}, "command.limit: Input should be less than or equal to 100"),
        ({"type": "threads.list", "limit": True}, "command.limit: Input should be a valid integer"),
        ({"threadId": "t"}, "command: 'type' is required"),
        ("cancel", "command: "),
        (None, "command: "),
        ({"type": "attach", "after": -1}, "command.after: "),
        ({"type": "attach", "runId": "r" * 513}, "command.runId: "),
        ({"type": "cancel", "threadId": []}, "command.threadId: "),
        ({"type": "threads.rename", "threadId": "t", "title": " \n"}, "command.title: must not be blank; null takes"),
        (
            {"type": "threads.rename", "threadId": "t", "title": "x" * (MAX_TITLE + 1)},
            "command.title: String should have at most 200 characters",
        ),
        ({"type": "threads.burn", "threadId": "t"}, "command: 'type' should be one of 'cancel', 'attach', "),
        (feedback(sentiment="meh"), "command.sentiment: Input should be 'positive' or 'negative'"),
        (feedback(categories=["nice"] * 50_000), "command.categories.0: Input should be 'correct', 'helpful'"),
        (feedback(categories="slow"), "command.categories: Input should be a valid tuple"),
        (feedback(categories=["slow"] * 51), "command.categories: Tuple should have at most 50 items"),
        (
            feedback(categories=["slow", "helpful"]),
            "command.categories: 'helpful' does not fit the sentiment; incorrect, incomplete, tool_failure,",
        ),
        (feedback(categories=["other"]), "command.notes: are required with the category 'other'"),
        (feedback(categories=["other"], notes=" \n "), "command.notes: are required with the category 'other'"),
        (feedback(notes="x" * (MAX_NOTES + 1)), "command.notes: String should have at most 4000 characters"),
    ],
)
def test_a_mistake_is_reported_with_its_field(command: object, said: str) -> None:
    with pytest.raises(AppError) as refused:
        parse(json.dumps({"command": command}).encode())
    assert refused.value.code is ErrorCode.VALIDATION_ERROR
    assert refused.value.message.startswith(said)
    assert "more" not in refused.value.message  # the errors of a list are not all built


@pytest.mark.parametrize("sentiment", FeedbackSentiment)
@pytest.mark.parametrize("category", FeedbackCategory)
def test_a_category_is_taken_with_the_sentiments_that_it_fits(
    sentiment: FeedbackSentiment, category: FeedbackCategory
) -> None:
    document = feedback(sentiment=sentiment, categories=[category], notes="because")
    if category in CATEGORIES[sentiment]:
        command = parse_command(document)
        assert isinstance(command, ThreadsFeedback)
        assert command.categories == (category,)
    else:
        with pytest.raises(AppError, match=f"^categories: '{category}' does not fit"):
            parse_command(document)


def test_a_title_is_one_line() -> None:
    assert parse_command({"type": "threads.rename", "threadId": "t", "title": " a\n\tb  c "}) == ThreadsRename(
        thread_id="t", title="a b c"
    )
    assert parse_command({"type": "threads.rename", "threadId": "t", "title": None}) == ThreadsRename(
        thread_id="t", title=None
    )


def test_a_command_inside_an_input_may_name_another_run() -> None:
    body = ask("t", "c1", forwardedProps={"command": {"type": "attach", "runId": "r", "threadId": "u"}})
    assert parse_json(body) == CommandRequest(Attach(thread_id="u", run_id="r"), "t", "c1", None, "1.0")


@pytest.mark.parametrize("command", [None, "cancel", [], 7, {}, {"type": "goto"}, {"type": ["cancel"]}])
def test_a_forwarded_command_of_somebody_else_stays_in_the_input(command: object) -> None:
    assert run_input(forwardedProps={"command": command}).forwarded_props == {"command": command}


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
