"""Results of a run whose model stopped early."""

from collections.abc import AsyncIterator, Sequence

import pytest
from ag_ui.core import CustomEvent, RunFinishedEvent, ToolCallResultEvent

from agui_container.agents.assistant.assistant import Assistant
from agui_container.ports import Delta, Item, Prompt, StopDelta, StopReason, TextDelta, ToolCallDelta
from agui_container.tools.builtin import builtin_tools
from tests.contexts import client_tool, collect_items, run_context, run_input

CUT = "Error: the answer was cut off before this call was complete."


class TurnModel:
    """A model that says these turns."""

    provider = name = "turns"

    def __init__(self, *turns: Sequence[Delta]) -> None:
        self.turns = list(turns)

    async def stream(self, prompt: Prompt) -> AsyncIterator[Delta]:
        for delta in self.turns.pop(0):
            yield delta


async def run(*turns: Sequence[Delta]) -> list[Item]:
    assistant = Assistant(TurnModel(*turns), builtin_tools())
    return await collect_items(assistant.run(run_input("go", tools=[client_tool("paint")]), run_context()))


def told(items: Sequence[Item]) -> list[object]:
    return [item.value for item in items if isinstance(item, CustomEvent) and item.name == "model.stopped"]


def results(items: Sequence[Item]) -> list[object]:
    return [item.content for item in items if isinstance(item, ToolCallResultEvent)]


async def test_the_client_is_told_that_an_answer_was_cut_off_or_filtered() -> None:
    for reason in (StopReason.LENGTH, StopReason.FILTERED):
        items = await run([TextDelta("Once"), StopDelta(reason)])
        assert told(items) == [{"reason": reason}]
        assert isinstance(items[-1], RunFinishedEvent)


async def test_an_ordinary_end_is_nothing_to_tell() -> None:
    assert told(await run([TextDelta("Once"), StopDelta(StopReason.END)])) == []


@pytest.mark.parametrize("reason", [StopReason.LENGTH, StopReason.FILTERED])
async def test_a_call_that_was_cut_off_is_not_run_but_the_ones_before_it_are(reason: StopReason) -> None:
    calls: list[Delta] = [
        ToolCallDelta(0, '{"expression":"1+1"}', name="calculate"),
        ToolCallDelta(1, "{}", name="calculate"),
        StopDelta(reason),
    ]
    assert results(await run(calls, [TextDelta("Done.")])) == ["2", CUT]


@pytest.mark.parametrize("reason", [StopReason.LENGTH, StopReason.FILTERED])
async def test_a_client_never_gets_a_call_that_was_cut_off(reason: StopReason) -> None:
    items = await run([ToolCallDelta(0, "", name="paint"), StopDelta(reason)], [TextDelta("Done.")])
    assert results(items) == [CUT]
