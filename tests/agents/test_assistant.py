"""Ids of an assistant's events, models and inputs without the usual parts, and its capabilities."""

from collections.abc import AsyncIterator

from ag_ui.core import (
    TextMessageContentEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)

from agui_container.agents.assistant.assistant import MAX_STEPS, Assistant
from agui_container.models.offline import OfflineModel
from agui_container.ports import Delta, Prompt
from tests.agents.doubles import DONE, ScriptedModel, answering, asks, items
from tests.contexts import collect_items, of_type, run_context, run_input


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
