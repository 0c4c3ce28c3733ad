"""Results of a model's calls: invalid arguments, tools that fail, and runs that are cancelled."""

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path

import pytest

import agui_container
from agui_container.logging import ConsoleFormatter
from agui_container.ports import ToolError
from tests.agents.doubles import DONE, ScriptedTool, answering, asks, failing, results


async def test_parallel_calls_run_at_once_and_answer_in_order() -> None:
    second_done = asyncio.Event()
    finished: list[str] = []

    async def first(_: Mapping[str, object]) -> str:
        await second_done.wait()  # never comes if calls run one after the other
        finished.append("first")
        return "1"

    async def second(_: Mapping[str, object]) -> str:
        finished.append("second")
        second_done.set()
        return "2"

    tools = ScriptedTool("first", first), ScriptedTool("second", second)
    assert await results(asks("first", "second"), DONE, tools=tools) == ["1", "2"]
    assert finished == ["second", "first"]


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        ("{oops", "Error: the arguments are not valid JSON."),
        ('{"a": NaN}', "Error: the arguments are not valid JSON."),
        ('{"a": [-1e400]}', "Error: the arguments are not valid JSON."),
        ("[" * 100_000, "Error: the arguments are not valid JSON."),
        ("[1]", "Error: the arguments are not a JSON object."),
        ("null", "Error: the arguments are not a JSON object."),
    ],
)
async def test_arguments_that_are_no_object_never_reach_a_tool(arguments: str, answer: str) -> None:
    tool = answering("add")
    assert await results(asks(("add", arguments)), DONE, tools=(tool,)) == [answer]
    assert tool.called == []


async def test_missing_arguments_are_an_empty_object() -> None:
    tool = answering("add")
    await results(asks(("add", "")), DONE, tools=(tool,))
    assert tool.called == [{}]


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (ToolError("No such city."), "Error: No such city."),
        (TimeoutError("db.internal:5432"), "Error: the tool timed out."),
        (ValueError("secret"), "Error: the tool failed."),
        (SystemExit("secret"), "Error: the tool failed."),
        (asyncio.CancelledError("secret"), "Error: the tool failed."),
    ],
)
@pytest.mark.parametrize("others", [0, 1])
async def test_an_exception_in_a_tool_becomes_its_answer(error: BaseException, answer: str, others: int) -> None:
    tools = failing("broken", error), answering("add")
    assert await results(asks("broken", *["add"] * others), DONE, tools=tools) == [answer, *["done"] * others]


async def test_the_log_has_what_the_client_is_not_told(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caplog.handler, "formatter", ConsoleFormatter())
    with caplog.at_level(logging.WARNING):
        await results(asks("broken"), DONE, tools=(failing("broken", ValueError("secret")),))
    (record,) = caplog.records
    assert record.getMessage() == "tool failed tool=broken call=id-2"
    assert record.exc_info
    assert str(record.exc_info[1]) == "secret"
    assert f'File "{Path(__file__).parent}/' in caplog.text
    assert f'File "{Path(agui_container.__file__).parent}/' not in caplog.text


@pytest.mark.parametrize("calls", [1, 2])
async def test_a_cancelled_run_cancels_its_tools(calls: int) -> None:
    began, cancelled = asyncio.Event(), list[str]()

    async def function(_: Mapping[str, object]) -> str:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append("cancelled")
        raise NotImplementedError

    tool = ScriptedTool("wait", function)
    running = asyncio.create_task(results(asks(*["wait"] * calls), tools=(tool,)))
    await began.wait()
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert cancelled == ["cancelled"] * calls
