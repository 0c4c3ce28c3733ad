"""Turns of an agent whose steps are calls and questions, in every order, and people that answer in every way.

The check of a turn is the list of its side effects. Agents with a model are in ``tests.agents.turns_of_models``.
"""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pytest
from ag_ui.core import (
    BaseEvent,
    Interrupt,
    ResumeEntry,
    RunAgentInput,
    RunErrorEvent,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    TextMessageContentEvent,
    ToolCallResultEvent,
    ToolMessage,
)

from agui_container import RunContext, ToolError, tool
from agui_container.agents.gate import journal
from agui_container.conversation.stored_parts import CUT_OFF
from agui_container.engine.engine import Engine
from agui_container.ports import Item, RunInterrupted
from agui_container.protocol.errors import AppError
from agui_container.testing import EVENT, user_input
from tests.contexts import of_type
from tests.engine.doubles import caller, eventually

EFFECTS: list[str] = []
"""Side effects of the tools, in order. Tests clear it."""

POLICY = '[{"tool_pattern": "pay", "policy": "ask"}, {"tool_pattern": "refund", "policy": "ask"}]'


@tool
async def pay(amount: int) -> str:
    """Pay an amount, and never come back if it is 0."""
    EFFECTS.append(f"pay {amount}")
    if not amount:
        await asyncio.Event().wait()
    return f"paid {amount}"


@tool
def refund(amount: int) -> str:
    """Refund an amount."""
    EFFECTS.append(f"refund {amount}")
    return f"refunded {amount}"


@tool
async def look(amount: int) -> str:
    """Look something up, which needs no approval, and never come back the first time that it is 0."""
    EFFECTS.append(f"look {amount}")
    if not amount and EFFECTS.count("look 0") == 1:
        await asyncio.Event().wait()
    return f"looked {amount}"


@tool
async def hang() -> str:
    """Start, and never come back."""
    EFFECTS.append("hang")
    await asyncio.Event().wait()
    return ""


TOOLS = f"{__name__}:tools"
tools = (pay, refund, look, hang)

# --- agents -----------------------------------------------------------------------------------------------------------

Step = str
"""A call such as ``pay 1``, or ``ask``, a question of the agent's own."""

ORDERS: dict[str, tuple[Step, ...]] = {
    "two approvals": ("pay 1", "refund 2"),
    "two equal approvals": ("pay 1", "pay 1"),
    "a call before an approval": ("look 1", "pay 2"),
    "a call behind an approval": ("pay 1", "look 2"),
    "an approval and a question": ("pay 1", "ask"),
    "a question and an approval": ("ask", "pay 1"),
    "a question between": ("look 1", "ask", "pay 2", "ask", "refund 3"),
    "equal calls and a question": ("look 1", "look 1", "pay 2", "ask"),
}


def answer_to(at: int, input: RunAgentInput) -> str:
    answers = {entry.interrupt_id: entry for entry in input.resume or ()}
    id_ = f"question-{at}"
    if id_ not in answers:
        raise RunInterrupted([Interrupt(id=id_, reason="choice", message="Which one?")])
    return str(answers[id_].payload)


async def take(step: Step, at: int, input: RunAgentInput, ctx: RunContext) -> str:
    if step == "ask":
        return answer_to(at, input)
    name, amount = step.split()
    try:
        return str(await ctx.call_tool(name, {"amount": int(amount)}))
    except ToolError as error:
        return f"({error})"


def in_order(steps: Sequence[Step]) -> Callable[[RunAgentInput, RunContext], AsyncIterator[Item]]:
    async def agent(input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        taken = [await take(step, at, input, ctx) for at, step in enumerate(steps)]
        yield ", ".join(taken)

    return agent


def gathered(steps: Sequence[Step]) -> Callable[[RunAgentInput, RunContext], AsyncIterator[Item]]:
    async def agent(input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        yield ", ".join(await asyncio.gather(*[take(step, at, input, ctx) for at, step in enumerate(steps)]))

    return agent


def in_a_thread(steps: Sequence[Step]) -> Callable[[RunAgentInput, RunContext], Iterator[Item]]:
    def agent(input: RunAgentInput, ctx: RunContext) -> Iterator[Item]:
        taken = [taken_in_thread(step, at, input, ctx) for at, step in enumerate(steps)]
        yield ", ".join(taken)

    return agent


def taken_in_thread(step: Step, at: int, input: RunAgentInput, ctx: RunContext) -> str:
    if step == "ask":
        return answer_to(at, input)
    name, amount = step.split()
    try:
        return str(ctx.call_tool(name, {"amount": int(amount)}).result())
    except ToolError as error:
        return f"({error})"


def in_a_group(steps: Sequence[Step]) -> Callable[[RunAgentInput, RunContext], AsyncIterator[Item]]:
    async def agent(input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(take(step, at, input, ctx)) for at, step in enumerate(steps)]
        yield ", ".join(task.result() for task in tasks)

    return agent


AGENTS = {"in order": in_order, "gathered": gathered, "in a thread": in_a_thread, "in a group": in_a_group}

# --- people -----------------------------------------------------------------------------------------------------------

Ask = Callable[[RunAgentInput], Awaitable[Sequence[BaseEvent]]]
"""Sends the input of a run to a server, and returns the events of the run."""


def asks(service: Engine) -> Ask:
    async def ask(run_input: RunAgentInput) -> Sequence[BaseEvent]:
        try:
            reader = await service.admit(run_input, caller())
        except AppError as error:
            return [RunErrorEvent(code=error.code, message=error.message)]
        return [EVENT.validate_json(data) async for batch in reader for data in batch.data]

    return ask


@dataclass
class Client:
    """A client of one thread. ``questions`` are the ids of all interrupts that were asked."""

    ask: Ask
    thread_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    events: Sequence[BaseEvent] = ()
    questions: dict[str, Interrupt] = field(default_factory=dict)

    async def send(self, text: str, forwarded_props: object = None) -> None:
        await self.run(user_input(text).model_copy(update={"forwarded_props": forwarded_props}))

    async def resume(self, entries: Sequence[ResumeEntry], forwarded_props: object = None) -> None:
        changes = {"messages": [], "resume": list(entries), "forwarded_props": forwarded_props}
        await self.run(user_input("").model_copy(update=changes))

    async def run(self, run_input: RunAgentInput) -> None:
        self.events = await self.ask(run_input.model_copy(update={"thread_id": self.thread_id}))
        self.questions |= {interrupt.id: interrupt for interrupt in self.waiting}

    @property
    def waiting(self) -> Sequence[Interrupt]:
        end = self.events[-1]
        outcome = end.outcome if isinstance(end, RunFinishedEvent) else None
        return outcome.interrupts if isinstance(outcome, RunFinishedInterruptOutcome) else ()

    @property
    def outcome(self) -> str:
        end = self.events[-1]
        if isinstance(end, RunFinishedEvent):
            return end.outcome.type if end.outcome else "success"
        assert isinstance(end, RunErrorEvent)
        return str(end.code)

    @property
    def text(self) -> str:
        return "".join(event.delta for event in self.events if isinstance(event, TextMessageContentEvent))


@dataclass(kw_only=True)
class ServedClient(Client):
    service: Engine


def entry(interrupt: Interrupt, how: str) -> ResumeEntry:
    if how == "cancelled":
        return ResumeEntry(interrupt_id=interrupt.id, status="cancelled")
    payload: object = "green"
    if interrupt.tool_call_id is not None:
        payload = {"approved": how != "denied"} | ({"editedArgs": {"amount": 9}} if how == "edited" else {})
    return ResumeEntry(interrupt_id=interrupt.id, status="resolved", payload=payload)


WAYS = ("together", "one by one", "reversed", "denied", "edited", "cancelled", "resent")


async def answer_all(
    client: Client, way: str, restarted: Callable[[], Awaitable["ServedClient"]] | None = None
) -> None:
    """Answer until nothing waits. ``restarted`` gives a client of the server for each answer, if it is another one."""
    sent: list[ResumeEntry] = []
    for _ in range(20):
        waiting = client.waiting
        if not waiting:
            break
        if way == "one by one":
            waiting = waiting[:1]
        elif way == "reversed":
            waiting = waiting[-1:]
        entries = [entry(interrupt, way) for interrupt in waiting]
        sent += entries
        client.ask = (await restarted()).ask if restarted else client.ask
        await client.resume(entries)
        if way == "resent":
            await client.resume(entries)
    if way == "resent":
        text = client.text
        await client.resume(sent)
        assert (client.outcome, client.text) == ("success", ""), text


async def answer_in_two_places(tabs: Sequence[Client]) -> None:
    """Answer until nothing waits: two tabs show the same questions, and each decides its own at the same time."""
    for _ in range(20):
        waiting = next((tab.waiting for tab in tabs if tab.waiting), ())
        if not waiting:
            break
        decided = [[entry(interrupt, "together") for interrupt in waiting[at::2]] for at in range(2)]
        await asyncio.gather(*[resume_when_free(tab, each) for tab, each in zip(tabs, decided, strict=True) if each])
        for tab in tabs:
            await tab.resume([])


async def resume_when_free(tab: Client, entries: Sequence[ResumeEntry]) -> None:
    """Answer, and once more while the run of the other tab is active."""
    tab.events = ()
    while not tab.events or tab.outcome == "THREAD_BUSY":
        await tab.resume(entries)
        await asyncio.sleep(0)


async def cut_off(client: ServedClient, how: str) -> None:
    """Approve a payment of 0, end its run by a cancel or by a run that interrupts it, and send the answer again."""
    await client.send("pay 0")
    answers = [entry(interrupt, "together") for interrupt in client.waiting]
    run = asyncio.create_task(client.resume(answers))
    await eventually(lambda: "pay 0" in EFFECTS)
    asked: Sequence[Interrupt] = ()
    if how == "interrupt":
        other = Client(client.ask, client.thread_id)
        await other.send("once more", {"onBusy": "interrupt"})
        asked = other.waiting
    else:
        await client.service.runs.cancel(caller(), client.thread_id, None)
    await run
    assert client.outcome == "cancelled"
    assert [event.content for event in of_type(client.events, ToolCallResultEvent)] == [CUT_OFF]
    await client.resume(answers)
    assert (client.waiting, EFFECTS) == (asked, ["pay 0"])
    messages = await client.service.threads.messages_since(caller(), client.thread_id, lambda _: False)
    assert [message.content for message in messages if isinstance(message, ToolMessage)] == [CUT_OFF]


async def answer_when_forgotten(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answer, and once more when the journal has forgotten the turn. Nothing is run then."""
    answers = [entry(interrupt, "together") for interrupt in client.waiting]
    monkeypatch.setattr(journal, "LIFETIME", 0.0)
    await client.resume(answers)
    effects = list(EFFECTS)
    assert client.outcome == "success"
    await client.resume(answers)
    assert (client.outcome, client.text, EFFECTS) == ("VALIDATION_ERROR", "", effects)
    assert [event.message for event in of_type(client.events, RunErrorEvent)] == [
        "resume.0.interruptId: this interrupt no longer waits for an answer, and nothing was run; cancel it to go on."
    ]
    await client.resume([ResumeEntry(interrupt_id=each.interrupt_id, status="cancelled") for each in answers])
    assert (client.outcome, client.text, EFFECTS) == ("success", "", effects)


def expected_effects(steps: Sequence[Step], way: str) -> list[str]:
    effects = []
    for step in steps:
        name = step.split()[0]
        if name == "look":
            effects.append(step)
        elif name != "ask" and way == "edited":
            effects.append(f"{name} 9")
        elif name != "ask" and way not in {"denied", "cancelled"}:
            effects.append(step)
    return sorted(effects)


def expected_questions(steps: Sequence[Step]) -> int:
    return sum(not step.startswith("look") for step in steps)


def check(case: object, client: Client, steps: Sequence[Step], way: str) -> None:
    assert (case, client.outcome) == (case, "success")
    assert (case, sorted(EFFECTS)) == (case, expected_effects(steps, way))
    assert (case, len(client.questions)) == (case, expected_questions(steps))
