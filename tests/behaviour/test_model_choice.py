"""The model that a caller chooses answers, in every turn of the conversation, and no other."""

import pytest

from tests.behaviour.client import outcome, text
from tests.behaviour.conftest import ConnectModel
from tests.models.watched_model import WatchedModel
from tests.protocols.clients import serving_clients


def last_messages(model: WatchedModel) -> list[object]:
    return [prompt.messages[-1].content for prompt in model.prompts]


@pytest.mark.wire
async def test_the_chosen_model_is_prompted_and_no_other(
    connect_model: ConnectModel, watched_models: list[WatchedModel]
) -> None:
    thread = await connect_model(models=["small=offline"])
    default, small = watched_models
    for said in ("stream 1", "calculate 6*7"):
        events = await thread.say(said, forwardedProps={"model": "small"})
        assert events[-1]["usage"][0]["model"] == small.name
    assert (last_messages(small), last_messages(default)) == (["stream 1", "calculate 6*7", "42"], [])
    assert text(await thread.say("stream 2")) == "hello world, hello world, "
    assert last_messages(default) == ["stream 2"]


@pytest.mark.wire
@pytest.mark.parametrize(("models", "expected"), [(["small=offline"], "allowed are small"), ([], "allows no choice")])
async def test_a_model_that_may_not_be_chosen_is_refused(
    connect_model: ConnectModel, models: list[str], expected: str
) -> None:
    thread = await connect_model(models=models)
    events = await thread.say("stream 1", forwardedProps={"model": "huge"})
    assert (text(events), outcome(events)) == ("", "VALIDATION_ERROR")
    assert expected in events[-1]["message"]


async def test_a_session_of_roz_has_the_model_that_its_start_names(watched_models: list[WatchedModel]) -> None:
    async with serving_clients(agent="assistant", models=["small=offline"]) as clients:
        session = await clients.start_session(model="small")
        assert await session.ask("stream 1") == "hello world, "
    default, small = watched_models
    assert (last_messages(small), last_messages(default)) == (["stream 1"], [])
