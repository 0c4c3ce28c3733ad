"""Recorded answers of servers, one file each: the parser and a socket give the same deltas."""

from collections.abc import Sequence
from typing import Any

import pytest
from ag_ui.core import Tool

from agui_container.models.openai.failures import ModelFailure
from agui_container.models.openai.request import ToolNames
from agui_container.models.openai.stream_parser import ChatStreamParser
from agui_container.models.openai.transport import SseReader
from agui_container.ports import Prompt
from tests.models.openai.conftest import Models
from tests.models.openai.server import OpenAIResponse, OpenAIServer, sse
from tests.models.openai.stream_reader import PROMPT, Json, data, delta_as_json, files, read_deltas

SCENARIOS = files("scenarios")


@pytest.fixture(params=SCENARIOS)
def scenario(request: pytest.FixtureRequest) -> dict[str, Any]:
    return data("scenarios", request.param)


def test_there_are_scenarios() -> None:
    assert len(SCENARIOS) > 60


def test_a_stream_is_read(scenario: dict[str, Any]) -> None:
    reading = ChatStreamParser(ToolNames(scenario.get("tools", ())), "openai-compatible", "m")
    given, failure = read(reading, sse(*scenario["events"]))
    assert given == scenario["deltas"]
    assert described(failure) == scenario.get("error")


async def test_a_stream_is_read_from_a_socket(scenario: dict[str, Any], wire: OpenAIServer, models: Models) -> None:
    # A call that gave nothing is made again: the same answer every time.
    wire.gives(*[OpenAIResponse(sse(*scenario["events"]))] * 3)
    tools = [Tool(name=name, description=name) for name in scenario.get("tools", ())]
    given, failure = await read_deltas(models().stream(Prompt(PROMPT.system, PROMPT.messages, tools)))
    assert given == scenario["deltas"]
    assert described(failure) == scenario.get("error")
    begun = bool([delta for delta in given if "usage" not in delta])
    again = failure is not None and described(failure)["retry"] and not begun
    assert len(wire.requests) == (3 if again else 1)


def read(reading: ChatStreamParser, pieces: Sequence[bytes]) -> tuple[list[Json], ModelFailure | None]:
    """As the model does it, without I/O."""
    sse_reader = SseReader()
    given: list[Json] = []
    try:
        for piece in pieces:
            for event in sse_reader.feed(piece):
                given += map(delta_as_json, reading.feed_data(event))
        given += map(delta_as_json, reading.finish())
    except ModelFailure as failure:
        return [*given, *map(delta_as_json, reading.usage())], failure
    return given, None


def described(failure: object) -> Any:  # noqa: ANN401 - as the file has it
    if failure is None:
        return None
    assert isinstance(failure, ModelFailure)
    return {"code": failure.code.value, "retry": failure.is_retryable}
