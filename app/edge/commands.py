"""What the commands that need no stream answer, the same on every transport (design 4.3)."""

from app.core.inbound import Attach, Cancel, Capabilities, Command
from app.engine.service import Service
from app.ports import Caller


async def answer(service: Service, command: Command, caller: Caller) -> dict[str, object]:
    """The command's result: camelCase JSON. Raises ``AppError`` where the run is not there."""
    match command:
        case Cancel():
            return await service.cancel(caller, command.thread_id, command.run_id)
        case Attach():
            return await service.find(caller, command.thread_id, command.run_id)
        case Capabilities():
            return {"capabilities": service.capabilities.model_dump(mode="json", by_alias=True)}
        case _:
            return {"pong": True}
