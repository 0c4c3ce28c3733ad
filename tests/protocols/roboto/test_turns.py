"""Turns of sessions that need what Roboto's API does not have, and requests that would be followed in part only."""

from collections.abc import AsyncIterator

import pytest
from ag_ui.core import Interrupt, RunAgentInput, RunFinishedEvent, RunFinishedInterruptOutcome

from agui_container.main import build_app
from agui_container.ports import Item, RunContext
from agui_container.settings import Settings
from tests.behaviour.server import serving
from tests.engine.doubles import Json, make_service
from tests.protocols.roboto.conftest import Api, serving_api
from tests.protocols.roboto.test_routes import INVALID, texts
from tests.sse import http_client

pytestmark = pytest.mark.wire

POLICY = '[{"tool_pattern": "calculate", "policy": "ask"}]'


def message(text: str, **fields: object) -> Json:
    return {"message": {"role": "user", "content": [{"text": text}]}, **fields}


@pytest.mark.parametrize("question", ["calculate 6*7", "delegate calculate 6*7", "delegate delegate calculate 6*7"])
async def test_a_message_denies_what_waits_and_is_answered(question: str) -> None:
    async with serving_api(tool_policy=POLICY) as api:
        held = await api.finished(await api.start(question))
        error = held["messages"][-1]["content"][-1]
        assert (error["content_type"], error["error_code"]) == ("error", "APPROVAL_REQUIRED")
        assert error["error_message"].endswith("only: calculate. Your next message denies it.")
        held = await api.say(held, "stream 2")
        assert (held["status"], texts(held)[-1]) == ("user_turn", "hello world, hello world, ")
        thread = (await api.http.get(f"/threads/{held['thread_id']}")).json()["messages"]
        denied = [it for it in thread if (it.get("metadata") or {}).get("denied")]
        assert [it["content"] for it in denied] == ["Error: the user did not want this call."]
        assert [it["role"] for it in held["messages"]] == ["user", "assistant"] * 2
        assert texts(await api.say(held, "stream 1"))[-1] == "hello world, "


async def asking_agent(input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
    if not input.resume:
        question = Interrupt(id=ctx.new_id(), reason="choice", message="Which colour?")
        outcome = RunFinishedInterruptOutcome(interrupts=[question])
        yield RunFinishedEvent(thread_id=ctx.thread_id, run_id=ctx.run_id, outcome=outcome)
        return
    yield f"{input.resume[0].status}: {input.messages[-1].content}"


async def test_a_question_of_an_agent_is_shown_as_an_error_and_a_message_abandons_it() -> None:
    settings = Settings(roboto=True)
    async with serving(build_app(settings, make_service(asking_agent, settings))) as url, http_client(url) as http:
        api = Api(http)
        held = await api.finished(await api.start("paint"))
        error = held["messages"][-1]["content"][-1]
        assert (error["error_code"], "Which colour?" in error["error_message"]) == ("APPROVAL_REQUIRED", True)
        assert texts(await api.say(held, "red"))[-1] == "cancelled: red"


async def test_a_failure_is_also_text_unless_the_turn_has_text_already(api: Api) -> None:
    silent = await api.finished(await api.data("POST", "", {"invoke_skills": [{"skill_id": "sing"}]}))
    text, error = silent["messages"][-1]["content"]
    assert (error["content_type"], text["text"]) == ("error", error["error_message"])
    spoken = await api.finished(await api.start("fail"))
    assert [block.get("text") for block in spoken["messages"][-1]["content"]] == ["About to fail. ", None]


async def test_a_model_profile_is_a_model_of_the_server_and_answers_every_turn() -> None:
    async with serving_api(models=("advanced=offline",)) as api:
        held = await api.finished(await api.start("stream 1", model_profile="advanced"))
        fork = await api.data("POST", f"/{held['thread_id']}/fork", {"message_sequence_num": 1})
        for session in (held, fork):
            assert (await api.say(session, "stream 2"))["status"] == "user_turn"
        unknown = await api.finished(await api.start("stream 1", model_profile="m"))
    error = unknown["messages"][-1]["content"][-1]
    assert error["error_message"] == "model_profile: 'm' cannot be chosen; allowed are advanced."


async def test_a_prompt_that_the_assistant_would_ignore_is_refused(api: Api) -> None:
    body = {"messages": [message("stream 1")["message"]], "system_prompt": "Be brief."}
    reason = "this server takes no instructions of callers (AGUI_TRUST_INSTRUCTIONS)."
    assert await api.error("POST", "", body) == (400, INVALID, f"system_prompt: {reason}")


@pytest.mark.parametrize("content", [[{"text": ""}], [{"text": " \n"}, {"text": "\t"}]])
async def test_a_message_without_words_is_refused(api: Api, content: object) -> None:
    held = await api.finished(await api.start("stream 1"))
    blank = {"role": "user", "content": content}
    for path, body, field in (
        ("", {"messages": [blank]}, "messages.0"),
        (f"/{held['thread_id']}/messages", {"message": blank}, "message"),
    ):
        refused = await api.error("POST", path, body)
        assert refused == (400, INVALID, f"{field}: a message of the user must have text.")
