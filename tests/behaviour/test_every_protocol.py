"""Behaviour over every protocol that is not AG-UI: roz of both generations, and kontekst."""

from collections.abc import AsyncIterator

from ag_ui.core import RunAgentInput

from agui_container.ports import Item
from tests.behaviour.approval_tools import PAID
from tests.behaviour.client import text
from tests.behaviour.conftest import ServeOver
from tests.behaviour.conversations import answer
from tests.behaviour.over_grpc import CANCELLED, ERROR, SUCCESS
from tests.behaviour.test_threads import send_command
from tests.engine.doubles import Json, wait_for_event
from tests.waiting_agent import WaitingAgent

SESSION = "x_amzn_bedrock_agentcore_runtime_session_id"
FAILED = "The agent failed; the server's log has the cause."
PAY = 'call pay {"amount": 5}'


def body_of(thread: str, run: str, **fields: object) -> Json:
    return {"threadId": thread, "runId": run, "messages": [], "protocolVersion": "1.0", **fields}


def message_of(message_id: str, said: str) -> Json:
    return {"id": message_id, "role": "user", "content": said}


async def test_an_agent_that_raises_ends_its_turn_and_tells_no_secret(serve_over: ServeOver) -> None:
    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        yield "so far"
        raise ValueError("token=secret")

    dialogue = (await serve_over(agent)).dialogue()
    for _ in range(2):
        reply = await dialogue.say("hi")
        assert (reply.text, reply.end, reply.error) == ("so far", ERROR, FAILED)
        assert "secret" not in reply.received


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


async def test_a_drain_ends_what_is_open_and_refuses_what_comes(serve_over: ServeOver) -> None:
    site = await serve_over(WaitingAgent())
    dialogue = await site.begun()
    await site.service.drain(0)
    replies = [await dialogue.reply(), await dialogue.say("hi")]
    for reply in replies:
        assert reply.end == ERROR
        assert reply.code in {"SHUTTING_DOWN", None}
        assert "shutting down" in reply.error


async def test_an_approved_call_runs_once_and_the_model_goes_on(serve_over: ServeOver) -> None:
    dialogue = (await serve_over()).dialogue("approved")
    assert len((await dialogue.say(PAY)).asked) == 1
    assert PAID["approved"] == []
    assert "paid 5" in (await dialogue.approve()).text
    assert PAID["approved"] == [5]


async def test_a_run_that_asks_again_for_an_older_call_can_be_cancelled(serve_over: ServeOver) -> None:
    site = await serve_over()
    dialogue, http = site.dialogue("again"), site.over_sse()
    await http.run(body_of("again", "r-http", messages=[message_of("m1", PAY)]))
    assert (await dialogue.say("stream 1")).text == ""
    await dialogue.cancel()
    reply = await dialogue.reply()
    assert (reply.end, reply.text) == (CANCELLED, "")
    thread = await send_command(http, "get", threadId="again")
    answered = [it["content"] for it in thread["messages"] if it["role"] == "assistant" and "content" in it]
    assert (thread["waiting"], answered) == ([], [])
    events = await http.run(body_of("again", "r-next", messages=[message_of("m2", "stream 1")]))
    assert (PAID["again"], text(events)) == ([], "hello world, ")


async def test_a_call_is_asked_over_one_protocol_and_approved_over_http(serve_over: ServeOver) -> None:
    site = await serve_over()
    dialogue, http = site.dialogue("crossed"), site.over_sse()
    await dialogue.say(PAY)
    (waiting,) = (await send_command(http, "get", threadId="crossed"))["waiting"]
    assert "paid 5" in text(await http.run(body_of("crossed", "r-http", resume=[answer(waiting, approved=True)])))
    assert "paid 5" in (await dialogue.reply()).text
    assert PAID["crossed"] == [5]
