"""Random walks: our validator and the official client must reject the same event.

``rules`` lists what the verifier checks. Every rule that official Python events can break must have been broken often,
so that agreement means something.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import islice

import pytest
from ag_ui.core import BaseEvent

from agui_container.protocol.validator import RunSequence
from agui_core.expander import IllegalEvent
from tests.official.judge import Judge, walk_json
from tests.official.rules import RULES, rule
from tests.protocol.random_walks import VOCABULARY, walk

pytestmark = pytest.mark.other_language

WALKS = 10_000
BATCH = 1_000
LENGTH = 60
BEYOND = 2
"""Events judged past our first rejection: the client must not have stopped later."""
OFTEN = 10

Sample = tuple[list[BaseEvent], int, str | None]
"""A walk, how many of its events we accepted, and why we stopped."""


def sample(seed: int) -> Sample:
    sequence, events, accepted, error = RunSequence(), [], 0, None
    for event in islice(walk(seed), LENGTH):
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
