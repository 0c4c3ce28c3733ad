"""Our messages and state of a run's events equal those of the official client."""

import json
import random
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import Any

import pytest
from ag_ui import core as ag

from agui_container.conversation.state import SharedState
from agui_container.protocol.encoder import encode
from agui_core.json_patch import PatchError
from agui_core.transcript import Transcript
from tests.official.judge import Judge

pytestmark = pytest.mark.other_language

ROUNDS = 60
LENGTH = 25
Json = Any


def text(rng: random.Random) -> list[ag.BaseEvent]:
    key = f"m{rng.randrange(4)}"
    pieces = [ag.TextMessageContentEvent(message_id=key, delta=f"{rng.randrange(9)} ") for _ in range(rng.randrange(3))]
    role = rng.choice(["assistant", "assistant", "user", "system", "developer"])
    return [ag.TextMessageStartEvent(message_id=key, role=role), *pieces, ag.TextMessageEndEvent(message_id=key)]


def thought(rng: random.Random) -> list[ag.BaseEvent]:
    key = f"t{rng.randrange(3)}"
    events: list[ag.BaseEvent] = [
        ag.ReasoningStartEvent(message_id=key),
        ag.ReasoningMessageStartEvent(message_id=key, role="reasoning"),
        ag.ReasoningMessageContentEvent(message_id=key, delta="because "),
        ag.ReasoningMessageEndEvent(message_id=key),
        ag.ReasoningEndEvent(message_id=key),
    ]
    if rng.random() < 0.5:
        events.append(ag.ReasoningEncryptedValueEvent(subtype="message", entity_id=key, encrypted_value="sealed"))
    return events


def call(rng: random.Random) -> list[ag.BaseEvent]:
    key = f"c{rng.randrange(10**9)}"
    parent = rng.choice([None, "m0", "m1", f"a{rng.randrange(3)}"])
    events: list[ag.BaseEvent] = [
        ag.ToolCallStartEvent(tool_call_id=key, tool_call_name="tool", parent_message_id=parent),
        ag.ToolCallArgsEvent(tool_call_id=key, delta='{"a":'),
        ag.ToolCallArgsEvent(tool_call_id=key, delta="1}"),
        ag.ToolCallEndEvent(tool_call_id=key),
    ]
    if rng.random() < 0.7:
        events.append(ag.ToolCallResultEvent(message_id=f"r-{key}", tool_call_id=key, content="done", role="tool"))
    return events


def snapshot(rng: random.Random) -> list[ag.BaseEvent]:
    messages = [
        ag.UserMessage(id=f"m{number}", content=f"said {rng.randrange(9)}") for number in rng.sample(range(6), 2)
    ]
    return [ag.MessagesSnapshotEvent(messages=[*messages])] if rng.random() < 0.3 else []


def activity(rng: random.Random) -> list[ag.BaseEvent]:
    key, content = f"v{rng.randrange(3)}", {"n": rng.randrange(9)}
    shown = ag.ActivitySnapshotEvent(
        message_id=key, activity_type=rng.choice("pq"), content=content, replace=rng.choice([None, True, False])
    )
    patch = [{"op": "replace", "path": rng.choice(["/n", "/none/x"]), "value": rng.randrange(9)}]
    fields = {"messageId": key, "activityType": rng.choice("pq"), "patch": patch}
    return [shown, ag.ActivityDeltaEvent.model_validate(fields)]


def noted(rng: random.Random, events: Sequence[ag.BaseEvent]) -> list[ag.BaseEvent]:
    """The same events, some with metadata; their keys come again, and their values are replaced as a whole."""
    return [
        event.model_copy(update={"metadata": {rng.choice("ab"): rng.choice([None, 1, {"x": rng.randrange(9)}])}})
        if rng.random() < 0.3
        else event
        for event in events
    ]


MAKERS: Sequence[Callable[[random.Random], list[ag.BaseEvent]]] = (text, text, thought, call, call, activity, snapshot)


def plain(messages: Sequence[Json]) -> Json:
    """Messages as JSON; absent and empty are one, as the client starts some fields empty and leaves others out."""
    return [{key: value for key, value in message.items() if value not in (None, "", [])} for message in messages]


def replayed(judge: Judge, events: Sequence[ag.BaseEvent], **config: Json) -> Json:
    framed = [ag.RunStartedEvent(thread_id="t", run_id="r"), *events, ag.RunFinishedEvent(thread_id="t", run_id="r")]
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
    theirs = held["messages"]
    if any(isinstance(event, ag.MessagesSnapshotEvent) for event in events):
        # The client keeps its own order until it loads the thread again. A thread has that of the snapshot.
        ours, theirs = (sorted(each, key=itemgetter("id")) for each in (ours, theirs))
    assert plain(ours) == plain(theirs)


def deltas(rng: random.Random) -> Iterator[ag.BaseEvent]:
    """Patches of a small document; many do not apply.

    None makes the document itself a scalar: the client's library then takes members as added that RFC 6902 refuses.
    """
    paths = ["/a", "/b", "/a/x", "/a/y", "/list/0", "/list/-", "/list", "/none/x"]
    while True:
        if rng.random() < 0.1:
            whole = {"op": "replace", "path": "", "value": {"a": {"x": 7}, "list": [7]}}
            yield ag.StateDeltaEvent.model_validate({"delta": [whole]})
        if rng.random() < 0.1:
            yield ag.StateSnapshotEvent(snapshot={"a": {"x": rng.randrange(5)}, "list": []})
            continue
        patch: list[Json] = []
        for _ in range(rng.randrange(1, 4)):
            op = rng.choice(["add", "add", "replace", "remove", "move", "copy", "test"])
            patch.append({"op": op, "path": rng.choice(paths)})
            if op in ("move", "copy"):
                patch[-1]["from"] = rng.choice(paths)
            elif op != "remove":
                patch[-1]["value"] = rng.choice([rng.randrange(5), {"x": 1}, [1, 2], None, True, "text"])
        yield ag.StateDeltaEvent.model_validate({"delta": patch})


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_the_state_is_the_clients_state(judge: Judge, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - a seeded walk
    start = {"a": {"x": 1}, "list": [1]}
    source = deltas(rng)
    events = [next(source) for _ in range(LENGTH)]
    held = replayed(judge, events, initialState=start)
    state = SharedState(start)
    for event in events:
        if isinstance(event, ag.StateSnapshotEvent):
            state.replace(event.snapshot)
        elif isinstance(event, ag.StateDeltaEvent):
            try:
                state.patch(event)
            except PatchError:
                continue
    assert state.value() == held["state"]
