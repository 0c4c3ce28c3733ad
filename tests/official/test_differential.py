"""Random walks: our validator and the official client must reject the same event.

``rules`` lists what the verifier checks. Every rule that official Python events can break must have been broken often,
so that agreement means something.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import islice

import pytest
from ag_ui.core import (
    AssistantMessage,
    BaseEvent,
    Interrupt,
    MessagesSnapshotEvent,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    SubagentErrorEvent,
    SubagentFinishedEvent,
    SubagentFinishedSuspendedOutcome,
    SubagentStartedEvent,
)

from agui_container.protocol.encoder import encode
from agui_container.protocol.errors import IllegalEvent
from agui_container.protocol.grammar import EVENTS
from agui_container.protocol.validator import RunSequence
from tests.official.judge import Judge, walk_json
from tests.official.rules import OUT_OF_REACH, RULES, rule
from tests.protocol.random_walks import VOCABULARY, Walk

WALKS = 10_000
BATCH = 1_000
LENGTH = 60
BEYOND = 2
"""Events judged past our first rejection: the client must not have stopped later."""
OFTEN = 10

Sample = tuple[list[BaseEvent], int, str | None]
"""A walk, how many of its events we accepted, and why we stopped."""


def sample(seed: int) -> Sample:
    """One walk as our judge sees it."""
    sequence, events, accepted, error = RunSequence(), [], 0, None
    for event in islice(Walk(seed), LENGTH):
        events.append(event)
        if error is None:
            try:
                sequence.feed(event)
                accepted += 1
            except IllegalEvent as found:
                error = str(found)
        elif len(events) > accepted + BEYOND:
            break
    return events, accepted, error


def batches(judge: Judge, first: int, count: int) -> Iterator[tuple[int, Sample, str | None, int]]:
    """Both verdicts on each walk; the client works on one batch while the next is made."""
    waiting: tuple[int, list[Sample], int] | None = None
    for start in [*range(first, first + count, BATCH), None]:
        following = None
        if start is not None:
            samples = [sample(seed) for seed in range(start, start + BATCH)]
            following = (start, samples, judge.ask_many(walk_json(events) for events, _, _ in samples))
        if waiting is not None:
            seed, asked, ticket = waiting
            for offset, (ours, theirs) in enumerate(zip(asked, judge.many(ticket), strict=True)):
                yield seed + offset, ours, theirs.error, theirs.accepted
        waiting = following


def test_random_walks_have_the_same_verdict_at_the_same_event(judge: Judge) -> None:
    differences, broken, seen = [], Counter[str](), Counter[type[BaseEvent]]()
    for seed, (events, accepted, error), client_error, client_accepted in batches(judge, 0, WALKS):
        seen.update(map(type, events[:accepted]))
        if client_error is not None:
            broken[rule(client_error)] += 1
        if (client_accepted, client_error is None) != (accepted, error is None):
            differences.append(
                f"seed {seed}: we stop at {accepted} ({error}), they at {client_accepted} ({client_error})"
            )
    assert differences[:10] == []
    assert {name: broken[name] for name, _ in RULES if broken[name] < OFTEN} == {}
    assert set(broken) == {name for name, _ in RULES}
    assert {kind.__name__ for kind in VOCABULARY if seen[kind] < 20 * OFTEN} == set()
    assert sum(seen.values()) > 15 * WALKS


def test_walks_visit_every_class_of_the_tables() -> None:
    assert set(VOCABULARY) == EVENTS


def test_every_rule_of_the_verifier_is_tried_or_out_of_reach() -> None:
    tried = {name.split()[0] for name, _ in RULES}
    assert tried | set(OUT_OF_REACH) == {f"V{number}" for number in range(1, 30)}
    assert tried & set(OUT_OF_REACH) == set()


@pytest.mark.parametrize(
    "event",
    [
        SubagentStartedEvent(
            subagent_run_id="s",
            name="n",
            description=None,
            parent_subagent_run_id=None,
            parent_tool_call_id=None,
            parent_message_id=None,
        ),
        SubagentFinishedEvent(subagent_run_id="s", outcome=None),
        SubagentFinishedEvent(subagent_run_id="s", outcome=SubagentFinishedSuspendedOutcome(interrupt_ids=None)),
        SubagentErrorEvent(subagent_run_id="s", message="m", code=None),
        RunFinishedEvent(
            thread_id="t",
            run_id="r",
            outcome=RunFinishedInterruptOutcome(interrupts=[Interrupt(id="i", reason="r", subagent_run_id=None)]),
        ),
        MessagesSnapshotEvent(messages=[AssistantMessage(id="m", content="", subagent_run_id=None)]),
    ],
    ids=["V6 started", "V6 finished", "V8", "V6 error", "V9", "V23"],
)
def test_an_optional_field_without_value_is_never_sent_as_null(event: BaseEvent) -> None:
    assert b"null" not in encode(event)


FORCED: dict[str, tuple[BaseEvent, dict[str, object]]] = {
    "V7": (SubagentFinishedEvent(subagent_run_id="s"), {"outcome": {"type": "odd"}}),
    "V8": (
        SubagentFinishedEvent(subagent_run_id="s"),
        {"outcome": SubagentFinishedSuspendedOutcome().model_copy(update={"interrupt_ids": [1]})},
    ),
    "V24 id": (SubagentStartedEvent(subagent_run_id="s", name="n"), {"subagent_run_id": None}),
    "V24 name": (SubagentStartedEvent(subagent_run_id="s", name="n"), {"name": None}),
    "V28 message": (SubagentErrorEvent(subagent_run_id="s", message="m"), {"message": None}),
}


@pytest.mark.parametrize(("event", "update"), FORCED.values(), ids=FORCED)
def test_values_forced_past_the_classes_do_not_encode(event: BaseEvent, update: dict[str, object]) -> None:
    with pytest.raises(IllegalEvent):
        encode(event.model_copy(update=update))
