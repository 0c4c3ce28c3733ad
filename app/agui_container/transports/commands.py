"""Results of the commands that need no stream.

Rule: a command has the same result on every transport. A large result is encoded in a worker thread, so that it does
not block the event loop.
"""

from collections.abc import Mapping

from pydantic_core import to_json

from agui_container.engine.admission.offload import LARGE_BYTES, offload
from agui_container.engine.admission.quota import Resize
from agui_container.engine.service import Service
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


async def encode_result(result: Mapping[str, object], identity: str, size: int) -> bytes:
    """Return a result as JSON.

    Args:
        result: the JSON object.
        identity: whose turn the work takes.
        size: estimated bytes of the result.
    """
    if size <= LARGE_BYTES:
        return to_json(result)
    return await offload(identity, encode_items, result)


def encode_items(result: Mapping[str, object]) -> bytes:
    """Encode the items of lists one by one, because one call for all would keep the interpreter from the event loop."""
    members = [b"%b:%b" % (to_json(name), encode_value(value)) for name, value in result.items()]
    return b"{%b}" % b",".join(members)


def encode_value(value: object) -> bytes:
    """Encode the value of one member."""
    return b"[%b]" % b",".join([to_json(item) for item in value]) if isinstance(value, list) else to_json(value)
