"""Script of the models of all three frameworks. Servers with one framework and no test tools import it.

The last user message says it: ``say TEXT``, ``count`` (the user's messages that the model is shown), ``use TOOL``,
``call TOOL JSON``, ``fail``, ``fail late``, ``wait NAME`` (one word, then silence), ``waited NAME`` (once that has been
cut off), ``release NAME`` (ends the silence, and says whether somebody still listens) and ``meet TEXT`` (once another
run has come that far). After a tool's result it says the result.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

SECONDS = 120.0
ARGUMENTS = '{"sides": 6}'
CUT_OFF: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
RELEASED: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
MEETING = asyncio.Barrier(2)


@dataclass(frozen=True)
class Use:
    tool: str
    arguments: str


async def answer(said: Sequence[str], result: str | None) -> AsyncIterator[str | Use]:
    """Output of the model: words, or one call. ``said`` are the messages of the user, oldest first."""
    command, _, text = said[-1].partition(" ")
    if result is not None:
        yield f"result: {result}"
    elif command in {"use", "call"}:
        tool, _, arguments = text.partition(" ")
        yield Use(tool, arguments or ARGUMENTS)
    elif command == "count":
        yield f"{len(said)} messages"
    elif command == "fail":
        if text == "late":
            yield "so far so good"
        raise RuntimeError("secret")
    elif command in {"wait", "waited", "release"}:
        async for word in silence(command, text):
            yield word
    else:
        if command == "meet":
            async with asyncio.timeout(SECONDS):
                await MEETING.wait()
        for word in text.split():
            yield word


async def silence(command: str, name: str) -> AsyncIterator[str]:
    if command == "wait":
        try:
            yield "waiting"
            await RELEASED[name].wait()
        finally:
            CUT_OFF[name].set()
    elif command == "waited":
        async with asyncio.timeout(SECONDS):
            await CUT_OFF[name].wait()
        yield "it was cut off"
    else:
        yield "it was cut off" if CUT_OFF[name].is_set() else "it goes on"
        RELEASED[name].set()
