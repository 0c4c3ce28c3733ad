"""Addresses and signatures of Amazon Bedrock AgentCore Runtime.

Rules:

- ``AWS_ENDPOINT_URL_BEDROCK_AGENTCORE`` is the address of AgentCore's data plane, as for every SDK of AWS.
- botocore is imported when something is signed, and not before. It is no dependency of this package: whoever has
  AWS credentials on a machine installs it, by itself or with boto3.

Source: InvokeAgentRuntime and InvokeAgentRuntimeWithWebSocketStream in AWS's documentation.
"""

import os
import re
import threading
from collections.abc import AsyncGenerator, Generator, Mapping
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, quote, urlencode, urlsplit, urlunsplit
from uuid import uuid4

import httpx

from agui_client.errors import CredentialsError
from agui_client.own_thread import in_thread

if TYPE_CHECKING:
    from botocore.session import Session as AwsSession  # type: ignore[import-untyped]

SESSION_HEADER = "X-Amzn-Bedrock-AgentCore-Runtime-Session-Id"
SESSION_LENGTH = range(33, 257)
"""Characters of a session id that AgentCore takes."""

SERVICE = "bedrock-agentcore"
ARN = re.compile(
    r"arn:(?P<partition>aws[\w-]*):bedrock-agentcore:(?P<region>[\w-]+):(?P<account>\d+):runtime/(?P<id>[^/\s]+)"
    r"(?:/(?:runtime-)?endpoint/(?P<endpoint>[^/\s]+))?"
)
HOST = re.compile(r"bedrock-agentcore\.(?P<region>[\w-]+)\.amazonaws\.com(?:\.cn)?")
PATH = re.compile(r"/runtimes/arn%3Aaws[\w-]*%3Abedrock-agentcore%3A(?P<region>[\w-]+)%3A.*")
"""Path of a runtime, also behind the address of a VPC endpoint or of a local AgentCore."""

ENDPOINT_VARIABLE = "AWS_ENDPOINT_URL_BEDROCK_AGENTCORE"
PRESIGNED_SECONDS = 300


def agentcore_url(arn: str, *, qualifier: str | None = None, websocket: bool = False) -> str:
    """Return the URL of a deployed agent.

    Args:
        arn: of the runtime, or of one of its endpoints.
        qualifier: the endpoint, where the ARN names none. Default ``DEFAULT``.
        websocket: True for WSS instead of HTTPS.

    Raises:
        ValueError: this is no ARN of a runtime.
    """
    found = ARN.fullmatch(arn)
    if found is None:
        raise ValueError(f"{arn!r} is no ARN of an AgentCore runtime.")
    runtime = f"arn:{found['partition']}:{SERVICE}:{found['region']}:{found['account']}:runtime/{found['id']}"
    domain = "amazonaws.com.cn" if found["partition"] == "aws-cn" else "amazonaws.com"
    endpoint = os.environ.get(ENDPOINT_VARIABLE) or f"https://{SERVICE}.{found['region']}.{domain}"
    if websocket:
        endpoint = endpoint.replace("http", "ws", 1)
    query = urlencode({"qualifier": qualifier or found["endpoint"] or "DEFAULT"})
    path = f"/runtimes/{quote(runtime, safe='')}/{'ws' if websocket else 'invocations'}"
    return f"{endpoint.rstrip('/')}{path}?{query}"


def agentcore_region(url: str) -> str | None:
    """Return the region of a URL of AgentCore, or None for any other URL."""
    parts = urlsplit(url)
    found = HOST.fullmatch(parts.hostname or "") or PATH.fullmatch(parts.path)
    return found["region"] if found else None


def is_presigned(url: str) -> bool:
    """Return True if the URL carries a signature, so that nothing of it may be changed."""
    return "X-Amz-Signature" in parse_qs(urlsplit(url).query)


def check_session_id(session_id: str) -> str:
    """Return the id. Raises ``ValueError`` for one that AgentCore refuses, so that the mistake shows before a call."""
    if len(session_id) not in SESSION_LENGTH:
        raise ValueError(
            f"session_id has {len(session_id)} characters. AgentCore takes {SESSION_LENGTH.start} to "
            f"{SESSION_LENGTH.stop - 1}: use new_session_id(), for example."
        )
    return session_id


def new_session_id() -> str:
    """Return an id for a session of AgentCore."""
    return str(uuid4())


class SigV4(httpx.Auth):
    """Signature Version 4 for requests to AgentCore, by botocore's signer and with the credentials that it finds.

    Args:
        region: of the runtime.
        session: botocore's session, for example with a profile. Default: one from the environment.

    Raises:
        CredentialsError: botocore is not installed.
    """

    requires_request_body = True

    def __init__(self, region: str, session: "AwsSession | None" = None) -> None:
        try:
            import botocore  # type: ignore[import-untyped]  # noqa: F401, PLC0415 - see the module's rule
        except ModuleNotFoundError:
            message = "A request to AgentCore is signed by botocore: pip install boto3, or give a token."
            raise CredentialsError(message) from None
        self._region = region
        self._session = session
        self._lock = threading.Lock()  # a session of botocore serves one thread at a time

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Sign a request of httpx."""
        self._sign(request)
        yield request

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        """Sign a request of httpx's asynchronous client, in a thread because credentials may take time."""
        await request.aread()
        await in_thread(partial(self._sign, request))
        yield request

    def _sign(self, request: httpx.Request) -> None:
        signed = {name: request.headers[name] for name in (SESSION_HEADER, "Content-Type") if name in request.headers}
        request.headers.update(self.headers(request.method, str(request.url), signed, request.content))

    def headers(self, method: str, url: str, signed: Mapping[str, str], body: bytes = b"") -> dict[str, str]:
        """Return the headers that sign a request, for example the handshake of a socket."""
        from botocore.auth import SigV4Auth  # type: ignore[import-untyped]  # noqa: PLC0415 - see the module's rule
        from botocore.awsrequest import AWSRequest  # type: ignore[import-untyped]  # noqa: PLC0415

        request = AWSRequest(method=method, url=_https(url), data=body, headers=dict(signed))
        SigV4Auth(self._credentials(), SERVICE, self._region).add_auth(request)
        return {name: str(value) for name, value in request.headers.items()}

    def presign(self, url: str, expires: int = PRESIGNED_SECONDS) -> str:
        """Return the URL with a signature in its query."""
        from botocore.auth import SigV4QueryAuth  # noqa: PLC0415 - see the module's rule
        from botocore.awsrequest import AWSRequest  # noqa: PLC0415

        request = AWSRequest(method="GET", url=_https(url))
        SigV4QueryAuth(self._credentials(), SERVICE, self._region, expires=expires).add_auth(request)
        return urlunsplit(urlsplit(str(request.url))._replace(scheme=urlsplit(url).scheme))

    def _credentials(self) -> object:
        """Ask for credentials each time, because they expire. Raises ``CredentialsError``."""
        from botocore.exceptions import BotoCoreError  # type: ignore[import-untyped]  # noqa: PLC0415 - see the module's rule
        from botocore.session import Session  # noqa: PLC0415

        try:
            with self._lock:
                self._session = self._session or Session()
                credentials = self._session.get_credentials()
                frozen: object = credentials and credentials.get_frozen_credentials()
        except BotoCoreError as error:
            raise CredentialsError(str(error)) from error
        if frozen is None:
            message = "There are no AWS credentials: set a profile or AWS_ACCESS_KEY_ID, or give a token."
            raise CredentialsError(message)
        return frozen


def presigned_url(
    arn: str,
    session_id: str,
    *,
    qualifier: str | None = None,
    expires: int = PRESIGNED_SECONDS,
    sigv4: SigV4 | None = None,
) -> str:
    """Return a URL of WSS that needs no other credentials, good for ``expires`` seconds (at most 300).

    Give a function that makes one to a session, because each connection needs a fresh one.
    """
    url = agentcore_url(arn, qualifier=qualifier, websocket=True)
    query = urlencode({"cursor": "1", SESSION_HEADER: check_session_id(session_id)})
    signer = sigv4 or SigV4(agentcore_region(url) or "")
    return signer.presign(f"{url}&{query}", expires)


def _https(url: str) -> str:
    """AWS signs the URL of a socket as that of its handshake."""
    return re.sub(r"^ws", "http", url)
