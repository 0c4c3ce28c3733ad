"""Results, ids and ends of a model's calls, and the capabilities that an assistant describes."""

import asyncio
import logging
from pathlib import Path

import pytest

import agui_container
from agui_container.assistant.assistant import MAX_STEPS, Assistant
from agui_container.logging import ConsoleFormatter
from agui_container.models.offline import OfflineModel
from agui_container.ports import ToolError
from tests.agents.doubles import DONE, answering, asks, failing, results


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
        "custom": {"model": {"provider": "offline", "name": "offline"}},
    }


def test_capabilities_name_the_models_to_choose_and_the_trust_in_instructions_where_there_are_any() -> None:
    models = {"advanced": OfflineModel()}
    custom = Assistant(OfflineModel(), models=models, trust_instructions=True).capabilities().custom or {}
    assert (custom["models"], custom["trustsInstructions"]) == (["advanced"], True)
