"""A runtime or a harness of AgentCore as the server of an agent: its address, and the signature of each request.

Rule: region, endpoint and credentials are those that botocore finds. It is imported only if a setting names an ARN. A
thread of the client is a session of the runtime.

Source: InvokeAgentRuntime and InvokeHarness in AWS's API reference; botocore 1.44.8.
"""

import re
from urllib.parse import quote

import httpx

from agui_client.agentcore import SERVICE, SigV4

RESOURCE = re.compile(
    r"(?P<arn>arn:aws[\w-]*:bedrock-agentcore:(?P<region>[\w-]+):\d{12}:(?P<kind>runtime|harness)/[\w-]+)"
    r"(?:/(?:runtime-)?endpoint/(?P<endpoint>\w+))?"
)


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
