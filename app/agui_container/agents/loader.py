"""The agent that ``AGUI_AGENT=module:attribute`` names.

Rule: whatever is wrong is found at the start, and said in one sentence that names what was found and what is accepted.
"""

from agui_container.agents.custom.as_agent import ACCEPTED, AgentLoadError, as_agent
from agui_container.agents.frameworks import framework_agent, qualified_classes
from agui_container.imports import BadReference, import_string
from agui_container.ports import Agent

AWS_SERVERS = {
    ("bedrock_agentcore", "AGUIApp"): "Name the function or object that is its entrypoint instead.",
    ("bedrock_agentcore", "BedrockAgentCoreApp"): "Its entrypoint takes a payload: name an AG-UI agent instead.",
}
"""The servers of AWS's SDK (bedrock-agentcore 1.25.0), and advice for each. Their ``run`` starts a server.

The SDK has no public attribute for an entrypoint, so such an object cannot be served.
"""


def load_agent(reference: str) -> Agent:
    """Import the module, find the attribute (dots go deeper), and make an agent of it.

    Raises:
        AgentLoadError: if there is no such thing, or it is not an agent.
    """
    try:
        source = import_string(reference)
    except BadReference as error:
        raise AgentLoadError(str(error)) from error
    return adapt_agent(source, reference.strip())


def adapt_agent(source: object, name: str) -> Agent:
    """Make an agent of an object in any accepted form. ``name`` is what messages call it.

    Raises:
        AgentLoadError: it is not an agent.
    """
    refuse_aws_server(source, name)
    return framework_agent(source, name) or as_agent(source, name)


def refuse_aws_server(source: object, name: str) -> None:
    """Raise ``AgentLoadError`` for an application of AWS's SDK. ``name`` is what the message calls it."""
    for kind in qualified_classes(source):
        if kind in AWS_SERVERS:
            raise AgentLoadError(f"'{name}' is a server of its own ({'.'.join(kind)}). {AWS_SERVERS[kind]} {ACCEPTED}")
