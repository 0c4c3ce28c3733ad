"""An agent for tests of the terminal: the first word of the message says what it does."""

import asyncio
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path

from ag_ui.core import (
    Interrupt,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    RunAgentInput,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    SubagentFinishedEvent,
    SubagentStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    UserMessage,
)

from agui_container import RunContext

PARAGRAPHS = 30
PAUSE_SECONDS = 0.02
WIDE = "is wider than a small terminal and much smaller than a large one, because it has more than eighty columns."
SCHEMA = {
    "type": "object",
    "properties": {
        "colour": {"type": "string", "enum": ["red", "blue"]},
        "coats": {"type": "integer", "maximum": 3},
        "glossy": {"type": "boolean"},
    },
    "required": ["colour", "coats"],
}


async def agent(input: RunAgentInput, ctx: RunContext) -> AsyncIterator[object]:  # noqa: C901, PLR0912 - a case for each word
    """Do what the message says."""
    if input.resume:
        yield f"The answer is {input.resume[0].payload}."
        return
    command, _, argument = text_of(input).partition(" ")
    match command:
        case "paragraphs":
            for number in range(PARAGRAPHS):
                yield f"Paragraph **{number}** of the answer.\n\n"
                await asyncio.sleep(0)
        case "stream":
            for number in count():
                yield f"Paragraph {number} {WIDE}\n\n"
                await asyncio.sleep(PAUSE_SECONDS)
        case "deltas":
            for number in range(int(argument)):
                yield f"{number} "
                if number % 100 == 0:
                    await asyncio.sleep(0)
        case "wait":
            yield "I wait."
            await asyncio.Event().wait()
        case "until":
            yield "I go on."
            ending = Path(argument)
            while not ending.exists():  # noqa: ASYNC110, ASYNC240 - the test in another process makes the file
                await asyncio.sleep(PAUSE_SECONDS)
        case "fail":
            raise RuntimeError(argument)
        case "form":
            question = Interrupt(id=ctx.new_id(), reason="choice", message="Which paint?", response_schema=SCHEMA)
            yield RunFinishedEvent(
                thread_id=ctx.thread_id,
                run_id=ctx.run_id,
                outcome=RunFinishedInterruptOutcome(interrupts=[question]),
            )
        case "reason":
            yield ReasoningMessageStartEvent(message_id="r", role="reasoning")
            yield ReasoningMessageContentEvent(message_id="r", delta="Six times seven is a known number.")
            yield ReasoningMessageEndEvent(message_id="r")
            yield "42"
        case "subagent":
            yield SubagentStartedEvent(subagent_run_id="s", name="painter", description="paints")
            yield TextMessageStartEvent(message_id="m", role="assistant", subagent_run_id="s")
            yield TextMessageContentEvent(message_id="m", delta="I paint.", subagent_run_id="s")
            yield TextMessageEndEvent(message_id="m", subagent_run_id="s")
            yield SubagentFinishedEvent(subagent_run_id="s")
            yield "It is painted."
        case "escape":
            yield "before \x1b[2J\x1b]0;title\x07 after"
        case "lines":
            yield f"I have {len(argument.splitlines())} lines."
        case "parts":
            content = input.messages[-1].content
            yield f"I have {[part.type for part in content] if isinstance(content, list) else content}."
        case _:
            yield f"{len(input.messages)} messages, state {input.state}, props {input.forwarded_props}."


def text_of(run_input: RunAgentInput) -> str:
    """Return the text of the last message."""
    message = run_input.messages[-1]
    assert isinstance(message, UserMessage)
    if isinstance(message.content, str):
        return message.content
    return next(part.text for part in message.content if part.type == "text")
