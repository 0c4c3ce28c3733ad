"""The ``Model`` on the chat completions API of OpenAI and of compatible servers.

Rule: a call is retried only if it has yielded no delta. After the first delta a failure ends the run.
"""

import asyncio
import json
import logging
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from functools import partial
from typing import Protocol
from urllib.parse import urlsplit

from ag_ui.core import Tool as ToolSpec
from msgspec import Struct

from agui_container.log_values import format_fields
from agui_container.models.context_windows import known_window
from agui_container.models.failures import ModelFailure, RetryPolicy, stream_with_retries
from agui_container.models.openai.opaque_fields import OpaqueFields
from agui_container.models.openai.request import PICTURES_TEXT, OpenAIOptions, RequestFormat, ToolNames, request_of
from agui_container.models.openai.stream_parser import ChatStreamParser
from agui_container.models.tool_schemas import ProviderTools
from agui_container.ports import Delta, Prompt
from agui_container.protocol.errors import ErrorCode

logger = logging.getLogger(__name__)

OPENAI_URL = "https://api.openai.com/v1"
LINGER = 0.25
"""Seconds to wait for the end of a response after its last event. Without its end the connection cannot be reused."""

USAGE_FIELD, REASONING_FIELD = "stream_options", "reasoning_content"
USAGE_REQUEST, REASONING_REQUEST = b'"stream_options":{"include_usage":true}', b'"reasoning_content":'
"""Optional fields of a request, and their JSON in its body."""


PICTURES_REQUEST = json.dumps(PICTURES_TEXT).encode()
ABOUT_IMAGES = re.compile("image|vision|multimodal", re.IGNORECASE)
"""Words of servers that refuse a picture."""


class EventTransport(Protocol):
    """Interface of ``transport.Transport``, which is imported by the first call."""

    def events(self, body: bytes) -> AsyncGenerator[str, None]:
        """Send one request and yield the events of its answer as they arrive."""

    async def aclose(self) -> None:
        """Close every connection."""


class OpenAIModel:
    """Model on the chat completions API. Implements ``ports.Model`` and ``ports.ContextWindowed``.

    One instance serves any number of runs, which share its connections. Nothing is imported or opened before the first
    call. ``aclose`` closes the connections; a later call opens new ones.

    Args:
        model: the server's name for the model.
        base_url: the URL without ``/chat/completions``.
        api_key: sent as a bearer token; local servers need none.
        options: additional fields and headers of the request.
        retry_policy: timeouts and retries.

    Raises:
        ValueError: the URL or the key is invalid.
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
        self.context_window = self._options.context_window or known_window(model)
        self._secrets = secrets_pattern(key, *self._options.headers.values())
        self._retry_policy = retry_policy or RetryPolicy()
        self._format = RequestFormat(self._options.reasoning_field, OpaqueFields(f"{self._url} {model}"))
        self._learns_reasoning = self._options.reasoning_field is None
        self._tools = ProviderTools(model)
        self._transport: EventTransport | None = None
        self._open_lock = asyncio.Lock()

    async def stream(self, prompt: Prompt) -> AsyncGenerator[Delta, None]:
        """Call the model and yield its deltas.

        Raises:
            ModelFailure: the call failed, and is not retried.
        """
        exchange = _Exchange(prompt, ToolNames(tool.name for tool in prompt.tools))
        attempt, adapt = partial(self._attempt, exchange), partial(self._adapt, exchange)
        async with aclosing(stream_with_retries(attempt, self._retry_policy, adapt, self._log_failure)) as deltas:
            async for delta in deltas:
                yield delta

    async def _attempt(self, exchange: "_Exchange") -> AsyncGenerator[Delta, None]:
        exchange.tools = self._tools.convert(exchange.prompt.tools)
        request = request_of(self.name, exchange.prompt, self._options, self._format, exchange.tools)
        exchange.body = request.body
        for report in request.dropped:
            yield report
        parser = ChatStreamParser(exchange.names, self.provider, self.name, self._format.opaque_fields)
        try:
            async with aclosing(self._call(request.body, parser)) as deltas:
                async for delta in deltas:
                    yield delta
        except ModelFailure as failure:
            failure.usage = parser.usage()
            raise
        if self._learns_reasoning and parser.has_reasoning_content:
            self._format.reasoning_field = REASONING_FIELD  # sent back in later requests

    async def aclose(self) -> None:
        """Close every connection."""
        transport, self._transport = self._transport, None
        if transport is not None:
            await transport.aclose()

    async def _call(self, body: bytes, parser: ChatStreamParser) -> AsyncGenerator[Delta, None]:
        transport = await self._get_transport()
        async with aclosing(transport.events(body)) as events:
            try:
                async for data in events:
                    for delta in parser.feed_data(data):
                        yield delta
                    if parser.is_done:
                        await _drain(events)
                        break
            except ModelFailure:
                if not parser.is_complete:
                    raise
        for delta in parser.finish():
            yield delta

    def _adapt(self, exchange: "_Exchange", failure: ModelFailure) -> bool:
        """Leave the part that the server refused out of this and later requests. Return False if it named none."""
        if failure.code is not ErrorCode.MODEL_REJECTED:
            return False
        if failure.refuses(USAGE_FIELD) and USAGE_REQUEST in exchange.body:
            self._format.has_usage = False
            return True
        return (
            self._adapts_reasoning(exchange.body, failure)
            or self._adapts_pictures(exchange.body, failure)
            or self._tools.learn(failure.error_body.reason, exchange.prompt.tools, exchange.tools)
        )

    def _adapts_reasoning(self, body: bytes, failure: ModelFailure) -> bool:
        """A server that names the field of reasoning as missing wants its own, which another process got."""
        if not (self._learns_reasoning and failure.refuses(REASONING_FIELD)):
            return False
        if REASONING_REQUEST in body:
            self._format.reasoning_field, self._learns_reasoning = None, False
            return True
        is_missing = self._format.reasoning_field is None
        self._format.reasoning_field = REASONING_FIELD
        return is_missing

    def _adapts_pictures(self, body: bytes, failure: ModelFailure) -> bool:
        is_refused = PICTURES_REQUEST in body and ABOUT_IMAGES.search(failure.error_body.reason) is not None
        if is_refused:
            self._format.has_tool_pictures = False
            logger.warning("pictures of tool results left out %s", format_fields({"model": self.name}))
        return is_refused

    def _log_failure(self, failure: ModelFailure, attempt: int, wait: float | None) -> None:
        """Log a failure with the server's error text. Secrets are removed, because some servers repeat the API key."""
        body = failure.error_body
        fields = {
            "model": self.name,
            "code": failure.code,
            "status": body.status,
            "attempt": attempt + 1,
            "retry_in": wait,
            "server_codes": body.codes,
            "server_text": body.text,
            "error": repr(failure.__cause__),
        }
        masked = {name: self._secrets.sub("***", str(value)) for name, value in fields.items()}
        logger.warning("model call failed %s", format_fields(masked))

    async def _get_transport(self) -> EventTransport:
        async with self._open_lock:
            transport = self._transport
            if transport is None:
                # In a thread, because importing and loading certificates would block the event loop.
                self._transport = transport = await asyncio.to_thread(self._open)
            return transport

    def _open(self) -> EventTransport:
        from agui_container.models.openai.transport import Transport  # noqa: PLC0415 - imported on first use

        bearer = {"authorization": f"Bearer {self._key}"} if self._key else {}
        return Transport(self._url, {**bearer, **self._options.headers}, self._retry_policy)


class _Exchange(Struct):
    prompt: Prompt
    names: ToolNames
    tools: Mapping[str, ToolSpec] = {}
    body: bytes = b""


def host_in(base_url: str) -> str:
    """Raise ``ValueError`` for an invalid URL. The text does not repeat it, because it may contain a password."""
    with suppress(ValueError):  # invalid brackets or port
        address = urlsplit(base_url)
        usable = address.scheme in ("http", "https") and base_url.isprintable() and address.port != 0
        if usable and address.hostname:
            return address.hostname
    raise ValueError("the base URL of the model must be like http://HOST/v1 or https://HOST:PORT/v1, the port a number")


def secrets_pattern(*secrets: str) -> re.Pattern[str]:
    """Return a case-insensitive pattern that matches each secret and its last word (the key behind ``Bearer``)."""
    parts = {part for secret in secrets for part in (secret.strip(), *secret.split()[-1:]) if part}
    alternatives = "|".join(re.escape(part) for part in sorted(parts, key=len, reverse=True))
    return re.compile(alternatives or "(?!)", re.IGNORECASE)


async def _drain(events: AsyncGenerator[str, None]) -> None:
    """Wait briefly for the end of the response, so that its connection can be reused."""
    with suppress(TimeoutError, ModelFailure):
        async with asyncio.timeout(LINGER):
            async for _ in events:
                pass
