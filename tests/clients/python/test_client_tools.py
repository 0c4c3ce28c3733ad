"""Client tools: a result for every call. Schemas of functions: ``tests/tools/test_decorator.py``."""

import asyncio
import threading
from typing import Literal

import pytest
from ag_ui.core import FunctionCall, Tool, ToolCall
from pydantic import BaseModel

from agui_client import ClientTool, ClientToolResultStatus, Declined, ToolDefinitionError, attachment, client_tool
from agui_client.client_tools import run_calls


def call(name: str, arguments: str = "{}", call_id: str = "c1") -> ToolCall:
    return ToolCall(id=call_id, function=FunctionCall(name=name, arguments=arguments))


class Place(BaseModel):
    title: str
    altitude: float = 0.0


@client_tool
def measure(where: Place, copy: Literal["a", "b"], days: int = 1) -> dict[str, object]:
    """Measure the weather."""
    return {"where": where, "copy": copy, "days": days}


def test_a_tool_may_say_what_its_function_does_not() -> None:
    tool = client_tool(name="store_fact", description="Persist a fact.", input_schema={"type": "object"})(lambda **_: 1)
    assert tool.spec == Tool(name="store_fact", description="Persist a fact.", parameters={"type": "object"})


def test_a_function_that_cannot_be_described_is_refused() -> None:
    with pytest.raises(ToolDefinitionError, match="has no docstring"):
        client_tool(lambda: 1)
    with pytest.raises(ToolDefinitionError, match="each argument by its name"):
        ClientTool(lambda *args: args, description="d")


async def test_arguments_arrive_as_the_function_declares_them() -> None:
    made = call("measure", '{"where": {"title": "Berlin"}, "copy": "a"}')
    (result,) = await run_calls([made], {"measure": measure}, None)
    assert result.status is ClientToolResultStatus.SUCCESS
    assert result.message.content == '{"where":{"title":"Berlin","altitude":0.0},"copy":"a","days":1}'
    assert result.message.error is None


@client_tool
def fails() -> None:
    """Fail."""
    raise LookupError("nothing here")


@client_tool
async def declines() -> None:
    """Decline."""
    raise Declined("not today")


@client_tool(timeout=0.01)
async def hangs() -> None:
    """Hang."""
    await asyncio.Event().wait()


stuck = threading.Event()


@client_tool
def blocks() -> None:
    """Block its thread."""
    stuck.wait(60)


@pytest.mark.parametrize(
    ("made", "status", "text"),
    [
        (call("fails"), "error", "Error: fails failed: nothing here"),
        (call("declines"), "declined", "not today"),
        (call("hangs"), "error", "Error: hangs took too long."),
        (call("blocks"), "error", "Error: blocks took too long."),
        (call("unknown"), "error", "Error: There is no tool named 'unknown' here."),
        (call("fails", "[]"), "error", "Error: The arguments of fails are no JSON object."),
        (call("fails", '{"x": 1}'), "error", "Error: fails: 'x' is not an argument."),
    ],
)
async def test_every_call_has_a_result(made: ToolCall, status: str, text: str) -> None:
    (result,) = await run_calls([made], {it.name: it for it in (fails, declines, hangs, blocks)}, 0.2)
    stuck.set()
    assert (result.status, result.tool_call_id, result.message.content) == (status, "c1", text)
    assert result.message.error is not None
    stuck.clear()


async def test_content_parts_stay_content_parts() -> None:
    @client_tool
    def plot() -> object:
        """Plot."""
        return attachment(b"\x89PNG\r\n\x1a\n")

    (result,) = await run_calls([call("plot")], {"plot": plot}, None)
    assert isinstance(result.message.content, list)
    assert [part.type for part in result.message.content] == ["image"]


async def test_calls_run_at_the_same_time() -> None:
    meeting = threading.Barrier(20)

    @client_tool
    def meet(number: int) -> int:
        """Meet the others."""
        meeting.wait(60)
        return number

    calls = [call("meet", f'{{"number": {number}}}', f"c{number}") for number in range(20)]
    results = await run_calls(calls, {"meet": meet}, None)
    assert [result.output for result in results] == list(range(20))
