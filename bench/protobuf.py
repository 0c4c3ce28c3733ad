"""Cost of an event in each encoding: ``python -m bench.protobuf``.

Bytes are those of a whole frame; times are the best of several rounds, in microseconds. Protobuf is made from the JSON,
so a protobuf reader costs its column on top of the other.
"""

import timeit

from ag_ui.core import (
    BaseEvent,
    CustomEvent,
    RunStartedEvent,
    StateSnapshotEvent,
    TextMessageContentEvent,
    ToolCallArgsEvent,
)

from agui_container.protocol.encoder import encode
from agui_container.protocol.wire.protobuf.encoder import encode_frame
from agui_container.protocol.wire.sse_frames import sse_frames

ID = "3f1c1d1e-1111-4444-8888-123456789abc"
ITEMS = [{"id": number, "name": f"item {number}", "done": False, "tags": ["a", "b"]} for number in range(65)]

EVENTS: dict[str, BaseEvent] = {
    "RUN_STARTED": RunStartedEvent(thread_id=ID, run_id=ID, protocol_version="1.0", timestamp=1_800_000_000_000),
    "TEXT_MESSAGE_CONTENT": TextMessageContentEvent(message_id=ID, delta="hello world, "),
    "TOOL_CALL_ARGS": ToolCallArgsEvent(tool_call_id=ID, delta='{"expression":'),
    "CUSTOM, an object of 4": CustomEvent(name="progress", value={"a": 1, "b": 2.5, "c": "three", "d": None}),
    "STATE_SNAPSHOT, 4 KB": StateSnapshotEvent(snapshot={"items": ITEMS}),
}

ROUNDS = 9


def best(work: object, number: int) -> float:
    """Microseconds of one call, in the best round."""
    times = timeit.repeat("work()", globals={"work": work}, number=number, repeat=ROUNDS)
    return min(times) / number * 1e6


def main() -> None:
    """Print the table."""
    print(f"{'event':24} {'SSE B':>7} {'proto B':>8} {'JSON us':>9} {'proto us':>9}")  # noqa: T201 - what it is for
    for name, event in EVENTS.items():
        data = encode(event)
        number = max(20, 400_000 // len(data))
        sizes = len(sse_frames([data], 1)), len(encode_frame(data))
        times = best(lambda event=event: encode(event), number), best(lambda data=data: encode_frame(data), number)
        print(f"{name:24} {sizes[0]:7} {sizes[1]:8} {times[0]:9.1f} {times[1]:9.1f}")  # noqa: T201


if __name__ == "__main__":
    main()
