"""A runtime or a harness of AgentCore as the server of an agent: its address, and the signature of each request.

Rule: region, endpoint and credentials are those that botocore finds. It is imported only if a setting names an ARN. A
thread of the client is a session of the runtime.

Source: InvokeAgentRuntime and InvokeHarness in AWS's API reference; botocore 1.44.8.
"""

import asyncio
import re
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING
from urllib.parse import quote

import httpx

if TYPE_CHECKING:
    from botocore.session import Session  # type: ignore[import-untyped]

SERVICE = "bedrock-agentcore"
RESOURCE = re.compile(
    r"(?P<arn>arn:aws[\w-]*:bedrock-agentcore:(?P<region>[\w-]+):\d{12}:(?P<kind>runtime|harness)/[\w-]+)"
    r"(?:/(?:runtime-)?endpoint/(?P<endpoint>\w+))?"
)
SESSION_HEADER = "x-amzn-bedrock-agentcore-runtime-session-id"


class RuntimeSignature(httpx.Auth):
    """Signature Version 4 for the requests to a runtime. Raises ``botocore``'s error if it finds no credentials."""

    requires_request_body = True

    def __init__(self, session: "Session", region: str) -> None:
        self._session = session
        self._region = region

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        """Credentials may take time, so they are read in a thread."""
        await asyncio.to_thread(self._sign, request)
        yield request

    def _sign(self, request: httpx.Request) -> None:
        from botocore.auth import SigV4Auth  # type: ignore[import-untyped]  # noqa: PLC0415 - optional
        from botocore.awsrequest import AWSRequest  # type: ignore[import-untyped]  # noqa: PLC0415

        signed = {name: request.headers[name] for name in (SESSION_HEADER, "content-type")}
        copy = AWSRequest(method=request.method, url=str(request.url), data=request.content, headers=signed)
        SigV4Auth(self._session.get_credentials(), SERVICE, self._region).add_auth(copy)
        request.headers.update({name: str(value) for name, value in copy.headers.items()})


def agentcore_server(arn: str) -> tuple[str, str, httpx.Auth]:
    """Return the kind of the resource, runtime or harness, the URL that invokes it, and the signature.

    Raise ``ValueError`` if this is an ARN of something else, ``ImportError`` without botocore.
    """
    found = RESOURCE.fullmatch(arn)
    if found is None:
        raise ValueError(f"'{arn}' is no ARN of an AgentCore runtime or harness, or of one of their endpoints")
    from botocore.session import get_session  # noqa: PLC0415 - optional

    session = get_session()
    endpoint = session.create_client(SERVICE, region_name=found["region"]).meta.endpoint_url
    name, qualifier = quote(found["arn"], safe=""), found["endpoint"] or "DEFAULT"
    paths = {
        "runtime": f"runtimes/{name}/invocations?qualifier={qualifier}",
        "harness": f"harnesses/invoke?harnessArn={name}&qualifier={qualifier}",
    }
    return found["kind"], f"{endpoint}/{paths[found['kind']]}", RuntimeSignature(session, found["region"])
