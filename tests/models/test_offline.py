"""The offline model does what docs/models.md says, the same way every time."""

import json
import tracemalloc
from collections.abc import Sequence

import pytest
from ag_ui.core import (
    AssistantMessage,
    DataSource,
    FunctionCall,
    ImagePart,
    Message,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from ag_ui.core import Tool as ToolSpec

from agui_container.models.offline import HELP, OfflineModel, make_plan
from agui_container.ports import Delta, Prompt, TextDelta, ToolCallDelta
from tests.contexts import run_input

BUILTIN = ("calculate", "current_time")


def spec(name: str) -> ToolSpec:
    return ToolSpec(name=name, description=name)


async def deltas(*said: str | Message, tools: Sequence[str] = BUILTIN, system: str = "") -> list[Delta]:
    prompt = Prompt(system, run_input(*said).messages, [spec(name) for name in tools])
    return [delta async for delta in OfflineModel().stream(prompt)]


def text(pieces: Sequence[Delta]) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, TextDelta))


def calls(pieces: Sequence[Delta]) -> list[tuple[str, str]]:
    grown: dict[int, tuple[str, str]] = {}
    for piece in pieces:
        if isinstance(piece, ToolCallDelta):
            name, arguments = grown.get(piece.index, (piece.name or "", ""))
            grown[piece.index] = (name, arguments + piece.arguments)
    return [grown[index] for index in sorted(grown)]


def called(*names: str) -> AssistantMessage:
    made = [ToolCall(id=f"call-{name}", function=FunctionCall(name=name, arguments="{}")) for name in names]
    return AssistantMessage(id="assistant", tool_calls=made)


def result(name: str, content: str, error: str | None = None) -> ToolMessage:
    return ToolMessage(id=f"result-{name}", tool_call_id=f"call-{name}", content=content, error=error)


async def test_call_passes_the_json_in_fragments() -> None:
    pieces = await deltas('CALL add {"a": 1, "b": 2}')
    fragments = [piece for piece in pieces if isinstance(piece, ToolCallDelta)]
    assert len(fragments) >= 2
    assert [fragment.name for fragment in fragments] == ["add", None]
    assert calls(pieces) == [("add", '{"a": 1, "b": 2}')]


async def test_json_may_run_over_several_lines() -> None:
    ((name, arguments),) = calls(await deltas('call add {\n  "a": 1,\n  "b": 2\n}'))
    assert (name, json.loads(arguments)) == ("add", {"a": 1, "b": 2})


@pytest.mark.parametrize(
    ("said", "call"),
    [
        ("what time is it", ("current_time", "{}")),
        ("What  time is it?", ("current_time", "{}")),
        ("what time is it in Europe/Berlin?", ("current_time", '{"timezone": "Europe/Berlin"}')),
        ("calculate 2*(3+4)", ("calculate", '{"expression": "2*(3+4)"}')),
        ("Calculate 6 * 7 = ?", ("calculate", '{"expression": "6 * 7"}')),
    ],
)
async def test_questions_call_the_builtin_tools(said: str, call: tuple[str, str]) -> None:
    assert calls(await deltas(said)) == [call]


async def test_all_trailing_results_are_said_and_errors_as_errors() -> None:
    failed = {"failed": True}
    said = await deltas(
        "call a\ncall b\ncall c\ncall d\ncall e\ncall f",
        called("a", "b", "c", "d", "e", "f"),
        result("a", "1"),
        result("b", "Error: division by zero.").model_copy(update={"metadata": failed}),
        result("c", "denied", error="denied"),
        result("d", ""),
        result("e", "Error: disk full").model_copy(update={"metadata": {"failed": False}}),
        result("f", "").model_copy(update={"metadata": failed}),
    )
    expected = (
        "The result of a is 1, and the call of b failed: division by zero, "
        "and the call of c failed: denied, and the result of d is empty, "
        "and the result of e is Error: disk full, and the call of f failed: no reason was given."
    )
    assert text(said) == expected


@pytest.mark.parametrize("said", ["hello", "", "stream", "stream x", "streaming 3", "failure", "thinking", "calculate"])
async def test_anything_else_is_answered_with_what_can_be_tried(said: str) -> None:
    pieces = await deltas(said)
    assert text(pieces) == HELP
    assert len(pieces) > 2


def test_everything_that_can_be_tried_does_something() -> None:
    for example in HELP.split("`")[1::2]:
        assert make_plan(run_input(example).messages, BUILTIN) != make_plan(run_input("hello").messages, BUILTIN)


async def test_the_text_of_content_parts_is_read() -> None:
    picture = ImagePart(source=DataSource(value="AAAA", mime_type="image/png"))
    parts = [TextPart(text="call a"), picture, TextPart(text="call b")]
    assert calls(await deltas(UserMessage(id="user", content=parts))) == [("a", "{}"), ("b", "{}")]


@pytest.mark.parametrize(
    "start", ["", "call", "calculate", "stream", "wait", "what time is it in", "think", "achieve the goals:"]
)
@pytest.mark.parametrize("filler", [" ", "\n", "9", "?", "call ", ", .", "."])
def test_no_message_takes_long_to_read(start: str, filler: str) -> None:
    # 200 kB: linear patterns need milliseconds, a quadratic one would need minutes.
    assert make_plan(run_input(f"{start}x{filler * 200_000}x").messages, BUILTIN)
    assert make_plan(run_input(f"{start} {filler * 200_000}\x00").messages, BUILTIN)


@pytest.mark.parametrize(
    ("said", "words"), [("", 0), (" \n", 0), ("one", 1), ("\ttwo\n\nwörter  ", 2), ("half \ud83d of a symbol", 5)]
)
def test_a_token_is_a_word_between_white_space(said: str, words: int) -> None:
    assert OfflineModel().count(said) == words


def test_counting_the_words_of_a_long_text_makes_no_list_of_them() -> None:
    """It would hold the event loop for a tenth of a second per 8 MB."""
    said = "lorem ipsum " * 100_000
    tracemalloc.start()
    try:
        assert OfflineModel().count(said) == 200_000
        assert tracemalloc.get_traced_memory()[1] < 4 * len(said)
    finally:
        tracemalloc.stop()
