"""The offline model: a deterministic ``Model`` that needs no account and no network.

The last user message is a command, so that tools, reasoning, failures and long streams can be tried and tested. The
table ``RULES`` maps the message to a plan of steps, and the model streams the plan. A new command is one row.

Rule: the same prompt always gives the same deltas; nothing is random. Making a plan is pure. Patterns take linear time
on any input.
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Iterator, Sequence

from ag_ui.core import AssistantMessage, ContentPart, Message, TextPart, TokenUsage, ToolMessage, UserMessage
from msgspec import Struct

from agui_container.ports import Delta, Prompt, ReasoningDelta, TextDelta, ToolCallDelta, UsageDelta
from agui_container.ports.tool import for_models
from agui_container.protocol.errors import AppError, ErrorCode
from agui_core.transcript import has_failed
from agui_core.turns import calls_of

MAX_DELTAS = 400_000
MAX_SECONDS = 3600.0
GREETING = "hello world, "


class Say(Struct, frozen=True):
    text: str


class Reason(Struct, frozen=True):
    text: str


class Repeat(Struct, frozen=True):
    """The same text delta ``times`` times: the benchmark path."""

    text: str
    times: int


class CallTool(Struct, frozen=True):
    """One tool call. ``arguments`` is the text that the user wrote, which is not always JSON."""

    name: str
    arguments: str = "{}"


class Wait(Struct, frozen=True):
    seconds: float


class Fail(Struct, frozen=True):
    """A failure of the model."""


Step = Say | Reason | Repeat | CallTool | Wait | Fail
Plan = tuple[Step, ...]
Tools = Collection[str]
"""Names of the tools that the prompt offers."""


def make_plan(messages: Sequence[Message], tools: Tools) -> Plan:
    """Return the plan for a prompt: report trailing tool results, or follow the last user message."""
    results = trailing_results(messages)
    if results:
        return (Say(describe_results(messages, results)),)
    text = last_user_text(messages)
    for rule in RULES:
        match = rule.pattern.fullmatch(text)
        if match:
            return rule.plan(match, tools)
    return (Say(HELP),)


def text_of(content: str | Sequence[ContentPart] | None) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(part.text for part in content if isinstance(part, TextPart))


def last_user_text(messages: Sequence[Message]) -> str:
    texts = (text_of(message.content) for message in reversed(messages) if isinstance(message, UserMessage))
    return next(texts, "").strip()


# --- after tool results ---------------------------------------------------------------------------------------------


def trailing_results(messages: Sequence[Message]) -> list[ToolMessage]:
    results: list[ToolMessage] = []
    for message in reversed(messages):
        if not isinstance(message, ToolMessage):
            break
        results.append(message)
    return results[::-1]


def describe_results(messages: Sequence[Message], results: Sequence[ToolMessage]) -> str:
    names = {call.id: call.function.name for message in messages for call in calls_of(message)}
    sentence = ", and ".join(_describe_result(names.get(result.tool_call_id, "the tool"), result) for result in results)
    return sentence[0].upper() + sentence[1:] + "."


def _describe_result(name: str, result: ToolMessage) -> str:
    content = text_of(for_models(result.content)).strip()
    if has_failed(result):
        error = content.removeprefix("Error:").strip().rstrip(".")
        return f"the call of {name} failed: {error or 'no reason was given'}"
    return f"the result of {name} is {content.rstrip('.') or 'empty'}"


# --- the table ------------------------------------------------------------------------------------------------------


def _stream(match: re.Match[str], _: Tools) -> Plan:
    # Nine digits suffice to exceed the cap, and int() refuses very long numbers.
    return (Repeat(GREETING, min(int(match[1][:9]), MAX_DELTAS)),)


def _think(match: re.Match[str], _: Tools) -> Plan:
    topic = match[1].strip(" \t\r\n.?!…") or "about it"
    return Reason(f"I am asked to think {topic}. I will keep it short."), Say(f"I have thought {topic}.")


def _wait(match: re.Match[str], _: Tools) -> Plan:
    seconds = min(float(match[1]), MAX_SECONDS)
    return Repeat(f"Waiting {seconds:g} s. ", 1), Wait(seconds), Repeat("Done.", 1)


def _fail(_: re.Match[str], __: Tools) -> Plan:
    return Repeat("About to fail. ", 1), Fail()


def _time(match: re.Match[str], tools: Tools) -> Plan:
    return _builtin("current_time", {"timezone": match[1]} if match[1] else {}, tools)


def _calculate(match: re.Match[str], tools: Tools) -> Plan:
    return _builtin("calculate", {"expression": match[1].rstrip(" \t\r\n=?")}, tools)


def _delegate(match: re.Match[str], tools: Tools) -> Plan:
    return _builtin("delegate", {"task": match[1].strip()}, tools)


def _achieve(match: re.Match[str], _: Tools) -> Plan:
    return tuple(CallTool(name) for name in match[1].replace(",", " ").split())


def _builtin(name: str, arguments: dict[str, str], tools: Tools) -> Plan:
    if name not in tools:
        return (Say(f"The tool {name} is not available here."),)
    return (CallTool(name, json.dumps(arguments)),)


def _calls(match: re.Match[str], _: Tools) -> Plan:
    """Plan one call per line that begins with ``call``. Other lines continue the arguments of the call before them."""
    text, begins = match[0], list(CALL_LINE.finditer(match[0]))
    ends = [begin.start() for begin in begins[1:]] + [len(text)]
    return tuple(
        CallTool(begin[1], text[begin.end() : end].strip() or "{}") for begin, end in zip(begins, ends, strict=True)
    )


class Rule(Struct, frozen=True):
    """A command. If the whole message matches ``pattern``, ``plan`` makes the steps. ``HELP`` lists ``example``.

    A message of the server, such as that about pending goals, has no example.
    """

    example: str
    pattern: re.Pattern[str]
    plan: Callable[[re.Match[str], Tools], Plan]


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE | re.DOTALL)


CALL_LINE = _pattern(r"(?m:^)[^\S\n]*call[^\S\n]+(\S+)")
CALL = _pattern(r"\s*call[^\S\n]+(\S+)(.*)")
RULES = (
    Rule("stream 5", _pattern(r"stream\s+(\d+)"), _stream),
    Rule("think about rain", _pattern(r"think\b(.*)"), _think),
    Rule("what time is it", _pattern(r"what\s+time\s+is\s+it(?:\s+in\s+([^\s?.!]+))?\s*[?.!]*"), _time),
    Rule("calculate 2*(3+4)", _pattern(r"calculate\s+(.+)"), _calculate),
    Rule('call calculate {"expression": "6*7"}', CALL, _calls),
    Rule("delegate calculate 6*7", _pattern(r"delegate\s+(.+)"), _delegate),
    Rule("", _pattern(r"achieve\s+the\s+goals:\s*([^\s.,][^.]*)(?:\..*)?"), _achieve),
    Rule("wait 2", _pattern(r"wait\s+(\d+(?:\.\d+)?)\s*s?"), _wait),
    Rule("fail", _pattern(r"fail\s*[.!]?"), _fail),
)
HELP = "I am the offline model: I follow simple commands and need no network. Try: " + ", ".join(
    f"`{rule.example}`" for rule in RULES if rule.example
)


NAME = "offline"
"""Name of the model and of its provider."""

_WORD = re.compile(r"\S+\s*")

_BLANK_OR_X = bytes(ord(" ") if bytes([byte]).isspace() else ord("x") for byte in range(256))
"""Table that makes a blank of ASCII white space, and an x of every other byte."""


class OfflineModel:
    """Model that follows simple commands. Implements ``ports.Model``, ``TokenCounter`` and ``ContextWindowed``.

    Stateless: one instance serves any number of runs.
    """

    provider = name = NAME
    context_window: int | None = None
    """No limit: the model takes a prompt of any length."""

    async def stream(self, prompt: Prompt) -> AsyncGenerator[Delta, None]:
        steps = make_plan(prompt.messages, {tool.name for tool in prompt.tools})
        calls = 0
        for step in steps:
            if isinstance(step, Repeat):
                # Inline and with one shared delta, because benchmarks use this loop. The engine yields to other tasks.
                delta = TextDelta(step.text)
                for _ in range(step.times):
                    yield delta
            elif isinstance(step, Wait):
                await asyncio.sleep(step.seconds)
            elif isinstance(step, Fail):
                raise AppError(ErrorCode.MODEL_ERROR, "The model failed.")
            else:
                for piece in _pieces(step, calls):
                    yield piece
                calls += isinstance(step, CallTool)
        yield UsageDelta(usage_of(prompt, steps))

    def count(self, text: str) -> int:
        return _words((text,))


def _pieces(step: Say | Reason | CallTool, index: int) -> Iterator[Delta]:
    if isinstance(step, Say):
        return (TextDelta(word[0]) for word in _WORD.finditer(step.text))
    if isinstance(step, Reason):
        return (ReasoningDelta(word[0]) for word in _WORD.finditer(step.text))
    half = len(step.arguments) // 2
    first = ToolCallDelta(index, step.arguments[:half], name=step.name)
    return iter((first, ToolCallDelta(index, step.arguments[half:])))


def usage_of(prompt: Prompt, steps: Plan) -> TokenUsage:
    """Return the usage of a call, with one token per word. Words are separated by ASCII white space.

    Input is the system text and the text, calls and results of all messages. Reasoning messages and other parts are
    not counted. Output is text, reasoning, and the name and arguments of calls. The total is the sum of both.
    """
    input_tokens = _words((prompt.system,)) + sum(_words(_texts(message)) for message in prompt.messages)
    output_tokens = sum(_output_words(step) for step in steps)
    reasoning_tokens = sum(_words((step.text,)) for step in steps if isinstance(step, Reason))
    return TokenUsage(
        provider=NAME,
        model=NAME,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        total_tokens=input_tokens + output_tokens,
        reasoning_tokens=reasoning_tokens or None,
    )


def _words(texts: Iterable[str]) -> int:
    """Count beginnings of words. A list of 8 MB of words would hold the event loop ten times as long."""
    return sum(f" {text}".encode(errors="replace").translate(_BLANK_OR_X).count(b" x") for text in texts)


def _texts(message: Message) -> tuple[str, ...]:
    if isinstance(message, AssistantMessage):
        calls = (f"{call.function.name} {call.function.arguments}" for call in calls_of(message))
        return message.content or "", *calls
    if isinstance(message, (UserMessage, ToolMessage)):
        return (text_of(message.content),)
    return ()


def _output_words(step: Step) -> int:
    if isinstance(step, (Say, Reason)):
        return _words((step.text,))
    if isinstance(step, Repeat):
        return _words((step.text,)) * step.times
    return _words((step.name, step.arguments)) if isinstance(step, CallTool) else 0
