"""Our messages and state of a run's events equal those of the official client."""

import json
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from ag_ui.core import (
    BaseEvent,
    MessagesSnapshotEvent,
    ReasoningEncryptedValueEvent,
    ReasoningEndEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    ReasoningStartEvent,
    RunFinishedEvent,
    RunStartedEvent,
    StateDeltaEvent,
    StateSnapshotEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
    UserMessage,
)

from agui_container.protocol.conversation.json_patch import PatchError
from agui_container.protocol.conversation.state import SharedState
from agui_container.protocol.conversation.transcript import Transcript
from agui_container.protocol.encoder import encode
from tests.official.judge import Judge

ROUNDS = 60
LENGTH = 25
Json = Any


def text(rng: random.Random) -> list[BaseEvent]:
    key = f"m{rng.randrange(4)}"
    pieces = [TextMessageContentEvent(message_id=key, delta=f"{rng.randrange(9)} ") for _ in range(rng.randrange(3))]
    role = rng.choice(["assistant", "assistant", "user", "system", "developer"])
    return [TextMessageStartEvent(message_id=key, role=role), *pieces, TextMessageEndEvent(message_id=key)]


def thought(rng: random.Random) -> list[BaseEvent]:
    key = f"t{rng.randrange(3)}"
    events: list[BaseEvent] = [
        ReasoningStartEvent(message_id=key),
        ReasoningMessageStartEvent(message_id=key, role="reasoning"),
        ReasoningMessageContentEvent(message_id=key, delta="because "),
        ReasoningMessageEndEvent(message_id=key),
        ReasoningEndEvent(message_id=key),
    ]
    if rng.random() < 0.5:
        events.append(ReasoningEncryptedValueEvent(subtype="message", entity_id=key, encrypted_value="sealed"))
    return events


def call(rng: random.Random) -> list[BaseEvent]:
    key = f"c{rng.randrange(10**9)}"
    parent = rng.choice([None, "m0", "m1", f"a{rng.randrange(3)}"])
    events: list[BaseEvent] = [
        ToolCallStartEvent(tool_call_id=key, tool_call_name="tool", parent_message_id=parent),
        ToolCallArgsEvent(tool_call_id=key, delta='{"a":'),
        ToolCallArgsEvent(tool_call_id=key, delta="1}"),
        ToolCallEndEvent(tool_call_id=key),
    ]
    if rng.random() < 0.7:
        events.append(ToolCallResultEvent(message_id=f"r-{key}", tool_call_id=key, content="done", role="tool"))
    return events


def snapshot(rng: random.Random) -> list[BaseEvent]:
    messages = [UserMessage(id=f"m{number}", content=f"said {rng.randrange(9)}") for number in rng.sample(range(6), 2)]
    return [MessagesSnapshotEvent(messages=[*messages])] if rng.random() < 0.3 else []


def noted(rng: random.Random, events: Sequence[BaseEvent]) -> list[BaseEvent]:
    """The same events, some with metadata; their keys come again, and their values are replaced as a whole."""
    return [
        event.model_copy(update={"metadata": {rng.choice("ab"): rng.choice([None, 1, {"x": rng.randrange(9)}])}})
        if rng.random() < 0.3
        else event
        for event in events
    ]


MAKERS: Sequence[Callable[[random.Random], list[BaseEvent]]] = (text, text, thought, call, call, snapshot)


def plain(messages: Sequence[Json]) -> Json:
    """Messages as JSON; absent and empty are one, as the client starts some fields empty and leaves others out."""
    return [{key: value for key, value in message.items() if value not in (None, "", [])} for message in messages]


def replayed(judge: Judge, events: Sequence[BaseEvent], **config: Json) -> Json:
    """Return the client's messages and state after a run of these events."""
    framed = [
        RunStartedEvent(thread_id="t", run_id="r"),
        *events,
        RunFinishedEvent(thread_id="t", run_id="r"),
    ]
    dumped = [json.loads(encode(event)) for event in framed]
    request = {"turns": [{"runId": "r"}], "events": dumped, "threadId": "t", **config}
    held = judge.answer(judge.ask("run", request))
    assert held["turns"][0]["error"] is None, held["turns"][0]
    return held


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_messages_are_the_clients_messages(judge: Judge, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - a seeded walk
    events = noted(rng, [event for _ in range(LENGTH) for event in rng.choice(MAKERS)(rng)])
    held = replayed(judge, events)
    transcript = Transcript()
    for event in events:
        transcript.feed(event)
    ours = [message.model_dump(mode="json", by_alias=True, exclude_none=True) for message in transcript.messages]
    assert plain(ours) == plain(held["messages"])


def deltas(rng: random.Random) -> Iterator[BaseEvent]:
    """Patches of a small document; many do not apply.

    None makes the document itself a scalar: the client's library then takes members as added that RFC 6902 refuses.
    """
    paths = ["/a", "/b", "/a/x", "/a/y", "/list/0", "/list/-", "/list", "/none/x"]
    while True:
        if rng.random() < 0.1:
            whole = {"op": "replace", "path": "", "value": {"a": {"x": 7}, "list": [7]}}
            yield StateDeltaEvent.model_validate({"delta": [whole]})
        if rng.random() < 0.1:
            yield StateSnapshotEvent(snapshot={"a": {"x": rng.randrange(5)}, "list": []})
            continue
        patch: list[Json] = []
        for _ in range(rng.randrange(1, 4)):
            op = rng.choice(["add", "add", "replace", "remove", "move", "copy", "test"])
            patch.append({"op": op, "path": rng.choice(paths)})
            if op in ("move", "copy"):
                patch[-1]["from"] = rng.choice(paths)
            elif op != "remove":
                patch[-1]["value"] = rng.choice([rng.randrange(5), {"x": 1}, [1, 2], None, True, "text"])
        yield StateDeltaEvent.model_validate({"delta": patch})


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_the_state_is_the_clients_state(judge: Judge, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - a seeded walk
    start = {"a": {"x": 1}, "list": [1]}
    source = deltas(rng)
    events = [next(source) for _ in range(LENGTH)]
    held = replayed(judge, events, initialState=start)
    state = SharedState(start)
    for event in events:
        if isinstance(event, StateSnapshotEvent):
            state.replace(event.snapshot)
        elif isinstance(event, StateDeltaEvent):
            try:
                state.patch(event)
            except PatchError:
                continue
    assert state.value() == held["state"]
