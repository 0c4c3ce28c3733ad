"""Calls that somebody must approve, and every answer there can be, as a client sees them."""

from functools import partial

import pytest

from agui_container.stores.memory import MemoryStore
from tests.behaviour.approval_tools import PAID
from tests.behaviour.client import Refused, outcome, text, types
from tests.behaviour.conftest import ConnectModel
from tests.behaviour.conversations import PAINT, ClientThread, answer, calls, interrupts, results
from tests.behaviour.test_threads import send_command, wait_for_thread
from tests.engine.doubles import Json


async def ask_for_payments(thread: ClientThread, *amounts: int) -> list[Json]:
    events = await thread.say("\n".join(f'call pay {{"amount": {amount}}}' for amount in amounts))
    found = interrupts(events)
    assert len(found) == len(amounts)
    assert PAID[thread.id] == []
    return found


async def thread_statuses(thread: ClientThread) -> tuple[str, str]:
    """Return the status of the thread after its last run, and of a fork after the message with the first call."""
    called = next(message["id"] for message in thread.messages if "toolCalls" in message)
    view = await wait_for_thread(thread.client, thread_id=thread.id)
    fork = await send_command(thread.client, "fork", threadId=thread.id, messageId=called)
    return view["status"], fork["status"]


async def test_a_call_that_must_be_approved_ends_the_run_with_an_interrupt(thread: ClientThread) -> None:
    events = await thread.say('call pay {"amount": 5}')
    assert types(events) == ["RUN_STARTED", "TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "RUN_FINISHED"]
    (interrupt,) = interrupts(events)
    assert interrupt["toolCallId"] == calls(events)["pay"]
    assert (interrupt["reason"], interrupt["message"]) == ("tool_call", 'Allow pay with {"amount": 5}?')
    assert set(interrupt["responseSchema"]["properties"]) == {"approved", "reason", "editedArgs"}
    assert interrupt["expiresAt"] > "2000"
    assert (interrupt["metadata"]["reason"], interrupt["metadata"]["category"]) == ("it costs money", "physical")
    assert PAID[thread.id] == []


@pytest.mark.wire
@pytest.mark.platform
async def test_an_approved_call_runs_and_the_model_goes_on(thread: ClientThread) -> None:
    (interrupt,) = await ask_for_payments(thread, 5)
    events = await thread.resume(answer(interrupt, approved=True))
    assert PAID[thread.id] == [5]
    assert types(events)[1:3] == ["TOOL_CALL_RESULT", "TEXT_MESSAGE_START"]
    assert text(events) == "The result of pay is paid 5."
    assert text(await thread.say("stream 1")) == "hello world, "


@pytest.mark.wire
async def test_edited_arguments_replace_the_calls_and_are_checked_again(thread: ClientThread) -> None:
    first, second = await ask_for_payments(thread, 5, 6)
    edits: list[dict[str, object]] = [{"amount": 2}, {"sum": 1}]
    answers = (answer(it, approved=True, editedArgs=edit) for it, edit in zip((first, second), edits, strict=True))
    events = await thread.resume(*answers)
    assert PAID[thread.id] == [2]
    (paid, refused) = results(events)
    assert paid == "paid 2"
    assert refused.startswith("Error: pay:")


async def test_the_oldest_approval_is_forgotten_for_a_new_one_and_its_answer_is_refused(
    connect_model: ConnectModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agui_container.stores.MemoryStore", partial(MemoryStore, max_threads=2))
    first = await connect_model()
    threads = [first, *(ClientThread(first.client, first.model) for _ in range(2))]
    oldest, _, newest = [interrupt for thread in threads for interrupt in await ask_for_payments(thread, 1)]
    gone = await first.resume(answer(oldest, approved=True))
    assert outcome(gone) == "VALIDATION_ERROR"
    assert gone[-1]["message"].startswith("resume.0.interruptId: this interrupt no longer waits for an answer")
    await threads[-1].resume(answer(newest, approved=True))
    assert [PAID[thread.id] for thread in threads] == [[], [], [1]]


async def test_a_message_behind_a_call_that_waits_is_answered_once_that_is_denied_or_its_thread_cancelled(
    thread: ClientThread,
) -> None:
    held = await ask_for_payments(thread, 5)
    events = await thread.say("stream 1")
    assert (types(events), interrupts(events)) == (["RUN_STARTED", "RUN_FINISHED"], held)
    assert len(thread.prompts()) == 1
    (interrupt,) = held
    assert text(await thread.resume(answer(interrupt, approved=False))) == "hello world, "
    await ask_for_payments(thread, 6)
    await thread.client.cancel(thread.id)
    assert (await wait_for_thread(thread.client, thread_id=thread.id))["waiting"] == []
    assert text(await thread.say("stream 2")) == "hello world, hello world, "


async def test_two_answers_to_one_interrupt_are_refused_and_nothing_runs(thread: ClientThread) -> None:
    (interrupt,) = await ask_for_payments(thread, 5)
    events = await thread.resume(answer(interrupt, approved=True), answer(interrupt, approved=False))
    assert outcome(events) == "VALIDATION_ERROR"
    assert events[-1]["message"] == "resume.1.interruptId: this interrupt is answered twice."
    assert PAID[thread.id] == []


async def test_the_model_is_not_asked_before_a_client_call_of_the_same_turn_is_answered(thread: ClientThread) -> None:
    thread.tools = [PAINT]
    events = await thread.say('call pay {"amount": 1}\ncall paint {}')
    (interrupt,) = interrupts(events)
    answered = await thread.resume(answer(interrupt, approved=True))
    assert types(answered) == ["RUN_STARTED", "TOOL_CALL_RESULT", "RUN_FINISHED"]
    assert outcome(answered) == "success"
    thread.result(calls(events)["paint"], "dry")
    assert text(await thread.say()) == "The result of pay is paid 1, and the result of paint is dry."


async def test_a_message_beside_an_answer_is_answered_though_a_call_of_the_client_is_open(thread: ClientThread) -> None:
    thread.tools = [PAINT]
    asked = interrupts(await thread.say('call pay {"amount": 1}\ncall paint {}'))
    events = await thread.say("stream 1", resume=[answer(asked[0], approved=True)])
    assert (results(events), text(events)) == (["paid 1"], "hello world, ")


async def test_the_turn_is_the_clients_when_its_call_is_the_last_that_is_open(thread: ClientThread) -> None:
    thread.tools = [PAINT]
    events = await thread.say('call pay {"amount": 1}\ncall paint {}')
    assert await thread_statuses(thread) == ("user_turn", "user_turn")
    await thread.resume(answer(interrupts(events)[0], approved=True))
    assert await thread_statuses(thread) == ("client_tool_turn", "client_tool_turn")
    thread.result(calls(events)["paint"], "dry")
    await thread.say()
    assert (await thread_statuses(thread))[0] == "user_turn"


async def test_an_answer_counts_only_on_its_thread_and_from_its_session(thread: ClientThread) -> None:
    (interrupt,) = await ask_for_payments(thread, 5)
    session = thread.client.session("s" * 40)
    elsewhere, stranger = (
        ClientThread(thread.client, thread.model),
        ClientThread(session, thread.model, thread.id, runs=7),
    )
    for other in (elsewhere, stranger):
        assert results(await other.say("hi", resume=[answer(interrupt, approved=True)])) == []
    assert (PAID[thread.id], PAID[elsewhere.id]) == ([], [])
    await thread.resume(answer(interrupt, approved=True))
    assert PAID[thread.id] == [5]


async def test_the_call_of_the_interrupt_runs_even_if_the_caller_changed_it(thread: ClientThread) -> None:
    (interrupt,) = await ask_for_payments(thread, 5)
    thread.messages[-1]["toolCalls"][0]["function"] = {"name": "wipe", "arguments": '{"amount": 500}'}
    thread.result(interrupt["toolCallId"], "paid 1000000")
    events = await thread.resume(answer(interrupt, approved=True))
    assert PAID[thread.id] == [5]
    assert text(events) == "The result of pay is paid 5."


async def test_a_run_that_is_cancelled_before_it_asks_leaves_nothing_open(thread: ClientThread) -> None:
    stream = await thread.start('call pay {"amount": 5}\ncall stick {}')
    await stream.until("TOOL_CALL_END")
    await thread.client.cancel(thread.id)
    assert outcome(await stream.rest()) == "cancelled"
    assert text(await thread.say("stream 1")) == "hello world, "
    assert PAID[thread.id] == []


@pytest.mark.parametrize("resume", ["yes", [{"status": "resolved"}], [{"interruptId": "i", "status": "maybe"}]])
async def test_a_resume_that_is_none_is_refused_before_a_run_exists(thread: ClientThread, resume: object) -> None:
    with pytest.raises(Refused, match="VALIDATION_ERROR"):
        await thread.say("hi", resume=resume)
