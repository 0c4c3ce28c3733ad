"""A second caller is served while the first one sends the worst bodies.

The work that each body may make is counted elsewhere: in ``tests/protocol/test_parser.py``,
``tests/models/test_offline.py`` and ``tests/agents/test_goal_schema.py``.
"""

import asyncio
import json
from collections.abc import Callable

import pytest

from tests.engine.doubles import Json
from tests.requirements import requirement
from tests.sockets.client import HttpExchange, ask, post, request, run_input
from tests.sockets.process import ServerProcess, Servers

AT_ONCE = 3
READS = 30
ATTEMPTS = 5


def input_with_content(content: object, **fields: object) -> Json:
    """Return a run input with this content of the user message."""
    return {**run_input(""), "messages": [{"id": "m", "role": "user", "content": content}], **fields}


def goal(schema: Json) -> Json:
    """Return a run whose model calls the tool of a goal a hundred times."""
    calls = "\n".join(['call achieve_g {"a": ' + json.dumps([{"b": 1}] * 500) + "}"] * 100)
    goals = [{"type": "g", "schema": {"type": "object", "properties": {"a": schema}}}]
    return input_with_content(calls, forwardedProps={"goals": goals})


def wrong_calls() -> Json:
    """Return an assistant message with calls that have no fields."""
    message = {"id": "m", "role": "assistant", "content": "x", "toolCalls": [{}] * 33_000}
    return {**run_input(""), "messages": [message]}


def wrong_categories() -> Json:
    """Return a command with a list of wrong values."""
    command = {"type": "threads.feedback", "threadId": "t", "messageId": "m", "sentiment": "positive"}
    return {"command": {**command, "categories": [1] * 1_400_000}}


WORST: dict[str, Callable[[], Json]] = {
    "wrong parts": lambda: input_with_content([1] * 39_000),
    "wrong calls": wrong_calls,
    "wrong categories": wrong_categories,
    "newlines": lambda: input_with_content("call f" + "\n" * 1_000_000 + "x"),
    "state of lists": lambda: input_with_content("hi", state=[[]] * 240_000),
    "extra fields": lambda: run_input("hi") | {f"key{number}": number for number in range(90_000)},
    "costly schema": lambda: goal({"items": {"anyOf": [{"required": ["c"]}] * 100}}),
    "costly pattern": lambda: goal({"pattern": "(a{90}){90}"}),
}
"""Bodies below the size limit that make the server work, each with the shape of a fault that it once had."""


async def is_served(port: int) -> bool:
    """Return True if a run of the second caller and a ping succeed."""
    events = (await ask(port, post(run_input("hi")))).events
    ping = await ask(port, request("GET", "/ping"))
    return bool(events) and events[-1]["type"] == "RUN_FINISHED" and ping.status == 200


@pytest.fixture
def assistant(servers: Servers) -> ServerProcess:
    """The assistant, with the limits of one identity."""
    return servers(AGUI_AGENT="assistant", AGUI_LIMIT_BY="none")


@requirement("caller.loop")
@pytest.mark.parametrize("name", WORST)
async def test_a_second_caller_is_served_beside_bodies_that_take_work(assistant: ServerProcess, name: str) -> None:
    sent = [post(WORST[name]()) for _ in range(AT_ONCE)]
    attacks = [await HttpExchange.open(assistant.port, body) for body in sent]
    answered = asyncio.gather(*(attack.head() for attack in attacks))
    served = [await is_served(assistant.port) for _ in range(ATTEMPTS)]
    assert served == [True] * ATTEMPTS
    assert {attack.status for attack in await answered} <= {200, 400, 413, 429}


@requirement("caller.loop")
@pytest.mark.parametrize("path", ["/threads/long", "/threads/long/delta", "/v1/ai/threads/long"])
async def test_a_second_caller_is_served_beside_reads_of_a_long_thread(assistant: ServerProcess, path: str) -> None:
    history = [{"id": f"m{number}", "role": "user", "content": "x" * 1_000} for number in range(4_000)]
    document = {**run_input("hi", thread="long"), "messages": history}
    await ask(assistant.port, post(document))
    reads = [await HttpExchange.open(assistant.port, request("GET", path)) for _ in range(READS)]
    answered = asyncio.gather(*(read.head() for read in reads))
    served = [await is_served(assistant.port) for _ in range(ATTEMPTS)]
    assert served == [True] * ATTEMPTS
    assert {read.status for read in await answered} <= {200, 429}
