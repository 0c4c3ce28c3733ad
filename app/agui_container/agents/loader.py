"""Loader for the agent that ``AGUI_AGENT`` names by a URL or as ``module:attribute``.

Rule: a wrong reference stops the server at startup. The error is one sentence that names the object found and the
accepted forms.
"""

from agui_container.agents.as_agent import AgentLoadError, as_agent
from agui_container.agents.frameworks import framework_agent, qualified_classes
from agui_container.agents.upstream import UpstreamOptions
from agui_container.imports import BadReference, import_string
from agui_container.ports import Agent

CREWAI = (
    "crewAI cannot share an environment with this server. Serve it with ag-ui-crewai in one of its own, and name its "
    "URL, such as AGUI_AGENT=http://127.0.0.1:9000/agent."
)

REFUSED = {
    ("bedrock_agentcore", "BedrockAgentCoreApp"): "Its entrypoint takes a payload: name an AG-UI agent instead.",
    ("crewai", "Crew"): CREWAI,
    ("crewai", "Flow"): CREWAI,
}
"""Classes whose objects cannot be served here, with advice for each (bedrock-agentcore 1.25.0, crewai 1.15.30)."""


def load_agent(reference: str, upstream: UpstreamOptions | None = None) -> Agent:
    """Return the agent of a URL of an AG-UI server, of an ARN of an AgentCore runtime or harness, or of an object.

    An object to import is ``module:attribute``. Dots in the attribute walk into objects. An ASGI application may be
    followed by the path of its AG-UI route, as in ``my_app:app/agui``.

    Args:
        reference: the reference.
        upstream: options for a server of any kind.

    Raises:
        AgentLoadError: the object does not exist, or it is not an agent.
    """
    name = reference.strip()
    if name.startswith(("http://", "https://", "arn:")):
        from agui_container.agents.upstream.loading import remote_agent  # noqa: PLC0415 - other agents need no httpx

        return remote_agent(name, upstream or UpstreamOptions())
    attribute, slash, path = name.partition("/")
    try:
        source = import_string(attribute)
    except BadReference as error:
        raise AgentLoadError(str(error)) from error
    return _application(source, attribute, path, upstream) if slash else adapt_agent(source, name, upstream)


def adapt_agent(source: object, name: str, upstream: UpstreamOptions | None = None) -> Agent:
    """Raise ``AgentLoadError``."""
    refuse(source, name)
    if ("starlette", "Starlette") in qualified_classes(source):
        return _application(source, name, None, upstream)
    return framework_agent(source, name, upstream.own_tools if upstream else ()) or as_agent(source, name)


def _application(source: object, name: str, path: str | None, upstream: UpstreamOptions | None) -> Agent:
    from agui_container.agents.upstream.loading import application_agent  # noqa: PLC0415 - other agents need no httpx

    return application_agent(source, name, path, upstream or UpstreamOptions())


def refuse(source: object, name: str) -> None:
    """Raise ``AgentLoadError`` for an object of ``REFUSED``."""
    for kind in qualified_classes(source):
        if kind in REFUSED:
            raise AgentLoadError(f"'{name}' is an object of {'.'.join(kind)}. {REFUSED[kind]}")
