"""An assistant with two subagents: a plain function, and an assistant with a tool of its own.

    AGUI_AGENT=examples.team_agent:agent make run

Say: call poet {"task": "the sea"}
Or:  call accountant {"task": "calculate 12*30"}
"""

from collections.abc import AsyncIterator

from ag_ui.core import RunAgentInput

from agui_container import Assistant, Subagent, as_agent
from agui_container.models import OfflineModel
from agui_container.tools import builtin_tools


async def verses(input: RunAgentInput) -> AsyncIterator[str]:
    """Write a verse about the task. Any agent can be a subagent: a framework's, or a function like this."""
    task = input.messages[-1].content
    yield f"O {task}, "
    yield "how you rhyme."


poet = Subagent("poet", "Writes verses about a subject.", as_agent(verses, "verses"))
accountant = Subagent("accountant", "Computes.", Assistant(model=OfflineModel(), tools=builtin_tools()))

agent = Assistant(model=OfflineModel(), tools=(poet, accountant))
