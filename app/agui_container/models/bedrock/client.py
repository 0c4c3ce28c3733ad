"""The boto3 client of Bedrock, behind typed classes.

Rule: the first call imports boto3 and makes the client in its own thread, because the import is slow and finding
credentials may use the network. One client serves all threads: boto3's clients are thread-safe.
"""

import contextlib
import os
import threading
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from agui_container.models.bedrock.options import BedrockOptions

Event = Mapping[str, Any]
"""One event of ConverseStream: an object with one key, the kind of the event, whose value has its members."""


class _RawEvents(Protocol):
    def __iter__(self) -> Iterator[Event]: ...
    def close(self) -> None: ...


class _BedrockApi(Protocol):
    def converse_stream(self, **request: object) -> Mapping[str, _RawEvents]: ...


class BedrockEvents:
    def __init__(self, raw: _RawEvents) -> None:
        self._raw = raw

    def __iter__(self) -> Iterator[Event]:
        return iter(self._raw)

    def close(self) -> None:
        """Close the connection. Call this only in the reading thread, because it waits for a running read."""
        self._raw.close()

    def abort(self) -> None:
        """End a running read at once, from any thread.

        botocore cannot do this, so the urllib3 response below it is shut down. If that fails or is not supported
        (urllib3 before 2.3), the read ends with the next event or at its timeout.
        """
        shutdown = getattr(getattr(self._raw, "_raw_stream", None), "shutdown", None)
        if shutdown is not None:
            with contextlib.suppress(OSError, RuntimeError, ValueError):
                shutdown()


class BedrockClient:
    """Bedrock client that is made by the first call. If making it fails, the next call tries again."""

    def __init__(self, options: BedrockOptions) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._boto: _BedrockApi | None = None

    def converse(self, request: Mapping[str, object]) -> BedrockEvents:
        """Block until Bedrock begins to answer. Raises the exceptions of botocore."""
        with self._lock:
            client = self._boto = self._boto or _create_client(self._options)
        return BedrockEvents(client.converse_stream(**request)["stream"])


def _create_client(options: BedrockOptions) -> _BedrockApi:
    from boto3.session import Session  # type: ignore[import-untyped]  # noqa: PLC0415 - imported on first use
    from botocore.config import Config  # type: ignore[import-untyped]  # noqa: PLC0415

    config = Config(
        connect_timeout=options.connect_timeout,
        read_timeout=options.read_timeout,
        max_pool_connections=options.max_calls,
        retries={"total_max_attempts": 1, "mode": "standard"},  # BedrockModel retries, and only before the first delta
        tcp_keepalive=True,
        user_agent_extra="agui-container",
    )
    # AgentCore sets AWS_REGION, which boto3, unlike every other AWS SDK, does not read.
    session = Session(region_name=options.region or os.environ.get("AWS_REGION"))
    client: _BedrockApi = session.client("bedrock-runtime", endpoint_url=options.endpoint_url, config=config)
    return client
