"""AgentCore: addresses, session ids, and signatures, which the local AgentCore verifies."""

import subprocess
import sys
from collections.abc import Mapping

import pytest
from botocore.session import Session as AwsSession  # type: ignore[import-untyped]

from agui_client import CredentialsError, Outcome, Session, SigV4, agentcore_url, new_session_id, presigned_url
from agui_client.agentcore import SESSION_HEADER
from agui_client.caller import Caller
from tests.aws.platform.doubles import ARN as LOCAL_ARN
from tests.cli.deployed import signed_runtime
from tests.cli.deployed import signer as signer_of
from tests.relay import relay_to
from tests.secret_search import planted
from tests.server.sockets.process import ROOT, ServerProcess

pytestmark = [pytest.mark.wire, pytest.mark.processes]

ARN = "arn:aws:bedrock-agentcore:eu-west-1:123456789012:runtime/my_agent-AbC123"
PATH = "/runtimes/arn%3Aaws%3Abedrock-agentcore%3Aeu-west-1%3A123456789012%3Aruntime%2Fmy_agent-AbC123"
HOST = "bedrock-agentcore.eu-west-1.amazonaws.com"


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


async def test_requests_to_agentcore_are_signed_without_a_token() -> None:
    signer = signer_of("a secret")
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


async def test_agentcore_admits_both_signatures_on_both_transports(monkeypatch: pytest.MonkeyPatch) -> None:
    signer, session_id = signer_of(planted("aws")), new_session_id()
    async with signed_runtime() as runtime:
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_AGENTCORE", runtime.partition("/runtimes/")[0])
        for url in (
            LOCAL_ARN,
            agentcore_url(LOCAL_ARN, websocket=True),
            lambda: presigned_url(LOCAL_ARN, session_id, sigv4=signer),
        ):
            async with Session.start("hello", url=url, sigv4=signer, session_id=session_id) as session:
                await session.run()
            assert session.outcome is Outcome.SUCCESS


def test_a_missing_credential_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    session = AwsSession()
    monkeypatch.setattr(session, "get_credentials", lambda: None)
    with pytest.raises(CredentialsError, match="no AWS credentials"):
        presigned_url(ARN, new_session_id(), sigv4=SigV4("eu-west-1", session))


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
