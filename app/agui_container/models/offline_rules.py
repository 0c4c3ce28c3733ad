"""What the offline model does for a message: a table from what was said to a plan of steps.

Rule: pure. The same prompt gives the same plan; nothing here waits, fails or knows how a step is streamed. A new thing
to say is one row in ``RULES``. Patterns stay linear on any input: they see text of up to 10 MB.
"""

import json
import re
from collections.abc import Callable, Collection, Sequence

from ag_ui.core import AssistantMessage, ContentPart, Message, TextPart, ToolMessage, UserMessage
from msgspec import Struct

from agui_container.protocol.conversation.tool_results import has_failed

MAX_DELTAS = 400_000
MAX_SECONDS = 3600.0
GREETING = "hello world, "


class Say(Struct, frozen=True):
    """Text, streamed word by word."""

    text: str


class Reason(Struct, frozen=True):
    """Reasoning, streamed word by word."""

    text: str


class Repeat(Struct, frozen=True):
    """The same text delta ``times`` times: the benchmark path."""

    text: str
    times: int


class CallTool(Struct, frozen=True):
    """One tool call; ``arguments`` is JSON text, or whatever the user wrote in its place."""

    name: str
    arguments: str = "{}"


class Wait(Struct, frozen=True):
    """Silence."""

    seconds: float


class Fail(Struct, frozen=True):
    """The model breaks down."""


Step = Say | Reason | Repeat | CallTool | Wait | Fail
Plan = tuple[Step, ...]
Tools = Collection[str]
"""Names of the tools that the prompt offers."""


def make_plan(messages: Sequence[Message], tools: Tools) -> Plan:
    """Say the results of the tools if they come last, or else do what the last user message asks for."""
    results = trailing_results(messages)
    if results:
        return (Say(describe_results(messages, results)),)
    said = last_user_text(messages)
    for rule in RULES:
        found = rule.pattern.fullmatch(said)
        if found:
            return rule.plan(found, tools)
    return (Say(HELP),)


def text_of(content: str | Sequence[ContentPart] | None) -> str:
    """The text of a message's content; the other parts are not read."""
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(part.text for part in content if isinstance(part, TextPart))


def last_user_text(messages: Sequence[Message]) -> str:
    """What the user said last, trimmed; empty when no user has spoken."""
    spoken = (text_of(message.content) for message in reversed(messages) if isinstance(message, UserMessage))
    return next(spoken, "").strip()


# --- after tool results ---------------------------------------------------------------------------------------------


def trailing_results(messages: Sequence[Message]) -> list[ToolMessage]:
    """The tool messages that end the conversation, in order."""
    results: list[ToolMessage] = []
    for message in reversed(messages):
        if not isinstance(message, ToolMessage):
            break
        results.append(message)
    return results[::-1]


def describe_results(messages: Sequence[Message], results: Sequence[ToolMessage]) -> str:
    """All results as one sentence; errors are said as errors."""
    names = {
        call.id: call.function.name
        for message in messages
        if isinstance(message, AssistantMessage)
        for call in message.tool_calls or ()
    }
    sentence = ", and ".join(_describe_result(names.get(result.tool_call_id, "the tool"), result) for result in results)
    return sentence[0].upper() + sentence[1:] + "."


def _describe_result(name: str, result: ToolMessage) -> str:
    content = text_of(result.content).strip()
    if has_failed(result):
        error = (result.error or content).removeprefix("Error:").strip().rstrip(".")
        return f"the call of {name} failed: {error or 'no reason was given'}"
    return f"the result of {name} is {content.rstrip('.') or 'empty'}"


# --- the table ------------------------------------------------------------------------------------------------------


def _stream(found: re.Match[str], _: Tools) -> Plan:
    # Nine digits are enough to see that a number is above the cap, and int() refuses very long ones.
    return (Repeat(GREETING, min(int(found[1][:9]), MAX_DELTAS)),)


def _think(found: re.Match[str], _: Tools) -> Plan:
    topic = found[1].strip(" \t\r\n.?!…") or "about it"
    return Reason(f"I am asked to think {topic}. I will keep it short."), Say(f"I have thought {topic}.")


def _wait(found: re.Match[str], _: Tools) -> Plan:
    seconds = min(float(found[1]), MAX_SECONDS)
    return Repeat(f"Waiting {seconds:g} s. ", 1), Wait(seconds), Repeat("Done.", 1)


def _fail(_: re.Match[str], __: Tools) -> Plan:
    return Repeat("About to fail. ", 1), Fail()


def _time(found: re.Match[str], tools: Tools) -> Plan:
    return _builtin("current_time", {"timezone": found[1]} if found[1] else {}, tools)


def _calculate(found: re.Match[str], tools: Tools) -> Plan:
    return _builtin("calculate", {"expression": found[1].rstrip(" \t\r\n=?")}, tools)


def _delegate(found: re.Match[str], tools: Tools) -> Plan:
    return _builtin("delegate", {"task": found[1].strip()}, tools)


def _achieve(found: re.Match[str], _: Tools) -> Plan:
    return tuple(CallTool(name) for name in found[1].replace(",", " ").split())


def _builtin(name: str, arguments: dict[str, str], tools: Tools) -> Plan:
    if name not in tools:
        return (Say(f"The tool {name} is not available here."),)
    return (CallTool(name, json.dumps(arguments)),)


def _calls(found: re.Match[str], _: Tools) -> Plan:
    """Each line that begins with ``call`` is a call; other lines belong to the arguments of the call before them."""
    parts: list[tuple[str, list[str]]] = []
    for line in found[0].split("\n"):
        call = CALL.match(line)
        if call:
            parts.append((call[1], [call[2]]))
        else:
            parts[-1][1].append(line)
    return tuple(CallTool(name, "\n".join(lines).strip() or "{}") for name, lines in parts)


class Rule(Struct, frozen=True):
    """If the whole message matches ``pattern``, do ``plan``. ``example`` is shown to who does not know what to say."""

    example: str
    pattern: re.Pattern[str]
    plan: Callable[[re.Match[str], Tools], Plan]


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE | re.DOTALL)


CALL = _pattern(r"\s*call[^\S\n]+(\S+)(.*)")
RULES = (
    Rule("stream 5", _pattern(r"stream\s+(\d+)"), _stream),
    Rule("think about rain", _pattern(r"think\b(.*)"), _think),
    Rule("what time is it", _pattern(r"what\s+time\s+is\s+it(?:\s+in\s+([^\s?.!]+))?\s*[?.!]*"), _time),
    Rule("calculate 2*(3+4)", _pattern(r"calculate\s+(.+)"), _calculate),
    Rule('call calculate {"expression": "6*7"}', CALL, _calls),
    Rule("delegate calculate 6*7", _pattern(r"delegate\s+(.+)"), _delegate),
    Rule("achieve the goals: achieve_x", _pattern(r"achieve\s+the\s+goals:\s*([^\s.,][^.]*)(?:\..*)?"), _achieve),
    Rule("wait 2", _pattern(r"wait\s+(\d+(?:\.\d+)?)\s*s?"), _wait),
    Rule("fail", _pattern(r"fail\s*[.!]?"), _fail),
)
HELP = "I am the offline model: I follow simple commands and need no network. Try: " + ", ".join(
    f"“{rule.example}”" for rule in RULES
)
