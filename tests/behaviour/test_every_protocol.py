"""Behaviour over every protocol: AG-UI over SSE and WebSocket, roz of both generations, and kontekst."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from ag_ui.core import RunAgentInput

from agui_container.ports import Item
from agui_container.protocol.errors import AppError, ErrorCode
from tests.behaviour.approval_tools import PAID
from tests.behaviour.client import text
from tests.behaviour.conftest import PROTOCOLS, ServeOver
from tests.behaviour.conversations import PAINT, answer
from tests.behaviour.dialogues import APPROVE, ASKS, CALLS, CANCELLED, DENY, ERROR, SUCCESS, Dialogue, Reply
from tests.behaviour.test_threads import send_command
from tests.engine.doubles import WAIT, Json, agent_of, wait_for_event
from tests.models.watched_model import WatchedModel
from tests.waiting_agent import WaitingAgent

WITH_CLIENT_TOOLS = [name for name in PROTOCOLS if name != "kontekst"]
WITH_TURNS_THAT_WAIT = [name for name in PROTOCOLS if name not in {"sse", "ws"}]
"""Protocols whose turn stays open while it waits for a decision. In AG-UI the run has ended with interrupts."""

SESSION = "x_amzn_bedrock_agentcore_runtime_session_id"


FAILED = "The agent failed; the server's log has the cause."


async def approve_all(dialogue: Dialogue, reply: Reply) -> Reply:
    """Approve every call, and return the last reply. kontekst asks for each call."""
    while reply.end == ASKS:
        reply = await dialogue.decide(*(APPROVE for _ in reply.asked))
    return reply


def call_command(name: str, **arguments: object) -> str:
    return f"call {name} {json.dumps(arguments)}"


def body_of(thread: str, run: str, **fields: object) -> Json:
    return {"threadId": thread, "runId": run, "messages": [], "protocolVersion": "1.0", **fields}


def message_of(message_id: str, said: str) -> Json:
    return {"id": message_id, "role": "user", "content": said}


# --- custom agents ----------------------------------------------------------------------------------------------------


async def test_strings_are_the_text_of_the_reply(serve_over: ServeOver) -> None:
    reply = await (await serve_over(agent_of("Hello ", "w\u00f6rld \U0001f600"))).dialogue().say("hi")
    assert (reply.text, reply.end) == ("Hello w\u00f6rld \U0001f600", SUCCESS)


async def test_an_agent_that_raises_ends_its_turn_and_tells_no_secret(serve_over: ServeOver) -> None:
    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        yield "so far"
        raise ValueError("token=secret")

    dialogue = (await serve_over(agent)).dialogue()
    for _ in range(2):
        reply = await dialogue.say("hi")
        assert (reply.text, reply.end, reply.error) == ("so far", ERROR, FAILED)
        assert "secret" not in reply.received


async def test_the_message_of_an_agents_error_reaches_the_client(serve_over: ServeOver) -> None:
    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        raise AppError(ErrorCode.MODEL_THROTTLED, "Try again tomorrow.")
        yield

    reply = await (await serve_over(agent)).dialogue().say("hi")
    assert (reply.end, reply.error) == (ERROR, "Try again tomorrow.")
    assert reply.code in {"MODEL_THROTTLED", None}


async def test_a_cancelled_turn_ends_at_once_and_the_thread_is_free(serve_over: ServeOver) -> None:
    agent = WaitingAgent(rest=" there")
    dialogue = await (await serve_over(agent)).begun()
    await dialogue.cancel()
    reply = await dialogue.reply()
    assert reply.end == CANCELLED
    await wait_for_event(agent.cut_off)
    agent.may_end.set()
    assert (await dialogue.say("again")).text == "hi there"


async def test_a_second_client_of_a_busy_thread_is_refused_and_harms_nothing(serve_over: ServeOver) -> None:
    agent = WaitingAgent(rest=" there")
    site = await serve_over(agent)
    first, second = await site.begun(), site.dialogue()
    refused = await second.say("hello")
    assert refused.end == ERROR
    assert refused.code in {"THREAD_BUSY", None}
    assert "Another run is active" in refused.error
    agent.may_end.set()
    assert ((await first.reply()).end, (await second.say("hello")).text) == (SUCCESS, "hi there")


async def test_two_sessions_have_a_thread_of_the_same_id_each(serve_over: ServeOver) -> None:
    agent = WaitingAgent(rest=" there")
    site = await serve_over(agent)
    dialogues = [await site.begun(**{SESSION: name * 33}) for name in "ab"]
    agent.may_end.set()
    assert [(await dialogue.reply()).end for dialogue in dialogues] == [SUCCESS, SUCCESS]


async def test_a_run_may_end_with_its_last_reader(serve_over: ServeOver) -> None:
    agent = WaitingAgent(rest=" there")
    dialogue = await (await serve_over(agent, on_disconnect="cancel")).begun()
    await dialogue.leave()
    await wait_for_event(agent.cut_off)


async def test_a_run_may_go_on_without_readers_and_is_read_over_http(serve_over: ServeOver) -> None:
    agent = WaitingAgent(rest=" there")
    site = await serve_over(agent, on_disconnect="continue")
    dialogue = await site.begun()
    await dialogue.leave()
    reader = await site.over_sse().attach("t1", None)
    agent.may_end.set()
    events = await reader.rest()
    assert (events[0]["type"], text(events), events[-1]["outcome"]) == ("RUN_STARTED", "hi there", {"type": "success"})


async def test_a_run_that_takes_too_long_is_ended(serve_over: ServeOver) -> None:
    site = await serve_over(WaitingAgent(), run_timeout=60)
    dialogue = await site.begun()
    site.clock.advance(60)
    reply = await dialogue.reply()
    assert reply.end == ERROR
    assert reply.code in {"RUN_TIMEOUT", None}
    assert "took longer" in reply.error


async def test_a_drain_ends_what_is_open_and_refuses_what_comes(serve_over: ServeOver) -> None:
    site = await serve_over(WaitingAgent())
    dialogue = await site.begun()
    await site.service.drain(0)
    replies = [await dialogue.reply(), await dialogue.say("hi")]
    for reply in replies:
        assert reply.end == ERROR
        assert reply.code in {"SHUTTING_DOWN", None}
        assert "shutting down" in reply.error


async def test_a_message_that_is_too_large_is_refused_and_harms_nobody(serve_over: ServeOver) -> None:
    agent = WaitingAgent(rest=" there")
    site = await serve_over(agent, max_body_bytes=20_000)
    other = await site.begun("other")
    reply = await site.dialogue().say("x" * 30_000)
    assert (reply.end, reply.code) == (ERROR, "PAYLOAD_TOO_LARGE")
    agent.may_end.set()
    assert (await other.reply()).end == SUCCESS


# --- the assistant ----------------------------------------------------------------------------------------------------


async def test_reasoning_is_apart_from_the_answer(serve_over: ServeOver) -> None:
    reply = await (await serve_over()).dialogue().say("think about rain")
    assert reply.end == SUCCESS
    assert reply.reasoning
    assert reply.text
    assert reply.reasoning not in reply.text


async def test_turns_are_one_conversation_that_is_read_over_http(serve_over: ServeOver) -> None:
    site = await serve_over()
    dialogue = site.dialogue()
    said = ["stream 2", "stream 1"]
    replies = [(await dialogue.say(it)).text for it in said]
    thread = await send_command(site.over_sse(), "get", threadId="t1")
    assert [(message["role"], message["content"]) for message in thread["messages"]] == [
        ("user", said[0]),
        ("assistant", replies[0]),
        ("user", said[1]),
        ("assistant", replies[1]),
    ]


async def test_a_tool_of_the_server_is_called(serve_over: ServeOver) -> None:
    dialogue = (await serve_over()).dialogue()
    reply = await approve_all(dialogue, await dialogue.say("calculate 6*7"))
    assert (reply.text, reply.end) == ("The result of calculate is 42.", SUCCESS)


async def test_a_tool_that_fails_tells_no_secret(serve_over: ServeOver) -> None:
    dialogue = (await serve_over()).dialogue()
    reply = await approve_all(dialogue, await dialogue.say(call_command("burst")))
    assert reply.end == SUCCESS
    assert "secret" not in reply.received


async def test_an_approved_call_runs_once_and_the_model_goes_on(serve_over: ServeOver) -> None:
    dialogue = (await serve_over()).dialogue("approved")
    reply = await dialogue.say(call_command("pay", amount=5))
    assert (reply.end, [asked.name for asked in reply.asked]) == (ASKS, ["pay"])
    assert {str(asked.arguments) for asked in reply.asked} <= {"{'amount': 5}", "None"}
    assert PAID["approved"] == []
    assert "paid 5" in (await dialogue.decide(APPROVE)).text
    assert PAID["approved"] == [5]


async def test_a_denied_call_does_not_run_and_the_thread_is_free(serve_over: ServeOver) -> None:
    dialogue = (await serve_over()).dialogue("denied")
    await dialogue.say(call_command("pay", amount=5))
    reply = await dialogue.decide(DENY, reason="too much")
    assert reply.end in {SUCCESS, CANCELLED}  # kontekst ends a run with a denial
    assert PAID["denied"] == []
    assert (await dialogue.say("stream 1")).text == "hello world, "


@pytest.mark.parametrize("serve_over", WITH_TURNS_THAT_WAIT, indirect=True)
async def test_a_turn_that_asks_can_be_cancelled(serve_over: ServeOver) -> None:
    dialogue = (await serve_over()).dialogue("abandoned")
    await dialogue.say(call_command("pay", amount=5))
    await dialogue.cancel()
    assert (await dialogue.reply()).end == CANCELLED
    assert (await dialogue.say("stream 1")).text == "hello world, "
    assert PAID["abandoned"] == []


async def test_a_run_that_asks_again_for_an_older_call_can_be_cancelled(serve_over: ServeOver) -> None:
    site = await serve_over()
    dialogue = site.dialogue("again")
    http = site.over_sse()
    await http.run(body_of("again", "r-http", messages=[message_of("m1", call_command("pay", amount=5))]))
    assert (await dialogue.say("stream 1")).text == ""
    await dialogue.cancel()
    if site.protocol in WITH_TURNS_THAT_WAIT:
        reply = await dialogue.reply()
        assert (reply.end, reply.text) == (CANCELLED, "")
    thread = await send_command(http, "get", threadId="again")
    answered = [it["content"] for it in thread["messages"] if it["role"] == "assistant" and "content" in it]
    assert (thread["waiting"], answered) == ([], [])
    events = await http.run(body_of("again", "r-next", messages=[message_of("m2", "stream 1")]))
    assert (PAID["again"], text(events)) == ([], "hello world, ")


async def test_a_call_is_asked_over_one_protocol_and_approved_over_http(serve_over: ServeOver) -> None:
    site = await serve_over()
    dialogue = site.dialogue("crossed")
    await dialogue.say(call_command("pay", amount=5))
    http = site.over_sse()
    (waiting,) = (await send_command(http, "get", threadId="crossed"))["waiting"]
    assert "paid 5" in text(await http.run(body_of("crossed", "r-http", resume=[answer(waiting, approved=True)])))
    if site.protocol in WITH_TURNS_THAT_WAIT:
        assert "paid 5" in (await dialogue.reply()).text
    assert PAID["crossed"] == [5]


@pytest.mark.parametrize("serve_over", WITH_CLIENT_TOOLS, indirect=True)
async def test_a_tool_of_the_client_is_run_by_the_client(serve_over: ServeOver) -> None:
    dialogue = (await serve_over()).dialogue()
    reply = await dialogue.say(call_command("paint", colour="red"), tools=[PAINT])
    assert (reply.end, [asked.name for asked in reply.asked]) == (CALLS, ["paint"])
    assert "a red wall" in (await dialogue.give_result("a red wall")).text


@pytest.mark.parametrize("serve_over", WITH_CLIENT_TOOLS, indirect=True)
async def test_an_approval_and_then_the_result_of_a_client_tool_finish_their_turn(serve_over: ServeOver) -> None:
    dialogue = (await serve_over()).dialogue("both")
    calls = f"{call_command('pay', amount=5)}\n{call_command('paint', colour='red')}"
    await dialogue.say(calls, tools=[PAINT], asks=2)
    reply = await dialogue.approve_and_give("a red wall")
    assert (reply.end, PAID["both"]) == (SUCCESS, [5])
    assert "a red wall" in reply.text
    assert (await dialogue.say("stream 1")).text == "hello world, "


async def test_an_error_names_the_field_of_the_protocol(serve_over: ServeOver) -> None:
    site = await serve_over()
    reply = await site.dialogue().say(" ")
    field = {"sse": "messages", "ws": "messages", "kontekst": "start.prompt"}.get(site.protocol, "user_message.content")
    assert (reply.end, reply.error.partition(":")[0]) == (ERROR, field)


async def test_many_dialogues_at_once_do_not_mix(serve_over: ServeOver) -> None:
    site = await serve_over()
    dialogues = [site.dialogue(f"many-{number}") for number in range(20)]
    async with asyncio.timeout(WAIT):
        replies = await asyncio.gather(*(it.say(f"stream {at}") for at, it in enumerate(dialogues, 1)))
    assert [reply.text.count("hello") for reply in replies] == list(range(1, 21))


# --- denials ----------------------------------------------------------------------------------------------------------


WITH_REASONS = [name for name in PROTOCOLS if not name.startswith("roz")]


@pytest.mark.parametrize("serve_over", WITH_REASONS, indirect=True)
async def test_the_model_reads_the_reason_of_a_denial_as_the_result_of_the_call(
    serve_over: ServeOver, watched_models: list[WatchedModel]
) -> None:
    dialogue = (await serve_over()).dialogue()
    assert (await dialogue.say(call_command("pay", amount=5))).end == ASKS
    await dialogue.decide(DENY, reason="the budget is spent")
    assert (await dialogue.say("stream 1")).end == SUCCESS
    (result,) = (message for message in watched_models[0].prompts[-1].messages if message.role == "tool")
    assert "the budget is spent" in str(result.content)


@pytest.mark.parametrize("serve_over", WITH_REASONS, indirect=True)
async def test_a_message_is_answered_though_a_call_before_it_is_denied_first(serve_over: ServeOver) -> None:
    site = await serve_over()
    dialogue = site.dialogue("before")
    http = site.over_sse()
    await http.run(body_of("before", "r-http", messages=[message_of("m1", call_command("pay", amount=5))]))
    assert [asked.name for asked in (await dialogue.say("stream 1")).asked] == ["pay"]
    reply = await dialogue.decide(DENY)
    assert (reply.end, reply.text, PAID["before"]) == (SUCCESS, "hello world, ", [])
