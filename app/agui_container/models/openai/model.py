"""The door: a ``Model`` on the chat completions API of OpenAI and of everybody who speaks it.

Rule: a call is made again only while it has given nothing; after its first delta a failure is the run's.
"""

import asyncio
import logging
import re
from base64 import b64encode
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from typing import Protocol
from urllib.parse import unquote, urlsplit

from agui_container.models.openai.failures import ModelFailure
from agui_container.models.openai.request import OpenAIOptions, request_body
from agui_container.models.openai.retry_policy import RetryPolicy
from agui_container.models.openai.stream_parser import ChatStreamParser
from agui_container.models.openai.tool_names import ToolNames
from agui_container.ports import Delta, Prompt

logger = logging.getLogger(__name__)

OPENAI_URL = "https://api.openai.com/v1"
LINGER = 0.25
"""Seconds for a response to end after its last event; only then its connection can be used again."""


class EventTransport(Protocol):
    """What ``transport`` gives: requests in, events out."""

    def events(self, body: bytes) -> AsyncGenerator[Sequence[bytes], None]:
        """Send one request and give the events of its answer as they come."""

    async def aclose(self) -> None:
        """Close every connection."""


class OpenAIModel:
    """Implements ``ports.Model``. One instance serves any number of runs, which share its connections.

    Nothing is opened or imported before the first call. ``aclose`` ends the connections; a later call opens new ones.

    Args:
        model: the server's name for the model.
        base_url: what stands before ``/chat/completions``.
        api_key: sent as a bearer token; local servers need none.
        options: what the server is told besides the prompt.
        patience: timeouts and retries.

    Raises:
        ValueError: the address or the key cannot be used.
    """

    def __init__(
        self,
        model: str,
        base_url: str = OPENAI_URL,
        api_key: str | None = None,
        options: OpenAIOptions | None = None,
        retry_policy: RetryPolicy | None = None,
    ) -> None:
        host = host_in(base_url)
        key = (api_key or "").strip()
        if not (key.isascii() and key.isprintable()):
            raise ValueError("the API key of the model holds characters that no key has")
        self._url = f"{base_url.rstrip('/')}/chat/completions"
        self.provider, self.name = "openai" if host == "api.openai.com" else "openai-compatible", model
        self._key = key
        self._options = options or OpenAIOptions()
        self._secret = pattern_of(key, *self._options.headers.values(), *credentials_in(base_url))
        self._retry_policy = retry_policy or RetryPolicy()
        self._asks_usage = True
        self._connections: EventTransport | None = None
        self._opening = asyncio.Lock()

    async def stream(self, prompt: Prompt) -> AsyncGenerator[Delta, None]:
        """One model call, made again as often as patience allows until it gives something."""
        names = ToolNames(tool.name for tool in prompt.tools)
        attempt = 0
        while True:
            reading, begun, asks_usage = ChatStreamParser(names, self.provider, self.name), False, self._asks_usage
            body = request_body(self.name, prompt, self._options, usage=asks_usage)
            try:
                async with aclosing(self._call(body, reading)) as deltas:
                    async for delta in deltas:
                        begun = True
                        yield delta
            except ModelFailure as failure:
                wait = None if begun else self._wait(failure, attempt, asks_usage=asks_usage)
                self._log(failure, attempt, wait)
                if wait is None:
                    for delta in reading.usage():
                        yield delta
                    raise
            else:
                return
            await self._retry_policy.sleep(wait)
            attempt += 1

    async def aclose(self) -> None:
        """Close every connection."""
        connections, self._connections = self._connections, None
        if connections is not None:
            await connections.aclose()

    async def _call(self, body: bytes, reading: ChatStreamParser) -> AsyncGenerator[Delta, None]:
        connections = await self._opened()
        async with aclosing(connections.events(body)) as batches:
            try:
                async for batch in batches:
                    for data in batch:
                        for delta in reading.feed_data(data):
                            yield delta
                    if reading.is_done:
                        await _drained(batches)
                        break
            except ModelFailure:
                if not reading.is_complete:
                    raise
        for delta in reading.finish():
            yield delta

    def _wait(self, failure: ModelFailure, attempt: int, *, asks_usage: bool) -> float | None:
        if asks_usage and failure.refuses_stream_options:
            self._asks_usage = False
            return 0
        return self._retry_policy.wait(failure, attempt)

    def _log(self, failure: ModelFailure, attempt: int, wait: float | None) -> None:
        """The one line about a failure, with what the server said; servers repeat keys, the log does not."""
        said = f"words=<{failure.error_body.words}> text=<{failure.error_body.text}> cause=<{failure.__cause__!r}>"
        logger.warning(
            "model=<%s> code=<%s> status=<%s> attempt=<%d> wait=<%s> %s | the model call failed",
            self.name,
            failure.code,
            failure.error_body.status,
            attempt + 1,
            wait,
            self._secret.sub("***", said),
        )

    async def _opened(self) -> EventTransport:
        async with self._opening:
            connections = self._connections
            if connections is None:
                # Importing and loading certificates would hold up every run, so a thread does it.
                self._connections = connections = await asyncio.to_thread(self._open)
            return connections

    def _open(self) -> EventTransport:
        from agui_container.models.openai.transport import Transport  # noqa: PLC0415 - not before it is used

        bearer = {"authorization": f"Bearer {self._key}"} if self._key else {}
        return Transport(self._url, {**bearer, **self._options.headers}, self._retry_policy)


def host_in(base_url: str) -> str:
    """The host of an address. Raises ``ValueError``, which does not repeat it: it may hold a password."""
    with suppress(ValueError):  # brackets around no address, or a port that is none
        address = urlsplit(base_url)
        usable = address.scheme in ("http", "https") and base_url.isprintable() and address.port != 0
        if usable and address.hostname:
            return address.hostname
    raise ValueError("the base URL of the model must be like http://HOST/v1 or https://HOST:PORT/v1, the port a number")


def credentials_in(base_url: str) -> Sequence[str]:
    """What an address says of who calls, as it is written and as it is sent."""
    address = urlsplit(base_url)
    if address.password is None:
        return ()
    user, password = unquote(address.username or ""), unquote(address.password)
    return address.password, password, b64encode(f"{user}:{password}".encode()).decode()


def pattern_of(*secrets: str) -> re.Pattern[str]:
    """Finds each in what a server said, whatever the case, and the last word of each: the key behind ``Bearer``."""
    found = {part for secret in secrets for part in (secret.strip(), *secret.split()[-1:]) if part}
    either = "|".join(re.escape(part) for part in sorted(found, key=len, reverse=True))
    return re.compile(either or "(?!)", re.IGNORECASE)


async def _drained(batches: AsyncGenerator[Sequence[bytes], None]) -> None:
    """Let the response end by itself, if it does so at once."""
    with suppress(TimeoutError, ModelFailure):
        async with asyncio.timeout(LINGER):
            async for _ in batches:
                pass
