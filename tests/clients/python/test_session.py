"""Sessions with the built-in assistant, over both transports."""

import pytest
from ag_ui.core import BaseEvent, RunFinishedEvent, RunStartedEvent, TextMessageContentEvent

from agui_client import (
    Approval,
    Decision,
    Outcome,
    RunFailedError,
    RunRefusedError,
    Session,
    SessionStatus,
    ToolCallEvent,
    client_tool,
)

pytestmark = [pytest.mark.wire, pytest.mark.processes]


def texts(session: Session) -> list[object]:
    return [each.content for each in session.messages if each.role in {"user", "assistant"} and each.content]


async def test_events_come_as_they_happen_and_end_with_the_run(url: str) -> None:
    async with Session.start("stream 3", url=url) as session:
        assert session.status is SessionStatus.AGENT_TURN
        events = [event async for event in session.events()]
    assert isinstance(events[0], RunStartedEvent)
    assert isinstance(events[-1], RunFinishedEvent)
    deltas = [event.delta for event in events if isinstance(event, TextMessageContentEvent)]
    assert "".join(deltas) == "hello world, " * 3
    assert texts(session) == ["stream 3", "hello world, " * 3]
    assert (session.status, session.outcome) == (SessionStatus.USER_TURN, Outcome.SUCCESS)
    assert [(usage.model, usage.output_tokens) for usage in session.usage] == [("offline", 6)]


async def test_a_conversation_of_several_turns_is_one_thread(url: str) -> None:
    async with Session(url) as session:
        assert session.status is SessionStatus.NOT_STARTED
        await session.send_text("calculate 6*7").run()
        await session.send_text("think about rain").run()
        again = await Session.from_id(session.thread_id, url=url)
        assert again.messages == session.messages
        assert again.title == "calculate 6*7"
        await again.aclose()
    assert texts(session) == [
        "calculate 6*7",
        "The result of calculate is 42.",
        "think about rain",
        "I have thought about rain.",
    ]


async def test_client_tools_are_run_and_their_results_sent(url: str) -> None:
    seen: list[tuple[str, object]] = []

    @client_tool
    async def get_weather(city: str, days: int = 1) -> dict[str, object]:
        """The weather in a city."""
        return {"city": city, "days": days}

    def log(event: BaseEvent) -> None:
        if isinstance(event, ToolCallEvent):
            seen.append((event.name, event.input))

    async with Session.start('call get_weather {"city": "Berlin"}', url=url, client_tools=[get_weather]) as session:
        await session.run(on_event=log)
    assert seen == [("get_weather", {"city": "Berlin"})]
    assert texts(session)[-1] == 'The result of get_weather is {"city":"Berlin","days":1}.'


@pytest.mark.parametrize(
    ("decision", "answer"),
    [
        (True, "The result of current_time is 20"),
        (False, "The call of current_time failed: the user denied this call."),
        (
            Decision(approved=False, reason="too late"),
            "The call of current_time failed: the user denied this call: too",
        ),
        (Decision(approved=True, edited_args={"timezone": "Nowhere"}), "The call of current_time failed: "),
    ],
)
async def test_approvals_are_asked_for_and_answered(url: str, decision: Decision | bool, answer: str) -> None:  # noqa: FBT001 - True is an answer
    asked: list[Approval] = []

    async def decide(approval: Approval) -> Decision | bool:
        asked.append(approval)
        return decision

    async with Session.start("what time is it", url=url) as session:
        await session.run(on_approval=decide)
    (approval,) = asked
    assert (approval.tool_name, approval.arguments, approval.reason) == ("current_time", {}, "time is money")
    assert str(texts(session)[-1]).startswith(answer)


async def test_two_approvals_are_answered_in_a_run_each(url: str) -> None:
    calls = ['call current_time {"timezone": "UTC"}', 'call current_time {"timezone": "Nowhere"}']
    async with Session.start("\n".join(calls), url=url) as session:
        await session.run()
        first, second = [each.id for each in session.interrupts]
        await session.answer(first, Decision(approved=False, reason="too dear")).run()
        assert [each.id for each in session.interrupts] == [second]
        await session.answer(second, payload=False).run()
        assert session.interrupts == []
    results = [each.content for each in session.messages if each.role == "tool"]
    assert results == ["Error: the user denied this call: too dear", "Error: the user denied this call."]
    assert len(texts(session)) == 2


async def test_a_run_that_failed_raises_with_the_servers_code(url: str) -> None:
    async with Session.start("fail", url=url) as session:
        with pytest.raises(RunFailedError) as caught:
            await session.run()
        assert (caught.value.code, caught.value.retryable) == ("MODEL_ERROR", True)
        assert caught.value.request_id
        assert session.outcome is Outcome.ERROR
        await session.send_text("calculate 1+1").run()
    assert texts(session)[-1] == "The result of calculate is 2."


async def test_a_refused_run_is_sent_again_by_the_next_call(url: str) -> None:
    first = Session.start("wait 600", url=url)
    second = Session.start("stream 1", url=url, thread_id=first.thread_id)
    async with first, second:
        async for event in first.events():
            if isinstance(event, TextMessageContentEvent):
                with pytest.raises(RunRefusedError) as caught:
                    await second.run()
                assert (caught.value.code, caught.value.retryable) == ("THREAD_BUSY", True)
                await first.cancel()
        await second.run()
    assert texts(second)[-1] == "hello world, "


async def test_a_timeout_ends_the_call_and_the_run_can_be_followed_again(url: str) -> None:
    async with Session.start("wait 600", url=url) as session:
        async for event in session.events():
            if isinstance(event, TextMessageContentEvent):
                break
        with pytest.raises(TimeoutError):
            await session.run(timeout=0.2)
        assert session.status is SessionStatus.AGENT_TURN
        await session.cancel()
        await session.run()
    assert session.outcome is Outcome.CANCELLED
    assert texts(session) == ["wait 600", "Waiting 600 s. "]
