"""Fixture for tests of approvals: an assistant with a tool that needs an approval, and its client."""

import asyncio
from collections.abc import Mapping, Sequence
from itertools import count

from ag_ui.core import (
    BaseEvent,
    Interrupt,
    Message,
    ResumeEntry,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    ToolCallResultEvent,
    UserMessage,
)
from ag_ui.core import Tool as ToolSpec
from msgspec.structs import replace

from agui_container.agents.gate.journal import Journal
from agui_container.assistant.assistant import Assistant
from agui_container.ports import Item, Permission, PolicyDecision, RunContext
from agui_container.tools.function_tool import FunctionTool
from agui_core.transcript import Transcript
from tests.contexts import expanded, run_context, run_input
from tests.models.watched_model import WatchedModel

ASK = PolicyDecision(Permission.ASK, reason="it costs money", category="physical")
RULINGS = {"pay": ASK, "wipe": PolicyDecision(Permission.DENY, reason="never")}
START = 1_000_000.0


class ApprovalFixture:
    """An assistant with a tool that must be asked for, and what has happened there."""

    def __init__(self) -> None:
        self.now = START
        self.model = WatchedModel()
        self.paid: list[int] = []
        self.stuck = False
        self.started, self.may_pay = asyncio.Event(), asyncio.Event()
        schema: Mapping[str, object] = {"type": "object"}
        tools = (
            FunctionTool("pay", "Pay.", schema, self.pay),
            FunctionTool("look", "Look.", schema, lambda: "seen"),
            FunctionTool("wipe", "Wipe.", schema, self.paid.clear),
        )
        self.assistant = Assistant(self.model, tools, policy=self.policy, journal=Journal(lambda: self.now))
        self.history: list[Message] = []
        self.items: list[Item] = []
        self.props: dict[str, object] = {}
        self.new_id = map("id-{}".format, count(1)).__next__

    @staticmethod
    def policy(name: str) -> PolicyDecision:
        return RULINGS.get(name, PolicyDecision(Permission.ALLOW))

    async def pay(self, amount: int) -> str:
        self.paid.append(amount)
        self.started.set()
        if self.stuck:
            await self.may_pay.wait()
        return f"paid {amount}"

    async def start(
        self, *said: str, resume: Sequence[ResumeEntry] = (), ctx: RunContext | None = None, tools: tuple[str, ...] = ()
    ) -> Sequence[Item]:
        request = run_input(*said, tools=[ToolSpec(name=name, description="") for name in tools])
        request.messages = [*self.history, *request.messages]
        request.resume = list(resume) or None
        request.forwarded_props = self.props
        items = self.items = []
        ctx = replace(ctx or run_context(), new_id=self.new_id, emit=items.append)
        async for item in self.assistant.run(request, ctx):
            items += [item]  # after what was emitted before it
        return expanded(items)

    async def send(self, said: str, tools: tuple[str, ...] = ()) -> Sequence[Item]:
        items = await self.start(said, tools=tools)
        self.history.append(UserMessage(id=self.new_id(), content=said))
        self.keep(items)
        return items

    def keep(self, items: Sequence[Item]) -> None:
        """Add the messages of a run to the client's history."""
        transcript = Transcript(self.history)
        for event in items:
            if isinstance(event, BaseEvent):
                transcript.feed(event)
        self.history = transcript.messages


def results(items: Sequence[Item]) -> list[object]:
    return [item.content for item in items if isinstance(item, ToolCallResultEvent)]


def interrupts(items: Sequence[Item]) -> list[Interrupt]:
    last = items[-1]
    assert isinstance(last, RunFinishedEvent)
    return last.outcome.interrupts if isinstance(last.outcome, RunFinishedInterruptOutcome) else []


def answer(interrupt: Interrupt, **payload: object) -> ResumeEntry:
    return ResumeEntry(interrupt_id=interrupt.id, status="resolved", payload=payload)


def abandoned(interrupt: Interrupt) -> ResumeEntry:
    return ResumeEntry(interrupt_id=interrupt.id, status="cancelled")


async def ask_for_payments(fixture: ApprovalFixture, *amounts: int) -> list[Interrupt]:
    lines = [f'call pay {{"amount": {amount}}}' for amount in amounts]
    found = interrupts(await fixture.start("\n".join(lines)))
    assert len(found) == len(amounts)
    assert fixture.paid == []
    return found


def text_of(items: Sequence[Item]) -> str:
    return "".join(str(getattr(item, "delta", "")) for item in items)
