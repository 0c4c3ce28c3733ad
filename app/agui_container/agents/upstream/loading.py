"""Construction of upstream agents from what ``AGUI_AGENT`` names. It is imported only if there is one."""

from contextlib import suppress
from typing import cast

import httpx

from agui_container.agents.as_agent import ACCEPTED, AgentLoadError
from agui_container.agents.upstream import UpstreamOptions
from agui_container.agents.upstream.agent import UpstreamAgent
from agui_container.agents.upstream.agentcore import agentcore_server
from agui_container.agents.upstream.asgi import IN_PROCESS_HOST, Application, AsgiTransport, post_paths
from agui_container.agents.upstream.http import HttpUpstream
from agui_container.imports import advice_for


def remote_agent(name: str, options: UpstreamOptions) -> UpstreamAgent:
    """Make an agent of a URL or an ARN. Raises ``AgentLoadError``."""
    if not name.startswith("arn:"):
        with suppress(httpx.InvalidURL):
            if httpx.URL(name).host:
                return UpstreamAgent(HttpUpstream(name, options), options.own_tools)
        raise AgentLoadError(f"'{name}' is no URL of an AG-UI server, such as http://127.0.0.1:9000/agent.")
    try:
        kind, url, auth = agentcore_server(name)
    except ValueError as error:
        raise AgentLoadError(f"{error}.") from error
    except ImportError as error:
        raise AgentLoadError(f"'{name}' needs the packages of AWS. {advice_for('aws')}.") from error
    if kind == "harness":
        from agui_container.agents.upstream.harness import HarnessUpstream  # noqa: PLC0415 - needs botocore

        return UpstreamAgent(HarnessUpstream(url, options, auth), options.own_tools)
    return UpstreamAgent(HttpUpstream(url, options, auth=auth), options.own_tools)


def application_agent(source: object, name: str, path: str | None, options: UpstreamOptions) -> UpstreamAgent:
    """Make an agent of an ASGI application. Without a path, its only POST route is that of AG-UI.

    Raises:
        AgentLoadError: the object cannot be called, or it has no POST route or several, which the message lists.
    """
    if not callable(source):
        raise AgentLoadError(f"'{name}' is an object of type {type(source).__name__}, and no ASGI application.")
    path = only_post_path(source, name) if path is None else path
    url = f"http://{IN_PROCESS_HOST}/{path.lstrip('/')}"
    upstream = HttpUpstream(url, options, AsgiTransport(cast("Application", source)))
    return UpstreamAgent(upstream, options.own_tools)


def only_post_path(app: object, name: str) -> str:
    """Raise ``AgentLoadError`` if the application has none or several. The message lists them."""
    paths = post_paths(app)
    if len(paths) == 1:
        return paths[0]
    if not paths:
        raise AgentLoadError(f"'{name}' is an ASGI application without a POST route: {ACCEPTED}")
    listed = ", ".join(f"{name}{path}" for path in paths)
    raise AgentLoadError(f"'{name}' is an ASGI application with {len(paths)} POST routes. Name one of {listed}.")
