"""AG-UI messages as Roboto shows them: values in, values out."""

from collections.abc import Collection, Mapping, Sequence

import pytest
from ag_ui.core import (
    AssistantMessage,
    FunctionCall,
    Message,
    ReasoningMessage,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)

from agui_container.protocols.roboto.messages import session_messages
from agui_container.protocols.roboto.requests import CANCELLED, Facts, MessageFacts, ToolSpec, TurnFailure

FACTS = Facts(tools=[ToolSpec(name="client_look")])


def user(name: str = "u", facts: MessageFacts | None = None) -> Message:
    return UserMessage(id=name, content="Hello", metadata=None if facts is None else facts.metadata())


def says(name: str, text: str | None = None, *calls: str) -> Message:
    made = [ToolCall(id=call, function=FunctionCall(name="client_look", arguments='{"at":1}')) for call in calls]
    return AssistantMessage(id=name, content=text, tool_calls=made or None)


def result(call: str, content: str = '{"seen":true}', **fields: object) -> Message:
    return ToolMessage(id=f"r-{call}", tool_call_id=call, content=content, **fields)


def rows(
    messages: Sequence[Message], active: Collection[str] | None = None, failures: Mapping[str, TurnFailure] = {}
) -> list[object]:
    return [
        (it.role, it.status, [block.get("text") or block.get("tool_use_id") or "error" for block in it.content])
        for it in session_messages(messages, FACTS, 0.0, active, failures)
    ]


def test_a_number_that_no_double_holds_is_shown_in_text_alone() -> None:
    text = f'{{"at":{"1" * 400}}}'
    call = ToolCall(id="c", function=FunctionCall(name="client_look", arguments=text))
    use, answer = session_messages([AssistantMessage(id="a", tool_calls=[call]), result("c", text)], FACTS, 0.0)
    assert use.content[0]["input"] is None
    assert answer.content[0]["payload"] == {"result": text}


HIDDEN: list[Message] = [
    SystemMessage(id="s", content="Be brief."),
    ReasoningMessage(id="t", content="Hm."),
    AssistantMessage(id="h", content="Help", subagent_run_id="sub"),
    ToolMessage(id="i", tool_call_id="x", content="1", subagent_run_id="sub"),
]
IMAGE = {"type": "image", "source": {"type": "url", "value": "https://example.com/a.png"}}
PARTS = UserMessage(id="u", content=[TextPart(text="Look"), IMAGE])
SPOKEN, CALLED = [says("a", "One"), says("b", "Two")], says("a", None, "c1", "c2")
GROWING = "generating"

SHOWN: dict[str, tuple[list[Message], set[str] | None, list[object]]] = {
    "reasoning, instructions and subagents are not shown": (HIDDEN, None, []),
    "parts that are no text are named": ([PARTS], None, [("user", "completed", ["Look", "[image]"])]),
    "the last message of an active run may grow": (
        [says("a", "Hel")],
        {"a"},
        [("assistant", GROWING, ["Hel"])],
    ),
    "content after an open message is held back": (SPOKEN, {"a", "b"}, [("assistant", GROWING, ["One"])]),
    "content after a message that has ended is shown": (
        SPOKEN,
        {"b"},
        [("assistant", "completed", ["One"]), ("assistant", GROWING, ["Two"])],
    ),
    "a call whose arguments are not complete is not shown": ([CALLED], {"c2"}, [("assistant", GROWING, ["c1"])]),
    "a call whose arguments are complete is shown": ([CALLED], set(), [("assistant", GROWING, ["c1", "c2"])]),
    "results are shown as they come": (
        [CALLED, result("c1"), says("b", "Early.")],
        set(),
        [("assistant", "completed", ["c1", "c2"]), ("roboto", GROWING, ["c1"])],
    ),
    "the next answer is shown when all results are there": (
        [CALLED, result("c1"), result("c2"), says("b", "Now.")],
        set(),
        [
            ("assistant", "completed", ["c1", "c2"]),
            ("roboto", "completed", ["c1", "c2"]),
            ("assistant", GROWING, ["Now."]),
        ],
    ),
    "a call that the user has passed over holds nothing back": (
        [says("a", None, "c1"), user("u2"), says("b", "Fine.")],
        set(),
        [("assistant", "completed", ["c1"]), ("user", "completed", ["Hello"]), ("assistant", GROWING, ["Fine."])],
    ),
}


@pytest.mark.parametrize(("messages", "active", "expected"), SHOWN.values(), ids=SHOWN)
def test_what_is_shown_of_a_thread(messages: list[Message], active: set[str] | None, expected: list[object]) -> None:
    assert rows([user("first"), *messages], active)[1:] == expected


def test_blocks_that_were_shown_of_a_run_are_never_removed() -> None:
    """Parallel calls in messages of their own: results are put behind their calls, before what came in between."""
    states: list[tuple[list[Message], Collection[str] | None]] = [
        ([user()], set()),
        ([user(), says("a", "One"), says("c", None, "c1")], {"a", "c1"}),
        ([user(), says("a", "One"), says("c", None, "c1"), says("d", None, "c2")], set()),
        ([user(), says("a", "One"), says("c", None, "c1"), result("c1"), says("d", None, "c2")], set()),
        ([user(), says("a", "One"), says("c", None, "c1"), result("c1"), says("d", None, "c2"), result("c2")], None),
    ]
    before: list[list[object]] = []
    for messages, active in states:
        blocks = [list(it.content) for it in session_messages(messages, FACTS, 0.0, active)]
        assert len(blocks) >= len(before)
        assert all(now[: len(then)] == then for then, now in zip(before, blocks, strict=False))
        before = [list[object](it) for it in blocks]


@pytest.mark.parametrize(("code", "status"), [("MODEL_ERROR", "failed"), (CANCELLED, "cancelled")])
def test_an_error_ends_the_answer_that_it_broke_off(code: str, status: str) -> None:
    failures = {"a": TurnFailure(code=code, message="No.")}
    assert rows([user(), says("a", "Hel"), user("u2")], failures=failures)[1:] == [
        ("assistant", status, ["Hel", "error"]),
        ("user", "completed", ["Hello"]),
    ]


def block_of(message: Message) -> dict[str, object]:
    return session_messages([user(), says("a", None, "c1"), message], FACTS, 0.0)[-1].content[0]


def test_a_failed_result_says_so() -> None:
    of_the_server = block_of(result("c1", "No.", metadata={"failed": True, "durationMs": 7}))
    assert [of_the_server[name] for name in ("status", "raw_response", "runtime_ms")] == ["error", {"error": "No."}, 7]
    declined = MessageFacts(status="declined", runtime_ms=3).metadata()
    of_the_client = block_of(result("c1", "{}", error="No.", metadata=declined))
    assert [of_the_client[name] for name in ("status", "raw_response", "runtime_ms")] == ["declined", {}, 3]
