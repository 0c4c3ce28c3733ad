"""The offline model does what docs/models.md says, the same way every time."""

import asyncio
import json
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest
from ag_ui.core import (
    AssistantMessage,
    DataSource,
    FunctionCall,
    ImagePart,
    Message,
    TextPart,
    TokenUsage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from ag_ui.core import Tool as ToolSpec

from agui_container.models import offline
from agui_container.models.offline import (
    HELP,
    MAX_DELTAS,
    MAX_SECONDS,
    MESSAGE_COST,
    CallTool,
    OfflineModel,
    Repeat,
    Wait,
    make_plan,
)
from agui_container.ports import Delta, Prompt, TextDelta, ToolCallDelta, UsageDelta
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.runtime.offload import LARGE_BYTES
from tests.contexts import run_input

BUILTIN = ("calculate", "current_time")
NEWLINES = "\n" * LARGE_BYTES


@dataclass
class LinePattern:
    """A pattern that counts its matches, and cannot search."""

    pattern: re.Pattern[str]
    matches: int = 0

    def match(self, text: str, at: int) -> re.Match[str] | None:
        self.matches += 1
        return self.pattern.match(text, at)


def spec(name: str) -> ToolSpec:
    return ToolSpec(name=name, description=name)


async def deltas(*said: str | Message, tools: Sequence[str] = BUILTIN, system: str = "") -> list[Delta]:
    prompt = Prompt(system, run_input(*said).messages, [spec(name) for name in tools])
    return [delta async for delta in OfflineModel().stream(prompt)]


def text(pieces: Sequence[Delta]) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, TextDelta))


def calls(pieces: Sequence[Delta]) -> list[tuple[str, str]]:
    """Put the calls together again: name and arguments in the order of their indexes."""
    grown: dict[int, tuple[str, str]] = {}
    for piece in pieces:
        if isinstance(piece, ToolCallDelta):
            name, arguments = grown.get(piece.index, (piece.name or "", ""))
            grown[piece.index] = (name, arguments + piece.arguments)
    return [grown[index] for index in sorted(grown)]


def usage(pieces: Sequence[Delta]) -> TokenUsage:
    last = pieces[-1]
    assert isinstance(last, UsageDelta)
    return last.usage


def called(*names: str) -> AssistantMessage:
    made = [ToolCall(id=f"call-{name}", function=FunctionCall(name=name, arguments="{}")) for name in names]
    return AssistantMessage(id="assistant", tool_calls=made)


def result(name: str, content: str, error: str | None = None) -> ToolMessage:
    return ToolMessage(id=f"result-{name}", tool_call_id=f"call-{name}", content=content, error=error)


# --- commands: stream, think, wait, fail ----------------------------------------------------------------------------


@pytest.mark.parametrize("said", ["stream 3", "  STREAM \t 3\n", "Stream\n3"])
async def test_stream_n_gives_n_text_deltas(said: str) -> None:
    assert (await deltas(said))[:-1] == [TextDelta("hello world, ")] * 3


@pytest.mark.parametrize("digits", ["1000001", "9" * 10_000])
def test_stream_n_has_a_cap(digits: str) -> None:
    assert make_plan(run_input(f"stream {digits}").messages, ()) == (Repeat("hello world, ", MAX_DELTAS),)


async def test_think_needs_no_topic() -> None:
    assert text(await deltas("think …")) == "I have thought about it."


async def test_wait_sleeps_that_long(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    await deltas("WAIT 2.5 s")
    assert slept == [2.5]


def test_wait_has_a_cap() -> None:
    assert make_plan(run_input("wait 99999").messages, ())[1] == Wait(MAX_SECONDS)


async def test_fail_raises_after_the_first_delta() -> None:
    pieces: list[Delta] = []
    stream = OfflineModel().stream(Prompt("", run_input("Fail!").messages))
    pieces.append(await anext(stream))
    with pytest.raises(AppError, match=r"^The model failed\.$") as caught:
        pieces.append(await anext(stream))
    assert caught.value.code is ErrorCode.MODEL_ERROR
    assert [type(piece) for piece in pieces] == [TextDelta]


# --- calls ----------------------------------------------------------------------------------------------------------


async def test_call_passes_the_json_in_fragments() -> None:
    pieces = await deltas('CALL add {"a": 1, "b": 2}')
    fragments = [piece for piece in pieces if isinstance(piece, ToolCallDelta)]
    assert len(fragments) >= 2
    assert [fragment.name for fragment in fragments] == ["add", None]
    assert calls(pieces) == [("add", '{"a": 1, "b": 2}')]


async def test_call_without_json_passes_an_empty_object() -> None:
    assert calls(await deltas("call ping")) == [("ping", "{}")]


async def test_call_passes_on_what_is_not_json() -> None:
    assert calls(await deltas("call add {oops")) == [("add", "{oops")]


async def test_json_may_run_over_several_lines() -> None:
    ((name, arguments),) = calls(await deltas('call add {\n  "a": 1,\n  "b": 2\n}'))
    assert (name, json.loads(arguments)) == ("add", {"a": 1, "b": 2})


async def test_call_names_its_tool_on_the_same_line() -> None:
    assert text(await deltas("call\nadd")) == HELP
    assert calls(await deltas("call a\ncall\nb")) == [("a", "call\nb")]


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


@pytest.mark.parametrize(("said", "name"), [("what time is it", "current_time"), ("calculate 1", "calculate")])
async def test_questions_say_when_the_builtin_tool_is_missing(said: str, name: str) -> None:
    pieces = await deltas(said, tools=())
    assert text(pieces) == f"The tool {name} is not available here."
    assert calls(pieces) == []


@pytest.mark.parametrize(
    ("said", "names"),
    [
        ("achieve the goals: achieve_a", ["achieve_a"]),
        ("Achieve the goals: achieve_a, achieve_b. Call each of these tools.", ["achieve_a", "achieve_b"]),
    ],
)
async def test_goals_are_achieved_without_data(said: str, names: list[str]) -> None:
    assert calls(await deltas(said)) == [(name, "{}") for name in names]


# --- results --------------------------------------------------------------------------------------------------------


async def test_all_trailing_results_are_said_and_errors_as_errors() -> None:
    failed = {"failed": True}
    said = await deltas(
        "call a\ncall b\ncall c\ncall d\ncall e\ncall f",
        called("a", "b", "c", "d", "e", "f"),
        result("a", "1"),
        result("b", "Error: division by zero.").model_copy(update={"metadata": failed}),
        result("c", "", error="denied"),
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


async def test_a_result_of_an_unknown_call_is_said_too() -> None:
    assert text(await deltas("call a", result("a", "1"))) == "The result of the tool is 1."


async def test_results_before_the_last_user_message_are_not_said_again() -> None:
    assert text(await deltas("call a", called("a"), result("a", "1"), "stream 1")) == "hello world, "


# --- anything else --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("said", ["hello", "", "stream", "stream x", "streaming 3", "failure", "thinking", "calculate"])
async def test_anything_else_is_answered_with_what_can_be_tried(said: str) -> None:
    pieces = await deltas(said)
    assert text(pieces) == HELP
    assert len(pieces) > 2


async def test_a_conversation_without_a_user_is_answered_too() -> None:
    assert text(await deltas(AssistantMessage(id="a", content="Hi"))) == HELP


def test_everything_that_can_be_tried_does_something() -> None:
    for example in HELP.split("`")[1::2]:
        assert make_plan(run_input(example).messages, BUILTIN) != make_plan(run_input("hello").messages, BUILTIN)


async def test_the_text_of_content_parts_is_read() -> None:
    picture = ImagePart(source=DataSource(value="AAAA", mime_type="image/png"))
    parts = [TextPart(text="call a"), picture, TextPart(text="call b")]
    assert calls(await deltas(UserMessage(id="user", content=parts))) == [("a", "{}"), ("b", "{}")]


async def test_the_same_prompt_gives_the_same_deltas() -> None:
    assert await deltas("think about rain") == await deltas("think about rain")


@pytest.mark.parametrize(
    "start", ["", "call", "calculate", "stream", "wait", "what time is it in", "think", "achieve the goals:"]
)
@pytest.mark.parametrize("filler", [" ", "\n", "9", "?", "call ", ", .", "."])
def test_no_message_takes_long_to_read(start: str, filler: str) -> None:
    # 200 kB: linear patterns need milliseconds, a quadratic one would need minutes.
    assert make_plan(run_input(f"{start}x{filler * 200_000}x").messages, BUILTIN)
    assert make_plan(run_input(f"{start} {filler * 200_000}\x00").messages, BUILTIN)


@pytest.mark.parametrize(
    "said",
    [("\n" * 5_000_000,), (f"call a{NEWLINES}x",), ("hello",) * (LARGE_BYTES // MESSAGE_COST)],
    ids=["newlines", "lines after a call", "messages"],
)
async def test_a_large_prompt_is_read_and_counted_in_a_thread(
    said: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    readers: list[tuple[str, threading.Thread]] = []

    def record(name: str, function: Callable[..., object]) -> Callable[..., object]:
        def recorded(*args: object) -> object:
            readers.append((name, threading.current_thread()))
            return function(*args)

        return recorded

    for name in ("make_plan", "usage_of"):
        monkeypatch.setattr(offline, name, record(name, getattr(offline, name)))
    await deltas(*said)
    assert [name for name, _ in readers] == ["make_plan", "usage_of"]
    assert threading.main_thread() not in {thread for _, thread in readers}


def test_lines_after_a_call_are_matched_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    # One search over all lines would hold the interpreter lock, and so the event loop, even from a thread.
    lines = LinePattern(offline.CALL_LINE)
    monkeypatch.setattr(offline, "CALL_LINE", lines)
    plan = make_plan(run_input(f"call a{NEWLINES}call b").messages, BUILTIN)
    assert plan == (CallTool("a"), CallTool("b"))
    assert lines.matches == len(NEWLINES) + 1


@pytest.mark.parametrize("said", ["\n" * 5_000_000, NEWLINES, f"call a{NEWLINES}x"])
async def test_the_answer_to_newlines_is_as_short_as_any(said: str) -> None:
    expected = "hello" if said.isspace() else "call a x"
    assert len(await deltas(said)) == len(await deltas(expected))


# --- usage ----------------------------------------------------------------------------------------------------------


async def test_usage_counts_words_and_comes_last() -> None:
    assert usage(await deltas("stream 10", system="Be brief.")) == TokenUsage(
        provider="offline", model="offline", input_tokens=4, output_tokens=20, total_tokens=24
    )


async def test_usage_names_reasoning_only_when_there_was_some() -> None:
    thought = usage(await deltas("think"))
    assert thought.reasoning_tokens == 12
    assert thought.output_tokens == 12 + 5
    assert usage(await deltas("hello")).reasoning_tokens is None


async def test_usage_counts_calls_and_results() -> None:
    history = ("call a", called("a"), result("a", "one two"))
    counted = usage(await deltas(*history))
    assert counted.input_tokens == 2 + 2 + 2
    assert counted.output_tokens == 7  # The result of a is one two.
    assert usage(await deltas("call a")).output_tokens == 2


@pytest.mark.parametrize("edge", [" ", "x", "\n x"])
async def test_words_of_a_prompt_of_megabytes_are_counted_as_those_of_a_short_one(edge: str) -> None:
    text = f"say {'two words ' * 9_000}{edge}{'onelongword' * 20_000} {edge}{' ' * 60_000}end"
    deltas = [delta async for delta in OfflineModel().stream(Prompt("", [UserMessage(id="u", content=text)]))]
    assert isinstance(deltas[-1], UsageDelta)
    assert deltas[-1].usage.input_tokens == len(text.split())
