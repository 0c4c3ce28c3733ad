"""Results, ids and ends of a model's calls, and the capabilities that an assistant describes."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
from ag_ui.core import TextMessageContentEvent, ToolCallResultEvent, ToolCallStartEvent

import agui_container
from agui_container.agents.assistant.assistant import MAX_STEPS, Assistant
from agui_container.logging import ConsoleFormatter
from agui_container.models.offline import OfflineModel
from agui_container.ports import Delta, Prompt, ToolError
from tests.agents.doubles import DONE, ScriptedModel, ScriptedTool, answering, asks, failing, items, results
from tests.contexts import collect_items, of_type, run_context, run_input


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
        (KeyboardInterrupt("secret"), "Error: the tool failed."),
        (BaseExceptionGroup("secret", [KeyboardInterrupt()]), "Error: the tool failed."),
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


# --- ids and capabilities ---------------------------------------------------------------------------------------------


async def test_every_message_and_call_has_an_id_of_its_own() -> None:
    yielded = await items(Assistant(ScriptedModel([asks("add", "add"), asks("add"), DONE]), [answering("add")]))
    messages = {event.message_id for event in of_type(yielded, TextMessageContentEvent)}
    parents = {event.parent_message_id for event in of_type(yielded, ToolCallStartEvent)}
    calls = [event.tool_call_id for event in of_type(yielded, ToolCallStartEvent)]
    answers = [event.message_id for event in of_type(yielded, ToolCallResultEvent)]
    assert len({*messages, *parents, *calls, *answers}) == 1 + 2 + 3 + 3


async def test_a_model_whose_stream_cannot_be_closed_will_do() -> None:
    class Stream:
        def __aiter__(self) -> AsyncIterator[Delta]:
            return self

        async def __anext__(self) -> Delta:
            raise StopAsyncIteration

    class Model:
        provider = name = "silent"

        def stream(self, prompt: Prompt) -> AsyncIterator[Delta]:
            return Stream()

    assert await items(Assistant(Model())) == []


async def test_a_run_input_may_offer_no_tools_at_all() -> None:
    model = ScriptedModel([DONE])
    await collect_items(Assistant(model).run(run_input("go", tools=None), run_context()))
    assert list(model.prompts[0].tools) == []


def test_capabilities_say_what_is_configured() -> None:
    described = Assistant(OfflineModel(), [answering("add")]).capabilities()
    assert described.model_dump(by_alias=True) == {
        "tools": {
            "supported": True,
            "items": [{"name": "add", "description": "The server's add.", "parameters": {"type": "object"}}],
            "parallelCalls": True,
            "clientProvided": True,
        },
        "reasoning": {"supported": True, "streaming": True},
        "state": {"snapshots": True, "deltas": True},
        "execution": {"maxIterations": MAX_STEPS},
        "custom": {"goals": {"max": 16, "prompts": 3}, "model": {"provider": "offline", "name": "offline"}},
    }


def test_capabilities_name_the_models_to_choose_and_the_trust_in_instructions_where_there_are_any() -> None:
    models = {"advanced": OfflineModel()}
    custom = Assistant(OfflineModel(), models=models, trust_instructions=True).capabilities().custom or {}
    assert (custom["models"], custom["trustsInstructions"]) == (["advanced"], True)
