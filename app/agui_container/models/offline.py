"""The offline model: a deterministic ``Model`` that needs no account and no network.

The last user message is a command (the table is in ``offline_rules.py``), so that tools, reasoning, failures and long
streams can be tried and tested. Rule: the same prompt always gives the same deltas; nothing is random.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from typing import ParamSpec, TypeVar

from ag_ui.core import AssistantMessage, Message, TokenUsage, ToolMessage, UserMessage

from agui_container.models.offline_rules import (
    CallTool,
    Fail,
    Plan,
    Reason,
    Repeat,
    Say,
    Step,
    Wait,
    make_plan,
    text_of,
)
from agui_container.ports import Delta, Prompt, ReasoningDelta, TextDelta, ToolCallDelta, UsageDelta
from agui_container.protocol.errors import AppError, ErrorCode

NAME = "offline"
"""Name of the model and of its provider."""

LARGE_PROMPT = 100_000
"""Prompts of at least this many characters are read and counted in a thread, not on the event loop."""

MANY_MESSAGES = 500
"""Prompts of more messages are read and counted in a thread, too."""

PIECE_LENGTH = 50_000
"""Number of characters that are split into words at a time."""

P = ParamSpec("P")
T = TypeVar("T")

_WORD = re.compile(r"\S+\s*")


class OfflineModel:
    """Model that follows simple commands. Implements ``ports.Model`` and ``ports.TokenCounter``.

    Stateless: one instance serves any number of runs.
    """

    provider = name = NAME

    async def stream(self, prompt: Prompt) -> AsyncGenerator[Delta, None]:
        """Stream the plan for ``prompt`` step by step, then report the usage.

        Raises:
            AppError: ``MODEL_ERROR`` if the plan has a ``Fail`` step.
        """
        steps = await _off_loop_if_large(prompt, make_plan, prompt.messages, {tool.name for tool in prompt.tools})
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
        yield UsageDelta(await _off_loop_if_large(prompt, usage_of, prompt, steps))

    def count(self, text: str) -> int:
        """Return the number of words in ``text``, counted as in the usage."""
        return _words((text,))


def _pieces(step: Say | Reason | CallTool, index: int) -> Iterator[Delta]:
    if isinstance(step, Say):
        return (TextDelta(word[0]) for word in _WORD.finditer(step.text))
    if isinstance(step, Reason):
        return (ReasoningDelta(word[0]) for word in _WORD.finditer(step.text))
    half = len(step.arguments) // 2
    first = ToolCallDelta(index, step.arguments[:half], name=step.name)
    return iter((first, ToolCallDelta(index, step.arguments[half:])))


async def _off_loop_if_large(prompt: Prompt, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function, in a thread if the prompt is so large that the call would block the event loop."""
    is_large = (
        len(prompt.messages) > MANY_MESSAGES
        or sum(len(text) for message in prompt.messages for text in _texts(message)) >= LARGE_PROMPT
    )
    return await asyncio.to_thread(work, *args, **kwargs) if is_large else work(*args, **kwargs)


def usage_of(prompt: Prompt, steps: Plan) -> TokenUsage:
    """Return the usage of a call, with one token per word. Words are separated by white space.

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
    return sum(count_words(text) for text in texts)


def count_words(text: str) -> int:
    """Return the number of words in ``text``.

    The text is split in pieces, because one long split would hold the interpreter lock and block the event loop.
    """
    words, in_word = 0, False
    for start in range(0, len(text), PIECE_LENGTH):
        piece = text[start : start + PIECE_LENGTH]
        words += len(piece.split()) - (in_word and not piece[0].isspace())
        in_word = not piece[-1].isspace()
    return words


def _texts(message: Message) -> tuple[str, ...]:
    if isinstance(message, AssistantMessage):
        calls = (f"{call.function.name} {call.function.arguments}" for call in message.tool_calls or ())
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
