"""An agent for tests of the terminal: the first word of the message names the function that answers it."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from ag_ui import core as ag

from agui_container import RunContext

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

Items = AsyncGenerator[object, None]


@dataclass(frozen=True)
class TerminalMessage:
    argument: str
    input: ag.RunAgentInput
    ctx: RunContext


async def agent(input: ag.RunAgentInput, ctx: RunContext) -> Items:
    if input.resume:
        yield f"The answer is {input.resume[0].payload}."
        return
    command, _, argument = text_of(input).partition(" ")
    async with aclosing(COMMANDS.get(command, describe)(TerminalMessage(argument, input, ctx))) as items:
        async for item in items:
            yield item


def text_of(run_input: ag.RunAgentInput) -> str:
    message = run_input.messages[-1]
    assert isinstance(message, ag.UserMessage)
    if isinstance(message.content, str):
        return message.content
    return next(part.text for part in message.content if part.type == "text")


async def stream(_: TerminalMessage) -> Items:
    for number in count():
        yield f"Paragraph {number} {WIDE}\n\n"
        await asyncio.sleep(PAUSE_SECONDS)


async def write_control_characters(_: TerminalMessage) -> Items:
    yield "before \x1b[2J\x1b]0;title\x07 after"


async def count_lines(message: TerminalMessage) -> Items:
    yield f"I have {len(message.argument.splitlines())} lines."


async def list_parts(message: TerminalMessage) -> Items:
    content = message.input.messages[-1].content
    yield f"I have {[part.type for part in content] if isinstance(content, list) else content}."


async def describe(message: TerminalMessage) -> Items:
    given = message.input
    yield f"{len(given.messages)} messages, state {given.state}, props {given.forwarded_props}."


async def wait(_: TerminalMessage) -> Items:
    yield "I wait."
    await asyncio.Event().wait()


async def wait_for_file(message: TerminalMessage) -> Items:
    yield "I go on."
    ending = Path(message.argument)
    while not ending.exists():  # noqa: ASYNC110, ASYNC240 - the test in another process makes the file
        await asyncio.sleep(PAUSE_SECONDS)


async def fail(message: TerminalMessage) -> Items:
    print("a line of the agent")  # noqa: T201 - the standard output is not for it
    if message.argument:
        raise RuntimeError(message.argument)
    yield "Name a reason."


async def ask_for_paint(message: TerminalMessage) -> Items:
    ctx = message.ctx
    question = ag.Interrupt(id=ctx.new_id(), reason="choice", message="Which paint?", response_schema=SCHEMA)
    outcome = ag.RunFinishedInterruptOutcome(interrupts=[question])
    yield ag.RunFinishedEvent(thread_id=ctx.thread_id, run_id=ctx.run_id, outcome=outcome)


async def reason(_: TerminalMessage) -> Items:
    yield ag.ReasoningMessageStartEvent(message_id="r", role="reasoning")
    yield ag.ReasoningMessageContentEvent(message_id="r", delta="Six times seven is a known number.")
    yield ag.ReasoningMessageEndEvent(message_id="r")
    yield "42"


async def delegate(_: TerminalMessage) -> Items:
    yield ag.SubagentStartedEvent(subagent_run_id="s", name="painter", description="paints")
    yield ag.TextMessageStartEvent(message_id="m", role="assistant", subagent_run_id="s")
    yield ag.TextMessageContentEvent(message_id="m", delta="I paint.", subagent_run_id="s")
    yield ag.TextMessageEndEvent(message_id="m", subagent_run_id="s")
    yield ag.SubagentFinishedEvent(subagent_run_id="s")
    yield "It is painted."


COMMANDS: dict[str, Callable[[TerminalMessage], Items]] = {
    "stream": stream,
    "wait": wait,
    "until": wait_for_file,
    "fail": fail,
    "form": ask_for_paint,
    "reason": reason,
    "subagent": delegate,
    "escape": write_control_characters,
    "lines": count_lines,
    "parts": list_parts,
}
