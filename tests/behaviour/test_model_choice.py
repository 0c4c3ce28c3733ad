"""The model that a caller chooses answers, over every protocol that has the choice."""

import pytest

from tests.behaviour.conftest import PROTOCOLS, ServeOver
from tests.behaviour.dialogues import ERROR, SUCCESS
from tests.models.watched_model import WatchedModel

CHOOSING = [name for name in PROTOCOLS if name != "kontekst"]
"""Protocols in which a client names a model. Over the others the server's own model answers."""


def last_messages(model: WatchedModel) -> list[object]:
    return [prompt.messages[-1].content for prompt in model.prompts]


@pytest.mark.parametrize("serve_over", CHOOSING, indirect=True)
async def test_the_chosen_model_is_prompted_and_no_other(
    serve_over: ServeOver, watched_models: list[WatchedModel]
) -> None:
    site = await serve_over(models=["small=offline"])
    default, small = watched_models
    for choice, model in (("small", small), ("", default)):
        dialogue = site.dialogue(f"t-{choice}")
        dialogue.model = choice
        reply = await dialogue.say("stream 1")
        assert (reply.text, reply.end) == ("hello world, ", SUCCESS)
        assert last_messages(model) == ["stream 1"]
        assert f'"{model.name}"' in reply.received  # the label of the usage


@pytest.mark.parametrize("serve_over", CHOOSING, indirect=True)
async def test_a_choice_holds_for_the_whole_conversation(
    serve_over: ServeOver, watched_models: list[WatchedModel]
) -> None:
    site = await serve_over(models=["small=offline"])
    default, small = watched_models
    dialogue = site.dialogue()
    dialogue.model = "small"
    for said in ("stream 1", "calculate 6*7"):
        assert (await dialogue.say(said)).end == SUCCESS
    assert last_messages(small) == ["stream 1", "calculate 6*7", "42"]
    assert last_messages(default) == []


@pytest.mark.parametrize("serve_over", ["sse", "ws"], indirect=True)
@pytest.mark.parametrize(("models", "expected"), [(["small=offline"], "allowed are small"), ([], "allows no choice")])
async def test_a_model_that_may_not_be_chosen_is_refused(
    serve_over: ServeOver, models: list[str], expected: str
) -> None:
    dialogue = (await serve_over(models=models)).dialogue()
    dialogue.model = "huge"
    reply = await dialogue.say("stream 1")
    assert (reply.text, reply.end, reply.code) == ("", ERROR, "VALIDATION_ERROR")
    assert expected in reply.error
