"""Client tools: functions of this program that an agent may call.

``@client_tool`` takes the name, the description and the JSON Schema of the arguments from the function. Rules:

- A call validates its arguments first. Wrong ones are a result that the model reads, and the function is not called.
- A call always has a result, also if its function raises, takes too long, or does not exist.
- A plain function runs in a thread of its own, so it may block. An ``async`` function runs on the event loop.
"""

import asyncio
import inspect
import time
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from functools import partial
from typing import overload
from uuid import uuid4

from ag_ui.core import ContentPart, Tool, ToolCall, ToolMessage
from pydantic import BaseModel
from pydantic_core import to_json

from agui_client.errors import Declined
from agui_client.events import arguments_of
from agui_client.own_thread import in_thread
from agui_core.content import PARTS
from agui_core.function_schema import ArgumentError, ArgumentSchema, ToolDefinitionError, parse_docstring

Function = Callable[..., object]


class ClientToolResultStatus(StrEnum):
    """End of a call."""

    SUCCESS = "success"
    ERROR = "error"
    DECLINED = "declined"


class ClientToolResult(BaseModel):
    """The result of a call.

    Attributes:
        output: of a success text, content parts, or any value that JSON can represent; else a text that says why there
            is none.
        runtime_ms: how long the call took.
    """

    tool_call_id: str
    tool_name: str
    status: ClientToolResultStatus = ClientToolResultStatus.SUCCESS
    output: object = None
    runtime_ms: int = 0

    @property
    def message(self) -> ToolMessage:
        """The message that brings the result to the agent."""
        if (parts := _parts(self.output)) is not None:
            return ToolMessage(id=str(uuid4()), tool_call_id=self.tool_call_id, content=parts)
        text = self.output if isinstance(self.output, str) else to_json(self.output, fallback=str).decode()
        content = f"Error: {text}" if self.status is ClientToolResultStatus.ERROR else text
        error = None if self.status is ClientToolResultStatus.SUCCESS else text
        return ToolMessage(id=str(uuid4()), tool_call_id=self.tool_call_id, content=content, error=error)


def _parts(output: object) -> list[ContentPart] | None:
    """The output as content parts, such as those of ``attachment``, or None if it is something else."""
    values = output if isinstance(output, list) else [output]
    parts: list[ContentPart] = [value for value in values if isinstance(value, PARTS)]
    return parts if parts and len(parts) == len(values) else None


class ClientTool:
    """A function with what an agent must know of it. ``@client_tool`` makes one.

    Attributes:
        timeout: seconds after which a call counts as failed. None means that of the session.

    Raises:
        ToolDefinitionError: there is no description, or the parameters cannot be described.
    """

    def __init__(
        self,
        fn: Function,
        *,
        name: str | None = None,
        description: str | None = None,
        input_schema: Mapping[str, object] | None = None,
        timeout: float | None = None,
    ) -> None:
        summary, parameters = parse_docstring(fn)
        self._fn = fn
        self.name = name or str(getattr(fn, "__name__", ""))
        self.timeout = timeout
        if not (description or summary):
            raise ToolDefinitionError(f"'{self.name}' has no docstring: give a description.")
        self._arguments = None if input_schema is not None else ArgumentSchema(fn, self.name, parameters)
        schema = input_schema if self._arguments is None else self._arguments.schema
        self.spec = Tool(name=self.name, description=description or summary, parameters=schema)

    def __call__(self, *args: object, **kwargs: object) -> object:
        """Call the function itself."""
        return self._fn(*args, **kwargs)

    async def run(self, arguments: Mapping[str, object]) -> object:
        """Validate the arguments and call the function. Raises ``ArgumentError``, and what the function raises."""
        call = partial(self._fn, **(self._arguments.check(arguments) if self._arguments else arguments))
        result = call() if inspect.iscoroutinefunction(self._fn) else await in_thread(call)
        return await result if inspect.isawaitable(result) else result


@overload
def client_tool(fn: Function, /) -> ClientTool: ...


@overload
def client_tool(
    *,
    name: str | None = None,
    description: str | None = None,
    input_schema: Mapping[str, object] | None = None,
    timeout: float | None = None,
) -> Callable[[Function], ClientTool]: ...


def client_tool(
    fn: Function | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    input_schema: Mapping[str, object] | None = None,
    timeout: float | None = None,
) -> ClientTool | Callable[[Function], ClientTool]:
    """Make a ``ClientTool`` of a function. Use it bare, or with what the function does not say."""
    make = partial(ClientTool, name=name, description=description, input_schema=input_schema, timeout=timeout)
    return make if fn is None else make(fn)


ToolsByName = Mapping[str, ClientTool | Tool]
"""The client tools of a session. A bare ``Tool`` has no function here."""


async def run_calls(calls: Iterable[ToolCall], tools: ToolsByName, timeout: float | None) -> list[ClientToolResult]:  # noqa: ASYNC109 - of each call
    """Run calls at the same time, and return their results in the order of the calls.

    ``timeout`` is that of a call whose tool has no limit of its own.
    """
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_run(call, tools, timeout)) for call in calls]
    return [task.result() for task in tasks]


async def _run(call: ToolCall, tools: ToolsByName, seconds: float | None) -> ClientToolResult:
    name, began = call.function.name, time.monotonic()
    status, output = await _outcome(name, tools.get(name), arguments_of(call), seconds)
    took = round((time.monotonic() - began) * 1000)
    return ClientToolResult(tool_call_id=call.id, tool_name=name, status=status, output=output, runtime_ms=took)


async def _outcome(
    name: str, tool: ClientTool | Tool | None, arguments: Mapping[str, object] | None, seconds: float | None
) -> tuple[ClientToolResultStatus, object]:
    if not isinstance(tool, ClientTool):
        return ClientToolResultStatus.ERROR, f"There is no tool named {name!r} here."
    if arguments is None:
        return ClientToolResultStatus.ERROR, f"The arguments of {name} are no JSON object."
    limit = asyncio.timeout(seconds if tool.timeout is None else tool.timeout)
    try:
        async with limit:
            return ClientToolResultStatus.SUCCESS, await tool.run(arguments)
    except Declined as declined:
        return ClientToolResultStatus.DECLINED, str(declined) or "The user declined this call."
    except ArgumentError as error:
        return ClientToolResultStatus.ERROR, f"{name}: {error}"
    except Exception as error:  # noqa: BLE001 - the model reads it
        reason = "took too long." if limit.expired() else f"failed: {str(error) or type(error).__name__}"
        return ClientToolResultStatus.ERROR, f"{name} {reason}"
