"""The agent that ``AGUI_AGENT=module:attribute`` names.

Rule: whatever is wrong is found at the start, and said in one sentence that names what was found and what is accepted.
"""

from app.agents.callables import AgentLoadError, adapt
from app.agents.frameworks import framework_agent
from app.ports import Agent
from app.references import BadReference, find


def load_agent(reference: str) -> Agent:
    """Import the module, find the attribute (dots go deeper), and make an agent of it.

    Raises:
        AgentLoadError: if there is no such thing, or it is not an agent.
    """
    try:
        source = find(reference)
    except BadReference as error:
        raise AgentLoadError(str(error)) from error
    name = reference.strip()
    return framework_agent(source, name) or adapt(source, name)
