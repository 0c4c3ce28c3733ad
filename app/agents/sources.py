"""The server's tools for one run: the fixed ones, and what each source has now.

Rules: sources are asked side by side, and one that fails costs the run only its own tools: the log and the client
(CUSTOM ``tools.unavailable``) are told. The first tool of a name keeps it, fixed ones before those of sources.
"""

import asyncio
from collections.abc import Sequence

from ag_ui.core import CustomEvent
from msgspec import Struct

from app.agents.toolbox import is_failure
from app.ports import RunContext, Tool, ToolError, ToolSource

UNAVAILABLE = "tools.unavailable"
FAILED = "Its tools could not be listed."


class Outage(Struct, frozen=True):
    """Tools that a run has to do without. ``down``: because the source did not give them."""

    source: str
    message: str
    down: bool = True

    @property
    def event(self) -> CustomEvent:
        """What the client is told."""
        return CustomEvent(name=UNAVAILABLE, value={"source": self.source, "message": self.message})


async def gathered(
    tools: Sequence[Tool], sources: Sequence[ToolSource], ctx: RunContext
) -> tuple[Sequence[Tool], Sequence[Outage]]:
    """The tools of a run, and what is missing."""
    if not sources:
        return tools, ()
    async with asyncio.TaskGroup() as group:
        asked = [(source, group.create_task(_asked(source, ctx))) for source in sources]
    found: dict[str, Tool] = {}
    for tool in tools:
        found.setdefault(tool.spec.name, tool)
    outages = []
    for source, task in asked:
        answer = task.result()
        outage = answer if isinstance(answer, Outage) else _added(found, source, answer)
        if outage is not None:
            ctx.logger.warning("source=<%s> | tools are unavailable: %s", outage.source, outage.message)
            outages.append(outage)
    return list(found.values()), outages


async def _asked(source: ToolSource, ctx: RunContext) -> Sequence[Tool] | Outage:
    try:
        return await source.tools(ctx)
    except ToolError as error:
        return Outage(source.name, str(error))
    except BaseException as error:
        if not is_failure(error):
            raise
        ctx.logger.exception("source=<%s> | its tools could not be listed", source.name)
        return Outage(source.name, FAILED)


def _added(found: dict[str, Tool], source: ToolSource, tools: Sequence[Tool]) -> Outage | None:
    """Add the source's tools to those that were found; what was left out, because the names are taken."""
    named = [(tool.spec.name, tool) for tool in tools]
    taken = sorted(name for name, _ in named if name in found)
    for name, tool in named:
        found.setdefault(name, tool)
    if not taken:
        return None
    return Outage(source.name, f"Left out, because other tools have these names: {', '.join(taken)}.", down=False)
