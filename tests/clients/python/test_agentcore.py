"""AgentCore: addresses, session ids, and signatures that are computed here once more, by AWS's description of them."""

import hashlib
import hmac
import subprocess
import sys
from collections.abc import Mapping
from urllib.parse import parse_qs, quote, urlsplit

import httpx
import pytest
from botocore.session import Session as AwsSession  # type: ignore[import-untyped]

from agui_client import CredentialsError, Session, SigV4, agentcore_url, new_session_id, presigned_url
from agui_client.agentcore import SESSION_HEADER
from agui_client.caller import Caller
from tests.clients.python.conftest import TRANSPORTS
from tests.clients.python.relay import relay_to
from tests.server.sockets.process import ROOT, ServerProcess

pytestmark = [pytest.mark.wire, pytest.mark.processes]

ARN = "arn:aws:bedrock-agentcore:eu-west-1:123456789012:runtime/my_agent-AbC123"
PATH = "/runtimes/arn%3Aaws%3Abedrock-agentcore%3Aeu-west-1%3A123456789012%3Aruntime%2Fmy_agent-AbC123"
HOST = "bedrock-agentcore.eu-west-1.amazonaws.com"
SECRET = "not-a-secret"  # noqa: S105 - of nobody


@pytest.fixture
def signer() -> SigV4:
    session = AwsSession()
    session.set_credentials("AKIDEXAMPLE", SECRET, "a-token")
    return SigV4("eu-west-1", session)


@pytest.mark.parametrize(
    ("arn", "options", "url"),
    [
        (ARN, {}, f"https://{HOST}{PATH}/invocations?qualifier=DEFAULT"),
        (ARN, {"websocket": True}, f"wss://{HOST}{PATH}/ws?qualifier=DEFAULT"),
        (ARN, {"qualifier": "prod"}, f"https://{HOST}{PATH}/invocations?qualifier=prod"),
        (f"{ARN}/runtime-endpoint/prod", {}, f"https://{HOST}{PATH}/invocations?qualifier=prod"),
    ],
)
def test_an_arn_becomes_the_url_of_its_runtime(arn: str, options: Mapping[str, object], url: str) -> None:
    assert agentcore_url(arn, **options) == url  # type: ignore[arg-type]


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:8100", "http://127.0.0.1:8100/"])
async def test_the_address_of_another_endpoint_is_that_of_all_sdks(
    monkeypatch: pytest.MonkeyPatch, endpoint: str
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_AGENTCORE", endpoint)
    assert agentcore_url(ARN) == f"http://127.0.0.1:8100{PATH}/invocations?qualifier=DEFAULT"
    assert agentcore_url(ARN, websocket=True) == f"ws://127.0.0.1:8100{PATH}/ws?qualifier=DEFAULT"
    address = await Caller(ARN).address()
    assert address.sigv4 is not None
    assert 33 <= len(address.headers[SESSION_HEADER]) <= 256


@pytest.mark.parametrize("url", ["arn:aws:s3:::bucket", "localhost:8080", "ftp://host", "http://", ""])
def test_an_address_that_cannot_be_right_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="ARN"):
        Session(url)


def test_an_address_without_a_path_gets_the_usual_one() -> None:
    assert Caller("http://host:1").url == "http://host:1/invocations"
    assert Caller("wss://host/").url == "wss://host/ws"
    assert Caller("https://host/agent").url == "https://host/agent"


@pytest.mark.parametrize("url", ["http://localhost:8080", "ws://localhost:8080", ARN])
def test_a_session_id_that_agentcore_refuses_is_refused_before_the_call(url: str) -> None:
    for length in (0, 32, 257):
        with pytest.raises(ValueError, match=rf"^session_id has {length} characters\. AgentCore takes 33 to 256"):
            Session(url, session_id="x" * length)


async def test_a_session_id_is_made_for_agentcore_only() -> None:
    assert Caller("http://localhost:8080").session_id is None
    made = Caller(ARN, token="t")  # noqa: S106 - of nobody
    address = await made.address()
    assert 33 <= len(address.headers[SESSION_HEADER]) <= 256
    assert address.headers["Authorization"] == "Bearer t"
    assert (await made.address()).headers[SESSION_HEADER] == address.headers[SESSION_HEADER]


async def test_requests_to_agentcore_are_signed_without_a_token(signer: SigV4) -> None:
    assert (await Caller(ARN).address()).sigv4 is not None
    assert (await Caller(ARN, sigv4=signer).address()).sigv4 is signer
    assert (await Caller("http://localhost:8080").address()).sigv4 is None


def test_botocore_is_imported_only_to_sign() -> None:
    script = (
        "import sys, agui_client\n"
        f"agui_client.SyncSession('{ARN}')\n"
        "assert not {'botocore', 'boto3', 'agui_container'} & {*sys.modules}"
    )
    environment = {"PYTHONPATH": f"{ROOT}/clients/python/src"}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True, timeout=120)


async def test_a_signature_without_botocore_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "botocore", None)
    with pytest.raises(CredentialsError, match="pip install boto3, or give a token"):
        await Caller(ARN).address()


def signature(day: str, canonical: str, scope: str, stamp: str) -> str:
    key = f"AWS4{SECRET}".encode()
    for part in (day, "eu-west-1", "bedrock-agentcore", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    text = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    return hmac.new(key, text.encode(), "sha256").hexdigest()


def test_a_request_is_signed_as_aws_describes_it(signer: SigV4) -> None:
    session_id, body = new_session_id(), b'{"threadId":"t"}'
    headers = {SESSION_HEADER: session_id, "Content-Type": "application/json"}
    request = httpx.Request("POST", agentcore_url(ARN), headers=headers, content=body)
    request = next(signer.auth_flow(request))
    stamp = request.headers["X-Amz-Date"]
    canonical = "\n".join(
        [
            *("POST", quote(f"{PATH}/invocations"), "qualifier=DEFAULT", "content-type:application/json"),
            *(f"host:{HOST}", f"x-amz-date:{stamp}", "x-amz-security-token:a-token"),
            *(f"x-amzn-bedrock-agentcore-runtime-session-id:{session_id}", ""),
            "content-type;host;x-amz-date;x-amz-security-token;x-amzn-bedrock-agentcore-runtime-session-id",
            hashlib.sha256(body).hexdigest(),
        ]
    )
    scope = f"{stamp[:8]}/eu-west-1/bedrock-agentcore/aws4_request"
    made = signature(stamp[:8], canonical, scope, stamp)
    assert request.headers["Authorization"].endswith(f"Signature={made}")
    assert request.headers["Host"] == HOST


def test_a_presigned_url_carries_all_that_the_handshake_needs(signer: SigV4) -> None:
    session_id = new_session_id()
    parts = urlsplit(presigned_url(ARN, session_id, sigv4=signer))
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    assert (parts.scheme, parts.netloc, parts.path) == ("wss", HOST, f"{PATH}/ws")
    assert (query["qualifier"], query["cursor"], query[SESSION_HEADER]) == ("DEFAULT", "1", session_id)
    assert query["X-Amz-Expires"] == "300"
    made = query.pop("X-Amz-Signature")
    stamp = query["X-Amz-Date"]
    ordered = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in sorted(query.items()))
    empty = hashlib.sha256(b"").hexdigest()
    canonical = "\n".join(["GET", quote(f"{PATH}/ws"), ordered, f"host:{HOST}", "", "host", empty])
    assert made == signature(stamp[:8], canonical, query["X-Amz-Credential"].partition("/")[2], stamp)


def test_a_missing_credential_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    session = AwsSession()
    monkeypatch.setattr(session, "get_credentials", lambda: None)
    with pytest.raises(CredentialsError, match="no AWS credentials"):
        presigned_url(ARN, new_session_id(), sigv4=SigV4("eu-west-1", session))


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_both_transports_send_the_signature(server: ServerProcess, signer: SigV4, transport: str) -> None:
    async with relay_to(server.port) as relay:
        url = relay.http if transport == "sse" else relay.ws
        async with Session.start("hello", url=url, sigv4=signer, session_id=new_session_id()) as session:
            await session.run()
    assert "authorization: AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/" in relay.heads[0].replace("Auth", "auth")


async def test_a_presigned_url_is_asked_for_before_each_connection_and_stays_as_it_is(server: ServerProcess) -> None:
    made: list[str] = []
    async with relay_to(server.port) as relay:

        def presign() -> str:
            made.append(f"{relay.ws}?cursor=1&X-Amz-Signature={len(made)}")
            return made[-1]

        async with Session.start("think about rain", url=presign) as session:
            relay.cuts = [2]
            await session.run()
    assert len(made) > 1
    assert [head.split()[1] for head in relay.heads] == [
        url.removeprefix(f"ws://127.0.0.1:{relay.port}") for url in made
    ]
