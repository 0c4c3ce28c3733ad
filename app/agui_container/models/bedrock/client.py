"""boto3, and all that is untyped about it.

Rule: boto3 is imported and a client made by the first call, in that call's thread: importing takes 0.2 s, and finding
credentials may ask the network. One client serves all threads (boto3's clients are thread-safe).
"""

import contextlib
import os
import threading
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from agui_container.models.bedrock.options import BedrockOptions

Event = Mapping[str, Any]
"""One event of ConverseStream: a single key, what it is, and its members."""


class _RawEvents(Protocol):
    def __iter__(self) -> Iterator[Event]: ...
    def close(self) -> None: ...


class _BedrockApi(Protocol):
    def converse_stream(self, **request: object) -> Mapping[str, _RawEvents]: ...


class BedrockEvents:
    """The events of one answer."""

    def __init__(self, raw: _RawEvents) -> None:
        self._raw = raw

    def __iter__(self) -> Iterator[Event]:
        """Wait for events; raises what botocore and urllib3 raise."""
        return iter(self._raw)

    def close(self) -> None:
        """Only in the thread that reads: closing waits for a read that is going on."""
        self._raw.close()

    def abort(self) -> None:
        """From any thread: a read that is going on ends at once.

        botocore has no way to do that, the urllib3 response below it has. Where it is missing (urllib3 before 2.3) or
        refuses, the read ends when something comes or at its timeout.
        """
        shutdown = getattr(getattr(self._raw, "_raw_stream", None), "shutdown", None)
        if shutdown is not None:
            with contextlib.suppress(OSError, RuntimeError, ValueError):
                shutdown()


class BedrockClient:
    """A client that is made when it is first needed. What fails is tried again by the next call."""

    def __init__(self, options: BedrockOptions) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._boto: _BedrockApi | None = None

    def converse(self, request: Mapping[str, object]) -> BedrockEvents:
        """Start a call and wait until Bedrock begins to answer."""
        return BedrockEvents(self._made().converse_stream(**request)["stream"])

    def _made(self) -> _BedrockApi:
        with self._lock:
            if self._boto is None:
                self._boto = _make(self._options)
            return self._boto


def _make(options: BedrockOptions) -> _BedrockApi:
    from boto3.session import Session  # type: ignore[import-untyped]  # noqa: PLC0415 - not unless it is used
    from botocore.config import Config  # type: ignore[import-untyped]  # noqa: PLC0415

    config = Config(
        connect_timeout=options.connect_timeout,
        read_timeout=options.read_timeout,
        max_pool_connections=options.max_calls,
        retries={"total_max_attempts": 1, "mode": "standard"},  # this package has its own, which know about deltas
        tcp_keepalive=True,
        user_agent_extra="agui-container",
    )
    # AgentCore sets AWS_REGION, which boto3, unlike every other AWS SDK, does not read.
    session = Session(region_name=options.region or os.environ.get("AWS_REGION"))
    client: _BedrockApi = session.client("bedrock-runtime", endpoint_url=options.endpoint_url, config=config)
    return client
