"""Results of the commands that need no stream.

Rule: a command has the same result on every transport.
"""

from agui_container.engine.service import Service
from agui_container.engine.threads.threads import Resize
from agui_container.ports import Caller
from agui_container.protocol.commands import Attach, Cancel, Capabilities, Command, Ping, RunsGet, RunsList


class CommandResponder:
    """Executes commands on a service."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def answer(self, command: Command, caller: Caller, resize: Resize) -> dict[str, object]:
        """Execute a command and return its result, a JSON object with camelCase names.

        ``resize`` counts the bytes of a large result, from the time at which it is read.

        Raises:
            AppError: as raised by the engine, for example RUN_NOT_FOUND.
        """
        match command:
            case Cancel():
                return await self._service.runs.cancel(caller, command.thread_id, command.run_id)
            case RunsList():
                return {"runs": await self._service.runs.list(caller)}
            case Attach() | RunsGet():
                return await self._service.runs.find(caller, command.thread_id, command.run_id)
            case Capabilities():
                return {"capabilities": self._service.capabilities.model_dump(mode="json", by_alias=True)}
            case Ping():
                return {"pong": True}
            case _:
                return await self._service.threads.answer(caller, command, resize)
