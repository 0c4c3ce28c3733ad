"""A client of one bidirectional call, with a queue of requests and bounded waits for responses."""

import json
import queue
from collections.abc import Iterator, Sequence
from typing import Any, Generic, Self, TypeVar

import grpc
from google.protobuf.message import Message

WAIT = 120.0

In = TypeVar("In", bound=Message)
Out = TypeVar("Out", bound=Message)


class GrpcCall(Generic[Out, In]):
    def __init__(  # noqa: PLR0913, PLR0917 - a call has so many sides
        self,
        channel: grpc.Channel,
        path: str,
        sent: type[Out],
        received: type[In],
        oneof: str,
        metadata: Sequence[tuple[str, str]] = (),
        timeout: float = WAIT,
        compression: grpc.Compression | None = None,
    ) -> None:
        self._oneof = oneof
        self._sent = sent
        self._queue: queue.Queue[Out | None] = queue.Queue()
        method = channel.stream_stream(
            path, request_serializer=sent.SerializeToString, response_deserializer=received.FromString
        )
        self.call = method(iter(self._queue.get, None), timeout=timeout, metadata=metadata, compression=compression)
        self.seen: list[In] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.call.cancel()
        self._queue.put(None)

    def send(self, **message: object) -> Self:
        self._queue.put(self._sent(**message))
        return self

    def end(self) -> Self:
        self._queue.put(None)
        return self

    def kind(self, message: In) -> str:
        """Return the kind of a message, which is the field that is set in its oneof."""
        found: str | None = message.WhichOneof(self._oneof)
        assert found
        return found

    def next(self) -> tuple[str, Any]:
        """The next message: what it is, and its content. Raises ``grpc.RpcError`` for a call that failed."""
        message = next(self.call)
        self.seen.append(message)
        kind = self.kind(message)
        return kind, getattr(message, kind)

    def until(self, wanted: str) -> Any:
        """The next message of this kind; those before it are in ``seen``."""
        while True:
            kind, content = self.next()
            if kind == wanted:
                return content

    def rest(self) -> Iterator[str]:
        for message in self.call:
            self.seen.append(message)
            yield self.kind(message)

    @property
    def kinds(self) -> list[str]:
        """Return the kinds of the received messages in order, without adjacent repetitions."""
        found: list[str] = []
        for message in self.seen:
            kind = self.kind(message)
            if not found or found[-1] != kind:
                found.append(kind)
        return found


def call_text(name: str, /, **arguments: object) -> str:
    return f"call {name} {json.dumps(arguments)}"
