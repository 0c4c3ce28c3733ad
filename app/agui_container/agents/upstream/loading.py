"""Construction of upstream agents from what ``AGUI_AGENT`` names. It is imported only if there is one.

Rule: region, endpoint and credentials of an ARN are those that botocore finds. botocore is imported only for an ARN.

Source: InvokeAgentRuntime and InvokeHarness in AWS's API reference; botocore 1.44.8.
"""

import re
from contextlib import suppress
from typing import cast
from urllib.parse import quote

import httpx

from agui_client.agentcore import SERVICE, SigV4
from agui_container.agents.as_agent import ACCEPTED, AgentLoadError
from agui_container.agents.upstream import UpstreamOptions
from agui_container.agents.upstream.agent import UpstreamAgent
from agui_container.agents.upstream.asgi import IN_PROCESS_HOST, Application, AsgiTransport, post_paths
from agui_container.agents.upstream.http import HttpUpstream
from agui_container.imports import advice_for

RESOURCE = re.compile(
    r"(?P<arn>arn:aws[\w-]*:bedrock-agentcore:(?P<region>[\w-]+):\d{12}:(?P<kind>runtime|harness)/[\w-]+)"
    r"(?:/(?:runtime-)?endpoint/(?P<endpoint>\w+))?"
)


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


def agentcore_server(arn: str) -> tuple[str, str, httpx.Auth]:
    """Return the kind of the resource, runtime or harness, the URL that invokes it, and the signature.

    Raise ``ValueError`` if this is an ARN of something else, ``ImportError`` without botocore.
    """
    found = RESOURCE.fullmatch(arn)
    if found is None:
        raise ValueError(f"'{arn}' is no ARN of an AgentCore runtime or harness, or of one of their endpoints")
    from botocore.session import get_session  # type: ignore[import-untyped]  # noqa: PLC0415 - optional

    session = get_session()
    endpoint = session.create_client(SERVICE, region_name=found["region"]).meta.endpoint_url
    name, qualifier = quote(found["arn"], safe=""), found["endpoint"] or "DEFAULT"
    paths = {
        "runtime": f"runtimes/{name}/invocations?qualifier={qualifier}",
        "harness": f"harnesses/invoke?harnessArn={name}&qualifier={qualifier}",
    }
    return found["kind"], f"{endpoint}/{paths[found['kind']]}", SigV4(found["region"], session)


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
    paths = list(post_paths(app))
    if len(paths) == 1:
        return paths[0]
    if not paths:
        raise AgentLoadError(f"'{name}' is an ASGI application without a POST route: {ACCEPTED}")
    listed = ", ".join(f"{name}{path}" for path in paths)
    raise AgentLoadError(f"'{name}' is an ASGI application with {len(paths)} POST routes. Name one of {listed}.")
