"""The conversation loop by itself: an engine, a translator into plain texts, and a client that a test speaks for."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

import pytest
from ag_ui.core import (
    EventType,
    Interrupt,
    RunAgentInput,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    Tool,
    ToolCallEndEvent,
    ToolCallStartEvent,
    ToolMessage,
)

from agui_container.ports import Item
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.transports.conversation.approvals import decision
from agui_container.transports.conversation.events import Event, Failed, Outcome
from agui_container.transports.conversation.loop import ConversationLoop
from agui_container.transports.conversation.pending import Answer, PendingCalls, call_id_of, result_message
from agui_container.transports.conversation.translator import Cancellation, ClientConnection, Opening
from tests.engine.doubles import WAIT, asking, caller, make_service, raises_code
from tests.requirements import requirement

LOOK = Tool(name="look", description="Look.", parameters={"type": "object", "properties": {}})
CALL = "c1"
QUESTION = "q1"

Said = Answer | Cancellation
GeneratorAgent = Callable[[RunAgentInput], AsyncIterator[Item]]


class TextTranslator:
    """A translator whose messages are words. Its client says answers as they are."""

    def __init__(self, timeout_ms: int | None = None) -> None:
        self._timeouts = {} if timeout_ms is None else {LOOK.name: timeout_ms}

    def open(self, request: str) -> Opening[str]:
        if not request:
            raise AppError(ErrorCode.VALIDATION_ERROR, "request: expected a text.")
        run_input = asking(text=request).model_copy(update={"tools": [LOOK]})
        return Opening(run_input, 1, ["admitted"], timeouts_ms=self._timeouts)

    def feed(self, kind: EventType, event: Event) -> Sequence[str]:
        return [event["delta"]] if kind is EventType.TEXT_MESSAGE_CONTENT else []

    def ask(self, pending: PendingCalls) -> Sequence[str]:
        return [f"ask {call_id}" for call_id in [*pending.tools, *pending.approvals]]

    def answers(self, message: Said) -> Sequence[Said]:
        return [message]

    def refuse(self, answer: Answer) -> Sequence[str]:
        return [f"refuse {call_id_of(answer)}"]

    def settle(self, answers: Sequence[Answer]) -> Sequence[str]:
        return [f"settle {call_id_of(answer)}" for answer in answers]

    def end(self, outcome: Outcome) -> Sequence[str]:
        code = f" {outcome.error.code}" if isinstance(outcome, Failed) else ""
        return [f"{type(outcome).__name__}{code}"]


class TextClient(ClientConnection[Said, str]):
    """A client in the test's own event loop. ``received`` are its messages."""

    def __init__(self) -> None:
        self.caller = caller()
        self.received: list[str] = []
        self._said: asyncio.Queue[Said | None] = asyncio.Queue()
        self._changed = asyncio.Condition()

    def say(self, *said: Said | None) -> None:
        """Say this. None is the last word."""
        for each in said:
            self._said.put_nowait(each)

    async def until(self, wanted: str) -> list[str]:
        """Wait for a message, and return all up to now."""
        async with asyncio.timeout(WAIT), self._changed:
            await self._changed.wait_for(lambda: wanted in self.received)
        return self.received

    async def receive(self) -> Said | None:
        return await self._said.get()

    async def send(self, messages: Sequence[str]) -> None:
        self.received += messages
        async with self._changed:
            self._changed.notify_all()


class TextTalk:
    """One conversation with an agent.

    Attributes:
        client: its client.
        inputs: what the agent was given, run by run.
    """

    def __init__(
        self, agent: Callable[[RunAgentInput], AsyncIterator[Item]], translator: TextTranslator | None = None
    ) -> None:
        self.inputs: list[RunAgentInput] = []

        async def recorded(given: RunAgentInput) -> AsyncIterator[Item]:
            self.inputs.append(given)
            async for item in agent(given):
                yield item

        self.service = make_service(recorded)
        self.service.health.start()
        self.client = TextClient()
        self._loop = ConversationLoop[str, Said, str](self.service, self.client, translator or TextTranslator())

    def begin(self, request: str = "hello") -> "asyncio.Task[None]":
        return asyncio.create_task(self._loop.serve(request))


async def looker(given: RunAgentInput) -> AsyncIterator[Item]:
    """Call the client's tool, and repeat its result."""
    last = given.messages[-1]
    if isinstance(last, ToolMessage):
        yield str(last.content)
        return
    yield ToolCallStartEvent(tool_call_id=CALL, tool_call_name=LOOK.name)
    yield ToolCallEndEvent(tool_call_id=CALL)


async def insister(given: RunAgentInput) -> AsyncIterator[Item]:
    """Ask the same question in every run, whatever the answer is."""
    outcome = RunFinishedInterruptOutcome(interrupts=[Interrupt(id=QUESTION, reason="choice")])
    yield RunFinishedEvent(thread_id=given.thread_id, run_id=given.run_id, outcome=outcome)


@requirement("protocol.loop")
async def test_a_conversation_continues_with_the_result_of_the_clients_tool() -> None:
    talk = TextTalk(looker)
    task = talk.begin()
    await talk.client.until(f"ask {CALL}")
    talk.client.say(result_message(CALL, "seen"))
    await task
    assert talk.client.received == ["admitted", f"ask {CALL}", f"settle {CALL}", "seen", "Completed"]
    assert [tool.name for tool in talk.inputs[1].tools or ()] == [LOOK.name]


@requirement("protocol.loop")
async def test_an_answer_to_a_call_that_does_not_wait_is_refused_and_a_second_one_as_well() -> None:
    talk = TextTalk(looker)
    task = talk.begin()
    await talk.client.until(f"ask {CALL}")
    talk.client.say(decision(CALL, is_approved=True), result_message("other", "?"), result_message(CALL, "seen"))
    await task
    assert [text for text in talk.client.received if text.startswith("refuse")] == [f"refuse {CALL}", "refuse other"]
    assert "seen" in talk.client.received


@requirement("protocol.loop")
async def test_a_tool_that_exceeds_its_timeout_is_answered_with_an_error() -> None:
    talk = TextTalk(looker, TextTranslator(timeout_ms=1))
    await talk.begin()
    assert talk.client.received[-2:] == ["Error: the tool did not answer within 1 ms.", "Completed"]


@requirement("protocol.loop")
@pytest.mark.parametrize("last_word", [Cancellation(), None])
async def test_a_client_that_gives_up_ends_the_conversation_though_the_agent_asks_again(
    last_word: Cancellation | None,
) -> None:
    talk = TextTalk(insister)
    task = talk.begin()
    await talk.client.until(f"ask {QUESTION}")
    talk.client.say(last_word)
    async with asyncio.timeout(WAIT):
        await task
    assert talk.client.received[-1] == "Cancelled"
    entry = (talk.inputs[1].resume or [])[0]
    assert (entry.status, talk.inputs[1].forwarded_props) == ("cancelled", {"approvals": {"onDenial": "cancel"}})


@requirement("protocol.loop")
async def test_a_request_that_cannot_be_translated_ends_with_its_error_and_begins_no_run() -> None:
    talk = TextTalk(looker)
    await talk.begin("")
    assert (talk.client.received, talk.inputs) == (["Failed VALIDATION_ERROR"], [])


@requirement("protocol.loop")
async def test_a_client_that_waits_is_told_that_the_server_shuts_down() -> None:
    talk = TextTalk(looker)
    task = talk.begin()
    await talk.client.until(f"ask {CALL}")
    await talk.service.drain(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert talk.client.received[-1] == "Failed SHUTTING_DOWN"


@requirement("protocol.loop")
async def test_a_request_that_is_admitted_for_a_client_without_a_connection_raises_its_refusal() -> None:
    talk = TextTalk(looker)
    loop = ConversationLoop[str, Said, str](talk.service, talk.client, TextTranslator())
    with raises_code(ErrorCode.VALIDATION_ERROR):
        await loop.admit("")
    assert (talk.client.received, loop.is_admitted) == ([], False)


@requirement("protocol.loop")
async def test_a_client_without_a_connection_is_shown_a_run_that_another_client_has_begun() -> None:
    talk = TextTalk(insister)
    (await talk.service.admit(asking(), caller())).close()
    loop = ConversationLoop[str, Said, str](talk.service, talk.client, TextTranslator())
    loop.half_close(cancels=False)
    await loop.forward(await talk.service.attach(caller(), "t1", "r1", 0))
    assert talk.client.received == [f"ask {QUESTION}", "Unanswered"]


@requirement("protocol.loop")
async def test_the_loop_says_if_it_keeps_an_answer() -> None:
    talk = TextTalk(looker)
    loop = ConversationLoop[str, Said, str](talk.service, talk.client, TextTranslator())
    task = asyncio.create_task(loop.answer("hello"))
    await talk.client.until(f"ask {CALL}")
    assert not await loop.take([result_message("unknown", "seen")])
    assert await loop.take([result_message(CALL, "seen")])
    await task


@requirement("protocol.loop")
async def test_calls_stay_open_if_the_protocol_says_so_of_a_client_that_sends_no_more() -> None:
    talk = TextTalk(insister)
    loop = ConversationLoop[str, Said, str](talk.service, talk.client, TextTranslator())
    loop.half_close(cancels=False)
    await loop.answer("hello")
    assert talk.client.received == ["admitted", f"ask {QUESTION}", "Unanswered"]
    assert len(talk.inputs) == 1
