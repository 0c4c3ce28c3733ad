"""A Python function as a tool. ``@tool`` in ``decorator.py`` makes these of a function's own type hints.

Rules: a plain function runs in a thread, so it may block; an ``async`` one runs on the event loop and may not.
Arguments with wrong or missing names never reach the function: the model is told and can correct itself.
"""

import asyncio
import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Generic, ParamSpec, TypeVar

from ag_ui.core import Tool as ToolSpec
from msgspec import Struct

from app.ports import RunContext, ToolContent, ToolError
from app.tools.blocking import in_thread
from app.tools.content import content_of

P = ParamSpec("P")
R = TypeVar("R")

Check = Callable[[Mapping[str, object]], Mapping[str, object]]


def unchecked(arguments: Mapping[str, object]) -> Mapping[str, object]:
    """The arguments as they are: the function looks for itself."""
    return arguments


class FunctionTool(Struct, Generic[P, R], frozen=True):
    """Implements ``ports.Tool`` with a function that takes the arguments as keywords.

    Attributes:
        parameters: JSON Schema of the arguments, as the model sees it.
        function: plain or ``async``. If it has a parameter named ``ctx`` it is given the ``RunContext``. It gives text,
            content parts, or anything else, which goes back to the model as JSON text, and raises ``ToolError`` for
            what the model may read.
        timeout: seconds after which the call is given up; None waits as long as the run may last.
        check: makes what the function takes of what the model sent, or raises ``ToolError``.
        previewer: plain or ``async``; takes the same arguments and gives a text that shows the effect of a call to
            the person who is asked to approve it.
    """

    name: str
    description: str
    parameters: Mapping[str, object]
    function: Callable[P, R]
    timeout: float | None = None
    check: Check = unchecked
    previewer: Callable[..., object] | None = None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself, as Python code does."""
        return self.function(*args, **kwargs)

    @property
    def spec(self) -> ToolSpec:
        """Name, description and JSON Schema of the arguments."""
        return ToolSpec(name=self.name, description=self.description, parameters=dict(self.parameters))

    async def call(self, arguments: Mapping[str, object], ctx: RunContext) -> ToolContent:
        """Check the arguments, call the function, and give its result as text or parts."""
        call = self._bound(self.function, self.check(arguments), ctx)
        limit = asyncio.timeout(self.timeout)
        try:
            async with limit:
                result = await self._result(self.function, call)
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise ToolError(f"{self.name} did not answer within {self.timeout:g} seconds.") from error
        return content_of(result)

    async def preview(self, arguments: Mapping[str, object], ctx: RunContext) -> str | None:
        """The previewer's text; None without one. Raises ``ToolError`` for arguments that the function cannot take."""
        if self.previewer is None:
            return None
        shown = await self._result(self.previewer, self._bound(self.previewer, self.check(arguments), ctx))
        return None if shown is None else str(shown)

    def _bound(
        self, function: Callable[..., object], arguments: Mapping[str, object], ctx: RunContext
    ) -> Callable[[], object]:
        signature = inspect.signature(function)
        given: dict[str, object] = {"ctx": ctx} if "ctx" in signature.parameters else {}
        if "ctx" in arguments and given:
            raise ToolError(f"{self.name}: got an unexpected argument 'ctx'.")
        try:
            bound = signature.bind(**arguments, **given)
        except TypeError as error:
            raise ToolError(f"{self.name}: {error}.") from error
        return partial(function, *bound.args, **bound.kwargs)

    async def _result(self, function: Callable[..., object], call: Callable[[], object]) -> object:
        result = call() if inspect.iscoroutinefunction(function) else await in_thread(call)
        # A plain function may hand back a coroutine (a lambda around an async one does).
        return await result if inspect.isawaitable(result) else result
