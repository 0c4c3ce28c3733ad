"""The Bedrock model: each call runs in a thread and is retried until its first delta.

Rules: everything slow (building the request, finding credentials, connecting, reading) happens in threads. Dropped
parts are reported between building and sending the request, so a caller that ends there pays for no call. A cancelled
caller returns at once, and the read of its answer is aborted. A call is retried only if it has yielded no other delta,
so no output appears twice.
"""

import logging
import threading
from collections.abc import AsyncGenerator, Generator, Iterator, Mapping
from contextlib import aclosing, contextmanager
from functools import partial

from ag_ui.core import Tool as ToolSpec

from agui_container.log_values import format_fields
from agui_container.models.bedrock.client import BedrockClient, BedrockEvents
from agui_container.models.bedrock.failures import model_failure
from agui_container.models.bedrock.options import BedrockOptions
from agui_container.models.bedrock.request import Request, bedrock_tools, request_of
from agui_container.models.bedrock.stream_parser import BedrockStreamParser
from agui_container.models.context_windows import known_window
from agui_container.models.failures import ModelFailure, RetryPolicy, stream_with_retries
from agui_container.ports import Delta, Prompt
from agui_container.protocol.errors import ErrorCode
from agui_container.threads import DaemonThreadPool, ThreadStream

logger = logging.getLogger(__name__)

LONGEST_WAIT = 8.0
"""Seconds of the longest wait between two attempts."""

Tools = Mapping[str, ToolSpec]
"""Tools in the form that Bedrock takes, by wire name."""


class BedrockModel:
    """Model on Amazon Bedrock. Implements ``ports.Model`` and ``ports.ContextWindowed``.

    One instance serves any number of runs. Its client is made by the first call.

    Args:
        model_id: a model id, an inference profile or an ARN.
        options: additional fields of the request, and limits.
        retry_policy: retries; its timeouts do not count here.
    """

    def __init__(
        self, model_id: str, options: BedrockOptions | None = None, *, retry_policy: RetryPolicy | None = None
    ) -> None:
        self.provider, self.name = "bedrock", model_id
        self._options = options or BedrockOptions()
        self.context_window = self._options.context_window or known_window(model_id)
        self._retry_policy = retry_policy or RetryPolicy(retries=self._options.max_attempts - 1, longest=LONGEST_WAIT)
        self._client = BedrockClient(self._options)
        self._threads = DaemonThreadPool(self._options.max_calls)
        self._tools = bedrock_tools(model_id)

    async def stream(self, prompt: Prompt) -> AsyncGenerator[Delta, None]:
        """Call the model and yield its deltas.

        Raises:
            ModelFailure: the call failed, and is not retried.
        """
        sent: Tools = {}

        async def attempt() -> AsyncGenerator[Delta, None]:
            nonlocal sent
            sent = self._tools.convert(prompt.tools)
            try:
                async with aclosing(self._attempt(prompt, sent)) as deltas:
                    async for delta in deltas:
                        yield delta
            except Exception as error:
                raise model_failure(error) from error

        def adapt(failure: ModelFailure) -> bool:
            is_refusal = failure.code is ErrorCode.MODEL_REJECTED
            return is_refusal and self._tools.learn(failure.error_body.text, prompt.tools, sent)

        async with aclosing(stream_with_retries(attempt, self._retry_policy, adapt, self._log_failure)) as deltas:
            async for delta in deltas:
                yield delta

    async def _attempt(self, prompt: Prompt, tools: Tools) -> AsyncGenerator[Delta, None]:
        request = await self._threads.call("request", partial(request_of, self.name, self._options, prompt, tools))
        for report in request.dropped:
            yield report
        with self._start_call(request) as deltas:
            while await deltas.wait_for_items():
                for delta in deltas.take_items():
                    yield delta

    @contextmanager
    def _start_call(self, request: Request) -> Iterator[ThreadStream[Delta]]:
        call = _BedrockCall(self._client, self.name, request)
        deltas = self._threads.stream("model", call.run)
        try:
            yield deltas
        finally:
            deltas.stop()
            call.abort()

    def _log_failure(self, failure: ModelFailure, attempt: int, wait: float | None) -> None:
        fields = {"model": self.name, "code": failure.code, "attempt": attempt + 1, "retry_in": wait}
        logger.warning("model call failed %s", format_fields(fields), exc_info=failure.__cause__)


class _BedrockCall:
    """One attempt of a call. ``run`` is called in the thread, ``abort`` on the event loop."""

    def __init__(self, client: BedrockClient, model_id: str, request: Request) -> None:
        self._client = client
        self._model_id = model_id
        self._request = request
        self._lock = threading.Lock()
        self._events: BedrockEvents | None = None
        self._aborted = False
        self._abortable = False
        self._drain = False

    def run(self, deltas: ThreadStream[Delta]) -> None:
        try:
            deltas.feed(self._read_deltas())
        except BaseException as error:  # noqa: BLE001 - raised on the event loop
            deltas.fail(error)
        self._disable_abort()
        deltas.end()
        try:
            self._close()
        except Exception:
            logger.debug("model call cleanup failed %s", format_fields({"model": self._model_id}), exc_info=True)

    def abort(self) -> None:
        with self._lock:
            self._aborted = True
            if self._events is not None and self._abortable:
                self._events.abort()

    def _read_deltas(self) -> Generator[Delta, None, None]:
        parser = BedrockStreamParser(self._model_id, self._request.tool_names)
        if not self._open(self._client.converse(self._request.body)):
            return
        try:
            yield from self._deltas(parser)
            parser.finish()
        except Exception:
            if not parser.is_complete:
                raise
            logger.warning("model answer without usage %s", format_fields({"model": self._model_id}), exc_info=True)

    def _close(self) -> None:
        """Release the connection. It returns to the pool only if the answer was read to its end."""
        if self._events is None:
            return
        try:
            if self._drain:
                for _ in self._events:
                    pass
        finally:
            self._events.close()

    def _open(self, events: BedrockEvents) -> bool:
        with self._lock:
            self._events = events
            self._abortable = True
            return not self._aborted

    def _deltas(self, parser: BedrockStreamParser) -> Generator[Delta, None, None]:
        if self._events is None:
            return
        for event in self._events:
            if "metadata" in event:
                self._disable_abort()
            yield from parser.feed(event)
            if parser.is_ended:
                self._drain = True
                return

    def _disable_abort(self) -> None:
        """Make ``abort`` do nothing, because the connection may soon serve another call."""
        with self._lock:
            self._abortable = False
