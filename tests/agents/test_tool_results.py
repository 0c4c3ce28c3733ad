"""Metadata of a result: the failure of its tool and its duration, also when the result is sent again."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count

import pytest
from ag_ui.core import ToolCallResultEvent, ToolMessage

from agui_container.agents.gate.toolbox import NOT_SENDABLE
from agui_container.assistant.assistant import Assistant
from agui_container.ports import Item, ToolError
from tests.agents.approval_helpers import answer, interrupts, results
from tests.agents.doubles import DONE, ScriptedModel, ScriptedTool, asks, failing, items
from tests.agents.test_settled_approvals import fixture_with_tool
from tests.contexts import of_type

LIE = "Error: disk full (from yesterday's log)"
FAILED = {"failed": True}


def metadata_of(shown: Sequence[Item]) -> list[object]:
    return [event.metadata for event in of_type(shown, ToolCallResultEvent)]


def eighths_of_seconds() -> Iterator[float]:
    return count(1.0, 0.125)


async def result_metadata(*calls: str, tools: tuple[ScriptedTool, ...]) -> list[object]:
    model = ScriptedModel([asks(*calls), DONE])
    shown = await items(Assistant(model, tools, monotonic=eighths_of_seconds().__next__))
    told = [message.metadata for message in model.prompts[1].messages if isinstance(message, ToolMessage)]
    assert told == metadata_of(shown)
    return metadata_of(shown)


@pytest.mark.parametrize("error", [ToolError("no"), TimeoutError(), ValueError("secret"), SystemExit()])
async def test_a_tool_that_failed_is_marked_and_timed(error: BaseException) -> None:
    assert await result_metadata("broken", tools=(failing("broken", error),)) == [{**FAILED, "durationMs": 125}]


DECIDED = {"durationMs": 125, "decision": {"approved": True}}


@pytest.mark.parametrize(
    ("gives", "content", "metadata"),
    [
        ("done", "done", DECIDED),
        (LIE, LIE, DECIDED),
        (ToolError("no"), "Error: no", {**FAILED, **DECIDED}),
        ("bad \udc80 name", "bad \ufffd name", DECIDED),
        (5, NOT_SENDABLE, {**FAILED, **DECIDED}),
    ],
)
async def test_a_result_that_comes_again_says_the_same(gives: object, content: str, metadata: object) -> None:
    fixture, _ = fixture_with_tool(gives)
    fixture.assistant = replace(fixture.assistant, monotonic=eighths_of_seconds().__next__)
    (interrupt,) = interrupts(await fixture.send("call odd {}"))
    first = await fixture.start(resume=[answer(interrupt, approved=True)])
    again = await fixture.start(resume=[answer(interrupt, approved=True)])
    assert (results(first), metadata_of(first)) == ([content], [metadata])
    assert of_type(again, ToolCallResultEvent) == of_type(first, ToolCallResultEvent)
    told = [message.metadata for message in fixture.model.prompts[-1].messages if isinstance(message, ToolMessage)]
    assert told == [metadata]
