"""Loader for the agent that ``AGUI_AGENT=module:attribute`` names.

Rule: a wrong reference stops the server at startup. The error is one sentence that names the object found and the
accepted forms.
"""

from agui_container.agents.as_agent import ACCEPTED, AgentLoadError, as_agent
from agui_container.agents.frameworks import framework_agent, qualified_classes
from agui_container.imports import BadReference, import_string
from agui_container.ports import Agent

AWS_SERVERS = {
    (
        "bedrock_agentcore",
        "AGUIApp",
    ): "Name the function or object that is its entrypoint instead.",
    ("bedrock_agentcore", "BedrockAgentCoreApp"): "Its entrypoint takes a payload: name an AG-UI agent instead.",
}
"""Server classes of AWS's SDK (bedrock-agentcore 1.25.0), by package and class name, with advice for each.

Their ``run`` starts a server. The SDK has no public attribute for the entrypoint, so these objects cannot be served.
"""


def load_agent(reference: str) -> Agent:
    """Import the object that ``reference`` names and adapt it to an agent. Dots in the attribute walk into objects.

    The URL of an AG-UI server, and the ARN of an AgentCore runtime, are agents elsewhere.

    Raises:
        AgentLoadError: the object does not exist, or it is not an agent.
    """
    try:
        source = import_string(reference)
    except BadReference as error:
        raise AgentLoadError(str(error)) from error
    return adapt_agent(source, reference.strip())


def adapt_agent(source: object, name: str) -> Agent:
    """Make an agent of an object in any accepted form. ``name`` is its name in messages.

    Raises:
        AgentLoadError: it is not an agent.
    """
    refuse_aws_server(source, name)
    return framework_agent(source, name) or as_agent(source, name)


def refuse_aws_server(source: object, name: str) -> None:
    """Raise ``AgentLoadError`` if ``source`` is an application of AWS's SDK. ``name`` is its name in the message."""
    for kind in qualified_classes(source):
        if kind in AWS_SERVERS:
            raise AgentLoadError(f"'{name}' is a server of its own ({'.'.join(kind)}). {AWS_SERVERS[kind]} {ACCEPTED}")
