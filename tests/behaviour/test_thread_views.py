"""Views of threads besides their messages: origin, waiting interrupts, and the view without messages."""

from collections.abc import AsyncIterator

import pytest
from ag_ui.core import (
    AssistantMessage,
    CustomEvent,
    Interrupt,
    MessagesSnapshotEvent,
    RunAgentInput,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    TextMessageChunkEvent,
)

from agui_container.ports import Item, RunInterrupted
from tests.behaviour.conversations import answer, interrupts
from tests.behaviour.subagents import team
from tests.behaviour.test_threads import refusal, run_and_wait, send_command, silent, store_of, wait_for_thread
from tests.conftest import Connect
from tests.engine.conversations import QUESTION, TALK, store_conversation
from tests.engine.doubles import ask


async def ask_two_questions(run_input: RunAgentInput) -> AsyncIterator[Item]:
    if run_input.resume:
        yield "Thanks."
        return
    interrupts = [Interrupt(id="i1", reason="choice", message="Which?"), Interrupt(id="i2", reason="size")]
    outcome = RunFinishedInterruptOutcome(interrupts=interrupts)
    yield RunFinishedEvent(thread_id=run_input.thread_id, run_id=run_input.run_id, outcome=outcome)


async def test_a_thread_says_what_an_agent_of_ones_own_has_asked(connect: Connect) -> None:
    client = await connect(ask_two_questions)
    thread = await run_and_wait(client, ask())
    assert thread["waiting"] == [{"id": "i1", "reason": "choice", "message": "Which?"}, {"id": "i2", "reason": "size"}]
    brief = await send_command(client, "get", threadId="t1", messages=False)
    assert brief["waiting"] == thread["waiting"]
    answers = [{"interruptId": name, "status": "resolved", "payload": 1} for name in ("i1", "i2")]
    await client.run(ask(run="r2", messages=[], resume=answers))
    await wait_for_thread(client, lambda thread: (thread["status"], thread["waiting"]) == ("user_turn", []))


@pytest.mark.durable
async def test_a_thread_keeps_what_its_questions_were_answered_with(connect: Connect) -> None:
    client = await connect(ask_two_questions)
    asked = await run_and_wait(client, ask())
    assert asked["answers"] == []
    resume = [
        {"interruptId": "i2", "status": "cancelled"},
        {"interruptId": "i1", "status": "resolved", "payload": {"city": "Zürich"}},
    ]
    await client.run(ask(run="r2", messages=[], resume=resume))
    thread = await wait_for_thread(client, lambda thread: thread["status"] == "user_turn" and thread["answers"])
    question = asked["messages"][-1]["id"]
    kept = [
        {"runId": "r2", "messageId": question, "interruptId": "i2", "reason": "size", "status": "cancelled"},
        {
            "runId": "r2",
            "messageId": question,
            "interruptId": "i1",
            "reason": "choice",
            "message": "Which?",
            "status": "resolved",
            "payload": {"city": "Zürich"},
        },
    ]
    assert thread["answers"] == kept
    fork = await send_command(client, "fork", threadId="t1", messageId=thread["messages"][-1]["id"])
    assert (await send_command(client, "get", threadId=fork["threadId"]))["answers"] == kept
    before = await send_command(client, "fork", threadId="t1", messageId=question)
    assert (await send_command(client, "get", threadId=before["threadId"]))["answers"] == []
    last = await send_command(client, "get", threadId="t1", limit=1)
    assert last["answers"] == []
    assert (await send_command(client, "get", threadId="t1", limit=1, before=last["before"]))["answers"] == kept


async def test_a_transcript_has_the_questions_of_an_agent_and_their_answers(connect: Connect) -> None:
    client = await connect(ask_two_questions)
    await run_and_wait(client, ask())
    asked = ["hi", "", "User:", "  hi", "", "Question:", "  Which?", "", "Question:", "  size"]
    assert (await send_command(client, "transcript", threadId="t1"))["transcript"].splitlines() == asked
    resume = [
        {"interruptId": "i1", "status": "resolved", "payload": {"city": "Zürich"}},
        {"interruptId": "i2", "status": "cancelled"},
    ]
    await client.run(ask(run="r2", messages=[], resume=resume))
    await wait_for_thread(client, lambda thread: thread["status"] == "user_turn" and thread["answers"])
    assert (await send_command(client, "transcript", threadId="t1"))["transcript"].splitlines() == [
        *("hi", "", "User:", "  hi", "", "Question:", "  Which?", "", "Answer:", '  {"city":"Zürich"}', ""),
        *("Question:", "  size", "", "Answer:", "  [cancelled]", "", "Assistant:", "  Thanks."),
    ]


async def test_a_question_that_a_message_goes_on_without_is_kept_as_unanswered(connect: Connect) -> None:
    client = await connect(ask_two_questions)
    asked = await run_and_wait(client, ask())
    resume = [{"interruptId": name, "status": "cancelled"} for name in ("i1", "i2")]
    await client.run(ask(run="r2", messages=[{"id": "m2", "role": "user", "content": "Hm?"}]))
    await client.run(ask(run="r3", messages=[], resume=resume))
    thread = await wait_for_thread(client, lambda thread: len(thread["answers"]) == 4)
    question = asked["messages"][-1]["id"]
    assert [(each["interruptId"], each["messageId"], each["status"]) for each in thread["answers"]] == [
        ("i1", question, "unanswered"),
        ("i2", question, "unanswered"),
        ("i1", "m2", "cancelled"),
        ("i2", "m2", "cancelled"),
    ]


async def tell_the_user(_: RunAgentInput) -> AsyncIterator[Item]:
    """Send an event that is a notice before the answer, one within it, and one that is none."""
    yield CustomEvent(name="tools.unavailable", value={"source": "weather", "message": "It is down."})
    yield TextMessageChunkEvent(message_id="a1", delta="Zürich")
    yield CustomEvent(name="model.stopped", value={"reason": "length"})
    yield CustomEvent(name="mine.own", value={"reason": "length"})


@pytest.mark.durable
async def test_a_thread_keeps_what_its_runs_have_told_the_user(connect: Connect) -> None:
    client = await connect(tell_the_user)
    thread = await run_and_wait(client, ask())
    question = thread["messages"][0]["id"]
    down = {"source": "weather", "message": "It is down."}
    kept = [
        {"runId": "r1", "messageId": question, "name": "tools.unavailable", "value": down},
        {"runId": "r1", "messageId": "a1", "name": "model.stopped", "value": {"reason": "length"}},
    ]
    assert thread["notices"] == kept
    last = await send_command(client, "get", threadId="t1", limit=1)
    assert last["notices"] == kept[1:]
    fork = await send_command(client, "fork", threadId="t1", messageId="a1")
    again = await send_command(client, "fork", threadId=fork["threadId"], messageId="a1")
    for copy in (fork, again):
        assert (await send_command(client, "get", threadId=copy["threadId"]))["notices"] == kept
    before = await send_command(client, "fork", threadId="t1", messageId=question)
    assert (await send_command(client, "get", threadId=before["threadId"]))["notices"] == []


async def test_a_run_that_fails_leaves_its_notices_and_at_most_a_hundred_are_kept(connect: Connect) -> None:
    async def tell_much_and_fail(_: RunAgentInput) -> AsyncIterator[Item]:
        for number in range(101):
            yield CustomEvent(name="media.dropped", value=number)
        raise RuntimeError

    client = await connect(tell_much_and_fail)
    thread = await run_and_wait(client, ask())
    assert [each["value"] for each in thread["notices"]] == list(range(100))


async def tell_or_ask(run_input: RunAgentInput) -> AsyncIterator[Item]:
    """Tell the user something before and after an answer, or before a failure, or ask first. Else only answer."""
    text = next(message.content for message in reversed(run_input.messages) if message.role == "user")
    if text in ("tell", "fail"):
        yield CustomEvent(name="tools.unavailable", value="before")
    if text == "fail":
        raise RuntimeError
    if text == "ask" and not run_input.resume:
        raise RunInterrupted([Interrupt(id="i1", reason="choice")])
    yield TextMessageChunkEvent(message_id=f"{run_input.run_id}-answer", delta="Fine.")
    if text == "tell":
        yield CustomEvent(name="model.stopped", value="after")


@pytest.mark.parametrize("text", ["tell", "fail", "ask"])
@pytest.mark.parametrize("kept", [0, 1], ids=["first", "second"])
@pytest.mark.durable
async def test_notices_and_answers_of_a_turn_go_with_it_when_it_is_edited(
    connect: Connect, text: str, kept: int
) -> None:
    client = await connect(tell_or_ask)
    history = [] if not kept else [{"id": "u0", "role": "user", "content": "tell"}]
    if kept:
        await client.run(ask(run="r0", messages=history))
        thread = await wait_for_thread(client)
        history = thread["messages"]
    before = await send_command(client, "get", threadId="t1") if kept else {"notices": [], "answers": []}
    await client.run(ask(messages=[*history, {"id": "u1", "role": "user", "content": text}]))
    if text == "ask":
        answer = {"interruptId": "i1", "status": "resolved", "payload": "red"}
        await client.run(ask(run="r2", messages=[], resume=[answer]))
    thread = await wait_for_thread(client)
    assert (thread["notices"], thread["answers"]) != (before["notices"], before["answers"])
    await client.run(ask(run="r3", messages=[*history, {"id": "u1", "role": "user", "content": "edited"}]))
    thread = await wait_for_thread(client, lambda thread: thread["messages"][-1]["id"] == "r3-answer")
    assert (thread["notices"], thread["answers"]) == (before["notices"], before["answers"])


async def test_a_thread_says_which_calls_wait_for_an_approval(connect: Connect) -> None:
    client = await connect(team())
    (interrupt,) = interrupts(await client.run(ask(text='call pay {"amount": 5}')))
    thread = await wait_for_thread(client)
    assert thread["waiting"] == [interrupt]
    fork = await send_command(client, "fork", threadId="t1", messageId=thread["messages"][-1]["id"])
    assert (await send_command(client, "get", threadId=fork["threadId"]))["waiting"] == []
    await client.run(ask(run="r2", messages=[], resume=[answer(interrupt, approved=True)]))
    await wait_for_thread(client, lambda thread: (thread["status"], thread["waiting"]) == ("user_turn", []))


async def yield_answer(run_input: RunAgentInput) -> AsyncIterator[Item]:
    yield TextMessageChunkEvent(message_id=f"answer-{run_input.run_id}", delta="It rains.")


async def test_a_thread_says_which_run_has_made_a_message(connect: Connect) -> None:
    client = await connect(yield_answer)
    first = await run_and_wait(client, ask(run="r1", messages=[QUESTION]))
    assert first["runs"] == {"answer-r1": "r1"}
    more = {"id": "m9", "role": "user", "content": "And now?"}
    thread = await run_and_wait(client, ask(run="r2", messages=[*first["messages"], more]))
    assert thread["runs"] == {"answer-r1": "r1", "answer-r2": "r2"}
    delta = await send_command(client, "delta", threadId="t1", since=first["continuationToken"])
    assert delta["runs"] == {"answer-r2": "r2"}
    _, shown, *_ = await client.run(ask(run="shown", messages=[]))
    assert shown["messages"] == thread["messages"]
    assert [message.keys() for message in shown["messages"]] == [{"id", "role", "content"}] * 4
    edited = {**thread["messages"][1], "content": "It snows."}
    thread = await run_and_wait(client, ask(run="r3", messages=[thread["messages"][0], edited, more]))
    assert thread["runs"] == {"answer-r3": "r3"}


async def show_an_earlier_message_late(run_input: RunAgentInput) -> AsyncIterator[Item]:
    yield TextMessageChunkEvent(message_id="second", delta="Two.")
    answers = [AssistantMessage(id="first", content="One."), AssistantMessage(id="second", content="Two.")]
    yield MessagesSnapshotEvent(messages=[*run_input.messages, *answers])


async def test_a_thread_has_the_order_of_the_last_snapshot_wherever_it_is_read(connect: Connect) -> None:
    client = await connect(show_an_earlier_message_late)
    thread = await run_and_wait(client, ask())
    assert [message["id"] for message in thread["messages"][1:]] == ["first", "second"]
    transcript = (await send_command(client, "transcript", threadId="t1"))["transcript"]
    assert transcript.index("One.") < transcript.index("Two.")
    reload = await client.run(ask(run="r2", messages=[]))
    assert reload[1]["messages"] == thread["messages"]


async def test_a_thread_comes_without_its_messages(connect: Connect) -> None:
    client = await connect(silent)
    await store_conversation(store_of(client), title="Sums", state={"n": 1})
    await send_command(client, "feedback", threadId="t1", messageId="m4", sentiment="positive")
    whole = await send_command(client, "get", threadId="t1", messages=True)
    assert whole.pop("messages") == list(TALK)
    assert whole.pop("runs").keys() == {"m1", "m2", "m3", "m4"}
    brief = await send_command(client, "get", threadId="t1", messages=False)
    assert brief == whole
    delta = await send_command(client, "delta", threadId="t1", since=brief["continuationToken"])
    assert delta["messages"] == []
    said = (await refusal(client, "get", threadId="t1", messages="no")).message
    assert said == "command.messages: must be true or false"


@pytest.mark.durable
async def test_a_long_thread_is_read_page_by_page_from_its_end(connect: Connect) -> None:
    client = await connect(silent)
    await store_conversation(store_of(client), title="Sums", state={"n": 1})
    whole = await send_command(client, "get", threadId="t1")
    last = await send_command(client, "get", threadId="t1", limit=3)
    assert last.pop("before") == "m2"
    assert last.pop("runs").keys() == {"m2", "m3", "m4"}
    assert last == {**{name: whole[name] for name in whole.keys() - {"runs"}}, "messages": list(TALK[1:])}
    first = await send_command(client, "get", threadId="t1", limit=3, before="m2")
    assert ("before" in first, first["messages"]) == (False, [TALK[0]])
    assert (await send_command(client, "get", threadId="t1", before="m4"))["messages"] == list(TALK[:3])
    assert (await send_command(client, "get", threadId="t1", limit=4)) == whole
    assert "messages" not in await send_command(client, "get", threadId="t1", limit=1, messages=False)


async def test_a_delta_since_a_page_has_what_came_after_it(connect: Connect) -> None:
    client = await connect(yield_answer)
    await store_conversation(store_of(client))
    page = await send_command(client, "get", threadId="t1", limit=1)
    await client.run(ask(run="r2", messages=[{"id": "m9", "role": "user", "content": "And now?"}]))
    await wait_for_thread(client, lambda thread: (thread["status"], len(thread["messages"])) == ("user_turn", 6))
    delta = await send_command(client, "delta", threadId="t1", since=page["continuationToken"])
    assert [message["id"] for message in delta["messages"]] == ["m9", "answer-r2"]
    last = await send_command(client, "get", threadId="t1", limit=2)
    assert (last["messages"], last["before"]) == (delta["messages"], "m9")


async def test_a_page_that_cannot_be_read_is_refused(connect: Connect) -> None:
    client = await connect(silent)
    await store_conversation(store_of(client))
    refused = await refusal(client, "get", threadId="t1", before="m9")
    assert refused.message == "before: must be the id of a message of this thread."
    assert (await refusal(client, "get", threadId="t2", limit=1)).code == "THREAD_NOT_FOUND"
