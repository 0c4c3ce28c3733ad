"""Other agents as tools of an assistant: a call hands over a task, and what the agent says last is the result.

Rule: an invocation is a run inside the run. Whatever its agent does, it begins with SUBAGENT_STARTED and ends with
SUBAGENT_FINISHED or SUBAGENT_ERROR, all it emits between them is attributed to it, and its failure is a tool's failure
that the assistant can go on from. If it stops to ask, it is suspended, and an answer takes it up again under the same
id. Source: AG-UI spec 1.1, events/subagents.
"""

from collections.abc import AsyncIterator, Mapping, Sequence

from ag_ui.core import Message, ResumeEntry, UserMessage
from ag_ui.core import Tool as ToolSpec
from msgspec import Struct
from msgspec.structs import replace

from app.agents.callables import kept
from app.agents.invocation import Invocation
from app.agents.toolbox import is_failure
from app.closing import closing
from app.core.errors import AppError, Code, IllegalEvent
from app.ports import Agent, Item, RunContext, Suspended, Suspension, ToolContent, ToolError
from app.ports.store import Store
from app.telemetry import Delegation

BURST = 16
"""Events that an agent may send before other runs and /ping get their turn."""

FAILED = "The agent failed; the server's log has the cause."

PARAMETERS: dict[str, object] = {
    "type": "object",
    "properties": {"task": {"type": "string", "description": "What to do, with all that must be known for it"}},
    "required": ["task"],
    "additionalProperties": False,
}


class Subagent(Struct, frozen=True):
    """Implements ``ports.Tool`` and ``ports.Resumable`` with any agent.

    Attributes:
        name: the tool's name, and the agent's towards clients.
        description: what it is good for; the model and the client read it.
        agent: answers each task in a conversation of its own, which holds that task and nothing else. It is offered no
            client tools.
    """

    name: str
    description: str
    agent: Agent

    def kept_in(self, store: Store, depth: int) -> "Subagent":
        """The same, its agent keeping things there."""
        return replace(self, agent=kept(self.agent, store, depth))

    @property
    def spec(self) -> ToolSpec:
        """One argument, the task."""
        return ToolSpec(name=self.name, description=self.description, parameters=PARAMETERS)

    async def call(self, arguments: Mapping[str, object], ctx: RunContext) -> ToolContent:
        """Hand over ``task``. Raises ``ToolError``, and ``Suspended`` when the agent stopped to ask."""
        task = arguments.get("task")
        if not isinstance(task, str) or len(arguments) > 1:
            raise ToolError("the arguments must be one text, 'task'.")
        return await self._invoke(ctx.new_id(), [UserMessage(id=ctx.new_id(), content=task)], (), ctx)

    async def resume(self, suspension: Suspension, answers: Sequence[ResumeEntry], ctx: RunContext) -> ToolContent:
        """Go on where the agent stopped. Raises as ``call`` does."""
        return await self._invoke(suspension.subagent_run_id, suspension.messages, answers, ctx)

    async def _invoke(
        self, key: str, messages: Sequence[Message], answers: Sequence[ResumeEntry], ctx: RunContext
    ) -> ToolContent:
        invocation = Invocation(key, messages, ctx)
        invocation.start(self.name, self.description)
        try:
            with Delegation(self.name, self.description, key, ctx):
                async with closing(self.agent.run(invocation.input(answers), invocation.context())) as items:
                    await drive(items, invocation, ctx)
                return invocation.finish()
        except AppError as error:
            ctx.logger.warning("subagent=<%s> | it failed: %s", self.name, error.code, exc_info=True)
            raise invocation.fail(error.message, error.code) from error
        except IllegalEvent as error:
            ctx.logger.exception("subagent=<%s> | it broke the protocol", self.name)
            raise invocation.fail(FAILED, Code.AGENT_ERROR) from error
        except BaseException as error:
            if isinstance(error, ToolError | Suspended) or not is_failure(error):
                raise
            ctx.logger.exception("subagent=<%s> | it failed", self.name)
            raise invocation.fail(FAILED, Code.AGENT_ERROR) from error


async def drive(items: AsyncIterator[Item], invocation: Invocation, ctx: RunContext) -> None:
    """Take what the agent yields, up to its end; what follows that is left."""
    count = 0
    async for item in items:
        if invocation.ended:
            return
        invocation.emit(item)
        count += 1
        if count % BURST == 0 and not invocation.ended:
            await ctx.yield_turn()
