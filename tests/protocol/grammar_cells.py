"""Builders for tests that go through the tables of ``core.order`` cell by cell: one valid event of each class."""

from random import Random

from ag_ui.core import BaseEvent, RunErrorEvent, RunFinishedEvent, RunStartedEvent

from agui_container.protocol import grammar
from agui_container.protocol.grammar import ENTITIES, Entity, LifecycleState, Phase
from agui_container.protocol.validator import RunSequence
from agui_core.expander import IllegalEvent
from tests.protocol.random_walks import draw_fields

START = RunStartedEvent(thread_id="t", run_id="r")
FINISH = RunFinishedEvent(thread_id="t", run_id="r")
ERROR = RunErrorEvent(message="no")

PATHS: dict[LifecycleState, tuple[BaseEvent, ...]] = {
    LifecycleState.BEFORE: (),
    LifecycleState.ACTIVE: (START,),
    LifecycleState.FINISHED: (START, FINISH),
    LifecycleState.ERRORED: (START, ERROR),
}
"""Events that bring a run into each state."""

KEYS: dict[Entity, str] = {
    grammar.TEXT: "message_id",
    grammar.TOOL_CALL: "tool_call_id",
    grammar.REASONING_SPAN: "message_id",
    grammar.REASONING_MESSAGE: "message_id",
    grammar.STEP: "step_name",
    grammar.SUBAGENT: "subagent_run_id",
}
"""The field by which an event names each kind of entity."""

PLAIN = ("parent_message_id", "parent_subagent_run_id", "parent_tool_call_id", "subagent_run_id")


def event(kind: type[BaseEvent], **fields: object) -> BaseEvent:
    """Return a valid event of this class that refers only to what ``fields`` name."""
    drawn = draw_fields(kind, Random(1))  # noqa: S311 - a test's dice
    plain = {name: None for name in PLAIN if name in drawn and not kind.model_fields[name].is_required()}
    return kind(**{**drawn, **plain, **fields})


def of(kind: type[BaseEvent], key: str = "k", owner: str | None = None) -> BaseEvent:
    entity, _ = ENTITIES[kind]
    if entity is grammar.SUBAGENT:
        return event(kind, subagent_run_id=key)
    return event(kind, **{KEYS[entity]: key}, subagent_run_id=owner)


def classes(entity: Entity, phase: Phase) -> list[type[BaseEvent]]:
    return [kind for kind, row in ENTITIES.items() if row == (entity, phase)]


def opener(entity: Entity, key: str = "k", owner: str | None = None) -> BaseEvent:
    return of(classes(entity, Phase.OPEN)[0], key, owner)


def closer(entity: Entity, key: str = "k", owner: str | None = None) -> BaseEvent:
    return of(classes(entity, Phase.CLOSE)[0], key, owner)


def sequence_after(*events: BaseEvent) -> RunSequence:
    sequence = RunSequence()
    for each in (START, *events):
        sequence.feed(each)
    return sequence


def accepts(sequence: RunSequence, *events: BaseEvent) -> bool:
    """Return True if all of these events are legal now, one after the other."""
    try:
        for each in events:
            sequence.feed(each)
    except IllegalEvent:
        return False
    return True
