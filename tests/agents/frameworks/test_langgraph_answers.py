"""Answers to the interrupts of a LangGraph graph, and what is forgotten with a thread."""

from collections.abc import Sequence

import pytest
from ag_ui.core import (
    Interrupt,
    MessagesSnapshotEvent,
    ResumeEntry,
    RunAgentInput,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    TextMessageContentEvent,
    ToolCallResultEvent,
    UserMessage,
)
from ag_ui_langgraph import LangGraphAgent
from langgraph.checkpoint.memory import InMemorySaver

from agui_container.agents.as_agent import thread_cleanup_of
from agui_container.agents.frameworks.langgraph_events import Graph
from agui_container.ports import Item
from agui_container.protocol.errors import AppError, ErrorCode
from tests.agents.frameworks import langgraph_agents
from tests.agents.frameworks.test_langgraph import items, load_framework_agent
from tests.contexts import of_type, run_input

pytestmark = pytest.mark.packages


class Thread:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph.copy({"checkpointer": InMemorySaver()})
        self.waits_for: dict[str, str] = {}
        self.told: list[tuple[str, object]] = []

    async def ask(self, request: RunAgentInput, *entries: ResumeEntry) -> list[Item]:
        """A run. Notes the conversation as the client has it then, and the open interrupts by what they ask."""
        done = await items(self.graph, request.model_copy(update={"resume": list(entries) or None}))
        last = done[-1]
        assert isinstance(last, RunFinishedEvent)
        asked = last.outcome.interrupts if isinstance(last.outcome, RunFinishedInterruptOutcome) else []
        self.waits_for = {str(interrupt.message): interrupt.id for interrupt in asked}
        for snapshot in of_type(done, MessagesSnapshotEvent):
            self.told = [(message.role, message.content) for message in snapshot.messages if message.content]
        return done

    def answer(self, question: str, payload: object) -> ResumeEntry:
        return ResumeEntry(interrupt_id=self.waits_for[question], status="resolved", payload=payload)


async def test_every_answer_goes_to_the_interrupt_that_it_names() -> None:
    thread = Thread(langgraph_agents.both)
    await thread.ask(run_input("go"))
    await thread.ask(run_input(), thread.answer("right?", "R"), thread.answer("left?", "L"))
    assert thread.waits_for == {}
    assert sorted(thread.told) == [("assistant", "left: L"), ("assistant", "right: R"), ("user", "go")]


async def test_an_interrupt_without_an_answer_stays_open() -> None:
    thread = Thread(langgraph_agents.both)
    await thread.ask(run_input("go"))
    await thread.ask(run_input(), thread.answer("right?", "R"))
    assert [*thread.waits_for] == ["left?"]
    assert thread.told == [("user", "go"), ("assistant", "right: R")]


async def test_an_answer_to_something_else_answers_nothing() -> None:
    thread = Thread(langgraph_agents.agent)
    await thread.ask(run_input("use roll_if_allowed"))
    (question,), before = thread.waits_for, dict(thread.waits_for)
    stray = thread.answer(question, {"approved": True}).model_copy(update={"interrupt_id": "other"})
    assert of_type(await thread.ask(run_input(), stray), ToolCallResultEvent) == []
    assert thread.waits_for == before
    with pytest.raises(AppError, match=r"^resume\.1\.interruptId: this interrupt is answered twice\.$"):
        await thread.ask(run_input(), *[thread.answer(question, {"approved": True})] * 2)


async def test_an_adapter_with_ids_of_its_own_is_given_its_own_answers() -> None:
    def named(_: LangGraphAgent, interrupts: Sequence[object]) -> list[Interrupt]:
        return [Interrupt(id=f"my-{number}", reason="mine") for number, _ in enumerate(interrupts)]

    graph = langgraph_agents.agent.copy({"checkpointer": InMemorySaver()})
    kind = type("Named", (LangGraphAgent,), {"_interrupts_to_agui": named})
    agent = kind(name="named", graph=graph, emit_interrupt_outcome=True)
    await items(agent, run_input("use roll_if_allowed"))
    answer = ResumeEntry(interrupt_id="my-0", status="resolved", payload={"approved": True})
    done = await items(agent, run_input("use roll_if_allowed").model_copy(update={"resume": [answer]}))
    assert [event.content for event in of_type(done, ToolCallResultEvent)] == ["rolled 6"]


async def test_a_user_message_beside_an_open_interrupt_is_kept_for_the_next_run() -> None:
    thread = Thread(langgraph_agents.agent)
    first, second = run_input("use roll_if_allowed"), UserMessage(id="meanwhile", content="count")
    await thread.ask(first)
    await thread.ask(run_input(*first.messages, second))
    (question,) = thread.waits_for
    await thread.ask(run_input(*first.messages, second), thread.answer(question, {"approved": True}))
    assert thread.told == [
        ("user", "use roll_if_allowed"),
        ("tool", "rolled 6"),
        ("assistant", "result: rolled 6"),
        ("user", "count"),
    ]
    done = await thread.ask(run_input(*first.messages, second))
    assert [event.delta for event in of_type(done, TextMessageContentEvent)] == ["2 messages"]


@pytest.mark.parametrize(("field", "name"), [("state", "state"), ("forwarded_props", "forwardedProps")])
async def test_fields_that_must_be_objects_are_refused_if_they_are_not(field: str, name: str) -> None:
    with pytest.raises(AppError) as caught:
        await items(langgraph_agents.agent, run_input("hi").model_copy(update={field: [1]}))
    assert (caught.value.code, caught.value.message) == (
        ErrorCode.VALIDATION_ERROR,
        f"{name}: must be an object for this agent.",
    )


async def test_a_deleted_thread_is_forgotten() -> None:
    thread = Thread(langgraph_agents.agent)
    rememberer = thread_cleanup_of(load_framework_agent(thread.graph))
    assert rememberer
    for owner, said in (("somebody else", "2 messages"), ("anonymous", "1 messages")):
        await items(thread.graph, run_input("say hi"))
        await rememberer.forget_thread(owner, "thread")
        request = run_input().model_copy(update={"messages": [UserMessage(id="new", content="count")]})
        assert [event.delta for event in of_type(await items(thread.graph, request), TextMessageContentEvent)] == [said]
