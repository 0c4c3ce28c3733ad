"""Every cell of the tables: run states by event classes, entities by phase, and missing end events.

The expectations are written out here and not taken from the tables; the tables only say what there is to test.
"""

from copy import deepcopy
from itertools import product

import pytest
from ag_ui.core import (
    BaseEvent,
    CustomEvent,
    EventType,
    RunErrorEvent,
    RunFinishedEvent,
    RunStartedEvent,
    SubagentErrorEvent,
    SubagentFinishedEvent,
)
from hypothesis import given
from hypothesis import strategies as st

from agui_container.protocol import grammar
from agui_container.protocol.grammar import ENTITIES, EVENTS, Entity, LifecycleState, Phase
from agui_container.protocol.validator import RunSequence
from agui_core.expander import IllegalEvent
from tests.protocol.grammar_cells import (
    ERROR,
    FINISH,
    PATHS,
    START,
    accepts,
    classes,
    closer,
    event,
    of,
    opener,
    sequence_after,
)

ALL_ENTITIES = sorted({entity for entity, _ in ENTITIES.values()}, key=lambda entity: entity.noun)
ALL_EVENTS = sorted(EVENTS, key=lambda kind: kind.__name__)
each_entity = pytest.mark.parametrize("entity", ALL_ENTITIES, ids=lambda entity: entity.noun)

LEGAL_IN: dict[LifecycleState, frozenset[type[BaseEvent]]] = {
    LifecycleState.BEFORE: frozenset({RunStartedEvent, RunErrorEvent}),
    LifecycleState.ACTIVE: EVENTS - {RunStartedEvent},
    LifecycleState.FINISHED: frozenset({RunStartedEvent, RunErrorEvent}),
    LifecycleState.ERRORED: frozenset({RunStartedEvent}),
}
LEADS_TO: dict[type[BaseEvent], LifecycleState] = {
    RunStartedEvent: LifecycleState.ACTIVE,
    RunFinishedEvent: LifecycleState.FINISHED,
    RunErrorEvent: LifecycleState.ERRORED,
}
LEGAL_WHEN: dict[tuple[Phase, str], bool] = {
    (Phase.OPEN, "never opened"): True,
    (Phase.OPEN, "open"): False,
    (Phase.OPEN, "closed"): True,
    (Phase.CONTINUE, "never opened"): False,
    (Phase.CONTINUE, "open"): True,
    (Phase.CONTINUE, "closed"): False,
    (Phase.CLOSE, "never opened"): False,
    (Phase.CLOSE, "open"): True,
    (Phase.CLOSE, "closed"): False,
}


def in_state(state: LifecycleState, *events: BaseEvent) -> RunSequence:
    sequence = RunSequence()
    for each in (*PATHS[state], *events):
        sequence.feed(each)
    return sequence


@pytest.mark.parametrize("kind", ALL_EVENTS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("state", LifecycleState)
def test_each_event_in_each_state_of_the_run(state: LifecycleState, kind: type[BaseEvent]) -> None:
    entity, phase = ENTITIES.get(kind, (None, None))
    needs_opener = state is LifecycleState.ACTIVE and entity is not None and phase is not Phase.OPEN
    sequence = in_state(state, *([opener(entity)] if needs_opener and entity else []))
    one = of(kind) if entity else event(kind)
    if kind in LEGAL_IN[state]:
        sequence.feed(one)
        assert sequence.state is LEADS_TO.get(kind, LifecycleState.ACTIVE)
    else:
        with pytest.raises(IllegalEvent, match=kind.__name__):
            sequence.feed(one)
        assert sequence.state is state


def test_a_run_may_err_before_it_starts_and_start_again() -> None:
    sequence = RunSequence()
    assert accepts(sequence, ERROR, START, FINISH, ERROR, START)
    assert not accepts(sequence, START)


@pytest.mark.parametrize("when", ["never opened", "open", "closed"])
@pytest.mark.parametrize("kind", ENTITIES, ids=lambda kind: kind.__name__)
def test_each_phase_of_each_entity(kind: type[BaseEvent], when: str) -> None:
    entity, phase = ENTITIES[kind]
    before = {"never opened": [], "open": [opener(entity)], "closed": [opener(entity), closer(entity)]}[when]
    sequence = sequence_after(*before)
    owed = sequence.closers()
    only_once = entity is grammar.SUBAGENT and (phase, when) == (Phase.OPEN, "closed")  # V26
    if LEGAL_WHEN[phase, when] and not only_once:
        sequence.feed(of(kind))
        assert sequence.is_open(entity) is (phase is not Phase.CLOSE)
    else:
        with pytest.raises(IllegalEvent, match="'k'"):
            sequence.feed(of(kind))
        assert sequence.closers() == owed


def test_a_subclass_counts_as_the_official_class() -> None:
    class Note(CustomEvent):
        pass

    class Foreign(BaseEvent):
        pass

    assert accepts(sequence_after(), Note(name="n", value=1))
    assert not accepts(sequence_after(), Foreign(type=EventType.CUSTOM))


@each_entity
def test_a_run_may_not_finish_while_something_is_open_but_may_err(entity: Entity) -> None:
    sequence = sequence_after(opener(entity))
    with pytest.raises(IllegalEvent, match=f"{entity.noun} .*'k'"):
        sequence.feed(FINISH)
    assert accepts(sequence, ERROR)


@each_entity
@pytest.mark.parametrize("owner", [None, "s"])
def test_a_closer_closes_what_was_opened_under_its_owner(entity: Entity, owner: str | None) -> None:
    sequence = sequence_after(opener(entity, owner=owner))
    owed = sequence.closers()
    assert len(owed) == 1
    assert type(owed[0]) in classes(entity, Phase.CLOSE)
    assert getattr(owed[0], "subagent_run_id", None) == ("k" if entity is grammar.SUBAGENT else owner)
    assert accepts(sequence, *owed, FINISH)


def test_the_entity_that_was_opened_last_is_closed_first() -> None:
    sequence = sequence_after(*(opener(entity) for entity in ALL_ENTITIES))
    owed = [ENTITIES[type(each)][0] for each in sequence.closers()]
    assert owed == ALL_ENTITIES[::-1]


def test_a_subagent_that_was_cut_off_has_failed() -> None:
    sequence = sequence_after(opener(grammar.SUBAGENT))
    assert sequence.closers() == [SubagentFinishedEvent(subagent_run_id="k")]
    assert sequence.closers("stopped") == [SubagentErrorEvent(subagent_run_id="k", message="stopped")]


MOVES: list[BaseEvent] = [
    of(kind, key, owner) for kind, key, owner in product(ENTITIES, ("k", "l"), (None, "k", "s", ""))
] + [event(kind) for kind in ALL_EVENTS if kind not in ENTITIES]


@given(moves=st.lists(st.sampled_from(MOVES), max_size=60), failure=st.sampled_from([None, "stopped"]))
def test_closers_and_a_terminal_event_are_legal_after_any_events(moves: list[BaseEvent], failure: str | None) -> None:
    sequence = sequence_after()
    for move in moves:
        accepts(sequence, move)
    if sequence.state is LifecycleState.ACTIVE:
        assert accepts(sequence, *sequence.closers(failure), FINISH)
        assert sequence.closers() == []
        assert not any(sequence.is_open(entity) for entity in ALL_ENTITIES)


def answers(sequence: RunSequence) -> list[bool]:
    """Return for each move True if the run would accept it next."""
    return [accepts(deepcopy(sequence), move) for move in MOVES]


@given(moves=st.lists(st.sampled_from(MOVES), max_size=40))
def test_a_rejected_event_leaves_no_trace(moves: list[BaseEvent]) -> None:
    kept, tried = RunSequence(), RunSequence()
    for move in (START, *moves):
        if accepts(tried, move):
            assert accepts(kept, move)
        assert (kept.state, kept.closers()) == (tried.state, tried.closers())
    assert answers(kept) == answers(tried)
