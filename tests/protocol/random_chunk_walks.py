"""Random walks with chunks and strings: chunk streams, missing ids, contradictions, other events, long deltas.

As in ``random_walks``, a rough model of the open streams makes most chunks legal, and some are arbitrary.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ag_ui import core as ag

from agui_container.ports import Item
from agui_core.expander import MAX_DELTA
from tests.protocol.random_walk_fields import Fields
from tests.protocol.random_walk_messages import SUBAGENTS
from tests.protocol.random_walks import Walk

LONG = "\U0001f600" * MAX_DELTA + "end"
DELTAS = ("", "a", "b ", None, None)
CHUNKS: dict[type[ag.BaseEvent], tuple[str, dict[str, tuple[str | None, ...]]]] = {
    ag.TextMessageChunkEvent: ("message_id", {"role": (None, "assistant", "user"), "name": (None, None, "n")}),
    ag.ToolCallChunkEvent: (
        "tool_call_id",
        {"tool_call_name": ("tool", "tool", "other"), "parent_message_id": (None, None, "m1", "f1")},
    ),
    ag.ReasoningMessageChunkEvent: ("message_id", {}),
}
KEEPS_STREAMS = (
    ag.RawEvent,
    ag.ActivitySnapshotEvent,
    ag.ActivityDeltaEvent,
    ag.ReasoningEncryptedValueEvent,
    ag.SubagentStartedEvent,
)
ENDS_STREAMS = (ag.RunStartedEvent, ag.RunFinishedEvent, ag.RunErrorEvent, ag.MessagesSnapshotEvent)


@dataclass(frozen=True, slots=True)
class OpenChunk:
    kind: type[ag.BaseEvent]
    key: str
    fields: Fields


class ChunkWalk(Walk):
    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.streams: dict[str | None, OpenChunk] = {}
        self.fresh = 0

    def items(self) -> Iterator[Item]:
        events = iter(self)
        while True:
            if self.state != "active" or self.wrapping or self.rng.random() < 0.45:
                event = next(events)
                self.follow(event)
                yield event
            elif self.rng.random() < 0.2:
                yield self.string()
            else:
                yield self.chunk()

    def follow(self, event: ag.BaseEvent) -> None:
        """Forget the chunk streams that an explicit event ends."""
        if isinstance(event, ENDS_STREAMS):
            self.streams.clear()
        elif not isinstance(event, KEEPS_STREAMS):
            self.streams.pop(getattr(event, "subagent_run_id", None), None)

    def string(self) -> str:
        stream = self.streams.get(None)
        if stream is not None and stream.kind is not ag.TextMessageChunkEvent:
            self.streams.pop(None)
        return self.rng.choice(("", "text", "more ", LONG if self.rng.random() < 0.1 else "\n"))

    def chunk(self) -> ag.BaseEvent:
        if self.rng.random() < self.wildness:
            return self.wild_chunk()
        if self.streams and self.rng.random() < 0.7:
            return self.next_chunk()
        return self.first_chunk()

    def first_chunk(self) -> ag.BaseEvent:
        kind = self.rng.choice(list(CHUNKS))
        id_field, choices = CHUNKS[kind]
        self.fresh += 1
        key = self.rng.choice((f"f{self.fresh}", f"f{self.fresh}", "m1"))
        fields = {name: self.rng.choice(values) for name, values in choices.items()}
        owner = self.rng.choice((None, None, *SUBAGENTS[:2]))
        self.streams[owner] = OpenChunk(kind, key, fields)
        return kind(**{id_field: key}, **fields, subagent_run_id=owner, **self.load())

    def next_chunk(self) -> ag.BaseEvent:
        """More of an open stream, with or without its id, its owner and its fields."""
        owner = self.rng.choice(list(self.streams))
        stream = self.streams[owner]
        named = self.rng.random() < 0.5
        tagged = self.rng.random() < 0.6
        fields = stream.fields if self.rng.random() < 0.2 else {}
        if self.rng.random() < 0.03:
            fields = {name: self.rng.choice(values) for name, values in CHUNKS[stream.kind][1].items()}
        return stream.kind(
            **{CHUNKS[stream.kind][0]: stream.key if named else None},
            **fields,
            subagent_run_id=owner if tagged else None,
            **self.load(),
        )

    def wild_chunk(self) -> ag.BaseEvent:
        kind = self.rng.choice(list(CHUNKS))
        id_field, choices = CHUNKS[kind]
        fields = {name: self.rng.choice((None, *values)) for name, values in choices.items()}
        keys = (None, "m1", *(stream.key for stream in self.streams.values()))
        return kind(
            **{id_field: self.rng.choice(keys)},
            **fields,
            subagent_run_id=self.rng.choice((None, *SUBAGENTS)),
            **self.load(),
        )

    def load(self) -> Fields:
        load: Fields = {"delta": self.rng.choice(DELTAS)}
        dice = self.rng.random()
        if dice < 0.01:
            load["delta"] = LONG
        if dice < 0.1:
            load["metadata"] = {"k": self.fresh}
        if 0.05 < dice < 0.15:
            load["raw_event"] = {"provider": [None, 1]}
        if 0.12 < dice < 0.2:
            load["timestamp"] = 1_000 + self.fresh
        if 0.18 < dice < 0.22:
            load["surprise"] = "kept"
        return load
