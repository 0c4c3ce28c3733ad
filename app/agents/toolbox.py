"""The tools of one run: which the server runs, which the client runs, and what running one gives.

Rules: a server tool wins over a client tool of the same name; a call always gets a text for an answer, whatever its
tool does; only ``ToolError`` texts leave the server, other exceptions go to the log.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ag_ui.core import Tool as ToolSpec
from pydantic_core import from_json

from app.agents.turn import Call
from app.ports import RunContext, Tool, ToolError


@dataclass(frozen=True, slots=True)
class Toolbox:
    """Server tools and the client's tool descriptions, by name."""

    server: Mapping[str, Tool]
    client: Mapping[str, ToolSpec]

    @classmethod
    def of(cls, tools: Sequence[Tool], offered: Sequence[ToolSpec]) -> "Toolbox":
        """Put the server's tools and those that a client offers into one box."""
        server = {tool.spec.name: tool for tool in tools}
        return cls(server, {spec.name: spec for spec in offered if spec.name not in server})

    @property
    def specs(self) -> Sequence[ToolSpec]:
        """What the model may call."""
        return [*(tool.spec for tool in self.server.values()), *self.client.values()]

    def left_to_client(self, call: Call) -> bool:
        """Whether the client runs this call."""
        return call.name in self.client

    async def answers(self, calls: Sequence[Call], ctx: RunContext) -> Sequence[str]:
        """Run the calls side by side; the answers come in the order of the calls."""
        if len(calls) == 1:
            return [await self.answer(calls[0], ctx)]
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self.answer(call, ctx)) for call in calls]
        return [task.result() for task in tasks]

    async def answer(self, call: Call, ctx: RunContext) -> str:
        """Run one call. What goes wrong is the answer; only the cancellation of the run is raised."""
        tool = self.server.get(call.name)
        if tool is None:
            return f"Error: there is no tool named '{call.name}'."
        try:
            return await tool.call(arguments_of(call), ctx)
        except ToolError as error:
            return f"Error: {error}"
        except TimeoutError:
            ctx.logger.warning("tool=<%s> call=<%s> | the tool timed out", call.name, call.id, exc_info=True)
            return "Error: the tool timed out."
        except BaseException as error:
            if not _is_failure(error):
                raise
            ctx.logger.exception("tool=<%s> call=<%s> | the tool failed", call.name, call.id)
            return "Error: the tool failed."


def arguments_of(call: Call) -> Mapping[str, object]:
    """The arguments of a call; models leave them empty when there are none."""
    try:
        value: object = from_json(call.arguments or "{}", allow_inf_nan=False)
    except ValueError as error:
        raise ToolError("the arguments are not valid JSON.") from error
    if not isinstance(value, dict):
        raise ToolError("the arguments are not a JSON object.")
    return value


def _is_failure(error: BaseException) -> bool:
    """Whether the tool failed, as opposed to: the run or the process is being ended.

    ``sys.exit()`` in a tool must not end the server, and a tool can raise CancelledError without being cancelled (it
    awaited a task that was).
    """
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is None or task.cancelling() == 0
    return isinstance(error, (Exception, SystemExit))
