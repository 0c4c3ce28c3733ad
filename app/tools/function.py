"""A Python function as a tool.

Rules: a plain function runs in a thread, so it may block; an ``async`` one runs on the event loop and may not.
Arguments with wrong or missing names never reach the function: the model is told and can correct itself.
"""

import asyncio
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from ag_ui.core import Tool as ToolSpec
from pydantic_core import to_json

from app.ports import RunContext, ToolError
from app.tools.threads import in_thread


@dataclass(frozen=True, slots=True)
class FunctionTool:
    """Implements ``ports.Tool`` with a function that takes the arguments as keywords.

    Attributes:
        parameters: JSON Schema of the arguments, as the model sees it.
        function: plain or ``async``. If it has a parameter named ``ctx`` it is given the ``RunContext``. A result
            that is not a string goes back to the model as JSON text. It raises ``ToolError`` for what the model
            may read.
        timeout: seconds after which the call is given up; None waits as long as the run may last.
    """

    name: str
    description: str
    parameters: Mapping[str, object]
    function: Callable[..., object]
    timeout: float | None = None

    @property
    def spec(self) -> ToolSpec:
        """Name, description and JSON Schema of the arguments."""
        return ToolSpec(name=self.name, description=self.description, parameters=dict(self.parameters))

    async def call(self, arguments: Mapping[str, object], ctx: RunContext) -> str:
        """Check the argument names, call the function, and give its result as text."""
        call = self._bound(arguments, ctx)
        limit = asyncio.timeout(self.timeout)
        try:
            async with limit:
                result = await self._result(call)
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise ToolError(f"{self.name} did not answer within {self.timeout:g} seconds.") from error
        return result if isinstance(result, str) else to_json(result, inf_nan_mode="strings").decode()

    def _bound(self, arguments: Mapping[str, object], ctx: RunContext) -> Callable[[], object]:
        signature = inspect.signature(self.function)
        given: dict[str, object] = {"ctx": ctx} if "ctx" in signature.parameters else {}
        if "ctx" in arguments and given:
            raise ToolError(f"{self.name}: got an unexpected argument 'ctx'.")
        try:
            bound = signature.bind(**arguments, **given)
        except TypeError as error:
            raise ToolError(f"{self.name}: {error}.") from error
        return partial(self.function, *bound.args, **bound.kwargs)

    async def _result(self, call: Callable[[], object]) -> object:
        result = call() if inspect.iscoroutinefunction(self.function) else await in_thread(call)
        # A plain function may hand back a coroutine (a lambda around an async one does).
        return await result if inspect.isawaitable(result) else result
