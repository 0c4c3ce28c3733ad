"""Chunks and strings: our expander and validator against the client's chunk layer and its verifier.

Both must stop at the same item and must have made the same events of it, except for what ``DIFFERENCES`` names.
"""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count, islice

import pytest
from ag_ui.core import BaseEvent, TextMessageChunkEvent, TextMessageContentEvent

from agui_container.ports import Item, MessageText
from agui_container.protocol.encoder import encode
from agui_container.protocol.validator import RunSequence
from agui_core.expander import CHUNKS, MAX_DELTA, Expander, IllegalEvent
from tests.official.judge import Json, Judge, walk_json
from tests.official.rules import CHUNK_RULES, rule
from tests.protocol.random_walks import VOCABULARY, chunk_walk

pytestmark = pytest.mark.other_language

WALKS = 3_000
BATCH = 500
LENGTH = 40
OFTEN = 10

DELTA_TYPES = ("TEXT_MESSAGE_CONTENT", "TOOL_CALL_ARGS", "REASONING_MESSAGE_CONTENT")
START_TYPES = ("TEXT_MESSAGE_START", "TOOL_CALL_START", "REASONING_MESSAGE_START")


def join_pieces(events: list[Json]) -> list[Json]:
    pieces = [event for event in events if event["type"] in DELTA_TYPES]
    if len(pieces) < 2:
        return events
    assert {len(piece["delta"]) for piece in pieces[:-1]} == {MAX_DELTA}
    whole = {**pieces[0], "delta": "".join(piece["delta"] for piece in pieces)}
    return [*(event for event in events if event["type"] not in DELTA_TYPES), whole]


def untimed(events: list[Json]) -> list[Json]:
    return [{name: value for name, value in event.items() if name != "timestamp"} for event in events]


def plain_openers(events: list[Json]) -> list[Json]:
    return [
        {name: value for name, value in event.items() if name != "surprise" or event["type"] not in START_TYPES}
        for event in events
    ]


@dataclass(frozen=True)
class Difference:
    """One thing in which the two may differ: what makes them equal again, on which side, and why it is so."""

    why: str
    ours: Callable[[list[Json]], list[Json]] | None = None
    theirs: Callable[[list[Json]], list[Json]] | None = None


DIFFERENCES = {
    "split": Difference(
        "a delta above MAX_DELTA leaves as several events, so that each fits a WebSocket frame of AgentCore",
        ours=join_pieces,
    ),
    "timestamp": Difference(
        "what a chunk becomes keeps its timestamp; the client, which consumes it, has no use for it", ours=untimed
    ),
    "unknown field of an opener": Difference(
        "a chunk without delta leaves an unknown field out; the client moves it to the START, to strip it there with "
        "a warning",
        theirs=plain_openers,
    ),
    "string": Difference("a string is no AG-UI; the client is asked about the chunk that the string stands for"),
    "end of stream": Difference("flush() ends what is open; the client, at the end of a stream, forgets it"),
}


@dataclass
class Sample:
    asked: list[BaseEvent] = field(default_factory=list)
    made: list[list[BaseEvent]] = field(default_factory=list)
    accepted: int = 0
    error: str | None = None


def as_event(item: Item, made: list[BaseEvent]) -> BaseEvent | None:
    if isinstance(item, MessageText):
        return TextMessageContentEvent(message_id=item.message_id, delta=item.delta)
    if not isinstance(item, str):
        return item
    content = [event for event in made if isinstance(event, TextMessageContentEvent)]
    return TextMessageChunkEvent(message_id=content[0].message_id, delta=item) if content else None


def sample(seed: int) -> Sample:
    numbers = count()
    expander, sequence, seen = Expander(lambda: f"new{next(numbers)}"), RunSequence(), Sample()
    for item in islice(chunk_walk(seed), LENGTH):
        made: list[BaseEvent] = []
        passed: list[BaseEvent] = []
        try:
            if seen.error is None:
                made = expander.expand(item)
                for event in made:
                    sequence.feed(event)
                    passed.append(event)
        except IllegalEvent as found:
            seen.error = str(found)
        asked = as_event(item, made)
        if asked is None:
            continue
        seen.asked.append(asked)
        seen.made.append(passed)
        seen.accepted += seen.error is None
        if len(seen.asked) > seen.accepted + 2:
            break
    return seen


def decoded(made: list[BaseEvent]) -> list[Json]:
    return [json.loads(encode(event)) for event in made]


def without_differences(seen: Sample, client: list[Json]) -> tuple[list[Json], list[Json]]:
    per_item, theirs = [decoded(made) for made in seen.made], client
    for difference in DIFFERENCES.values():
        if difference.ours:
            per_item = [difference.ours(events) for events in per_item]
        if difference.theirs:
            theirs = difference.theirs(theirs)
    return [event for events in per_item for event in events], theirs


def test_random_chunks_expand_to_the_same_events_and_stop_at_the_same_item(judge: Judge) -> None:
    differences, broken, kinds = [], Counter[str](), Counter[type[BaseEvent]]()
    for start in range(0, WALKS, BATCH):
        samples = [sample(seed) for seed in range(start, start + BATCH)]
        verdicts = judge.many(judge.ask_many((walk_json(seen.asked) for seen in samples), chunks=True))
        for seed, (seen, verdict) in enumerate(zip(samples, verdicts, strict=True), start):
            kinds.update(map(type, seen.asked[: seen.accepted]))
            if verdict.error is not None:
                broken[rule(verdict.error)] += 1
            ours, theirs = without_differences(seen, list(verdict.events))
            if (seen.accepted, seen.error is None) != (verdict.accepted, verdict.error is None) or ours != theirs:
                differences.append((seed, seen.accepted, seen.error, verdict.accepted, verdict.error, ours, theirs))
    assert differences[:3] == []
    assert {name: broken[name] for name, _ in CHUNK_RULES if broken[name] < OFTEN} == {}
    assert {kind.__name__ for kind in (*VOCABULARY, *CHUNKS) if kinds[kind] < OFTEN} == set()
    assert sum(kinds.values()) > 10 * WALKS
