"""The configurations of docs/proxies.md, as pasted, in front of a server: only names, ports and timeouts differ."""

import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.docs.documents import GUIDES
from tests.engine.doubles import WAIT
from tests.machine import find_program
from tests.ports import free_port
from tests.protocols.grpc.client import client_of
from tests.server.sockets.process import ServerProcess, program_on
from tests.sse import events_of
from tests.websocket import receive_frame, send, socket_to

pytestmark = [pytest.mark.packages, pytest.mark.processes]

PAGE = GUIDES["proxies"]
SILENCE = 5
"""Seconds after which the proxies of these tests cut a silent response."""

KEEPALIVE = 0.25
COMMENTS = int(SILENCE / KEEPALIVE) + 1


@dataclass(frozen=True, slots=True)
class Certificate:
    path: Path
    key: Path
    both: Path

    @classmethod
    def make(cls, folder: Path) -> "Certificate":
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
        now = datetime.now(UTC)
        built = (
            x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
            .sign(key, hashes.SHA256())
        )
        pem = built.public_bytes(serialization.Encoding.PEM)
        secret = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        made = cls(folder / "agent.crt", folder / "agent.key", folder / "agent.pem")
        made.path.write_bytes(pem)
        made.key.write_bytes(secret)
        made.both.write_bytes(pem + secret)
        return made


@dataclass(frozen=True, slots=True)
class Setup:
    """Where a proxy runs in a test, and where its server is."""

    folder: Path
    certificate: Certificate
    port: int
    server_port: int

    def written(self, name: str, *changes: tuple[str, str], before: str = "", after: str = "") -> Path:
        """Write the configuration of the page under its name. Each change must have a place."""
        (text,) = (block.text for block in PAGE.blocks if block.file_name == name)
        for pasted, here in (("127.0.0.1:8080", f"127.0.0.1:{self.server_port}"), *changes):
            assert pasted in text
            text = text.replace(pasted, here)
        path = self.folder / name
        path.write_text(before + text + after)
        return path


def nginx(setup: Setup, *changes: tuple[str, str]) -> list[str | Path]:
    path = setup.written(
        "agent.conf",
        ("listen 443", f"listen 127.0.0.1:{setup.port}"),
        ("/etc/nginx/agent.pem", str(setup.certificate.path)),
        ("/etc/nginx/agent.key", str(setup.certificate.key)),
        *changes,
        before=f"pid {setup.folder}/pid; daemon off; master_process off; error_log stderr; events {{}}\n"
        f"http {{ access_log off; proxy_read_timeout {SILENCE}s; "
        + " ".join(f"{each}_temp_path {setup.folder}/{each};" for each in ("client_body", "proxy", "fastcgi", "uwsgi"))
        + f" scgi_temp_path {setup.folder}/scgi;\n",
        after="}\n",
    )
    return [find_program("nginx"), "-p", setup.folder, "-c", path]


def haproxy(setup: Setup, *changes: tuple[str, str]) -> list[str | Path]:
    path = setup.written(
        "haproxy.cfg",
        ("bind :443", f"bind 127.0.0.1:{setup.port}"),
        ("/etc/haproxy/agent.pem", str(setup.certificate.both)),
        ("1h", f"{SILENCE}s"),
        *changes,
    )
    return [find_program("haproxy"), "-db", "-f", path]


def caddy(setup: Setup, *changes: tuple[str, str]) -> list[str | Path]:
    site = f"https://localhost:{setup.port} {{\n    tls {setup.certificate.path} {setup.certificate.key}"
    path = setup.written(
        "Caddyfile", ("agent.example {", site), *changes, before="{\n    admin off\n    auto_https off\n}\n"
    )
    return [find_program("caddy"), "run", "--config", path, "--adapter", "caddyfile"]


PROXIES = {"nginx": nginx, "haproxy": haproxy, "caddy": caddy}
LOWERED = {
    "nginx": [("rate=50r/s", "rate=1r/m"), ("burst=100", "burst=2")],
    "haproxy": [("gt 500", "gt 3"), ("10s)", "10m)")],
}
"""Limits that a test reaches at once."""


@dataclass(frozen=True, slots=True)
class Front:
    name: str
    port: int
    certificate: Certificate

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}"

    @property
    def tls(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.certificate.path)

    @contextmanager
    def client(self, *, http2: bool = False) -> Iterator[httpx.Client]:
        with httpx.Client(base_url=self.url, http2=http2, verify=self.tls, timeout=WAIT, trust_env=False) as client:
            yield client


@contextmanager
def in_front_of(server: ServerProcess, name: str, folder: Path, *changes: tuple[str, str]) -> Iterator[Front]:
    setup = Setup(folder, Certificate.make(folder), free_port(), server.port)
    command = PROXIES[name](setup, *changes)
    front, home = Front(name, setup.port, setup.certificate), str(folder)
    with program_on(f"{front.url}/ping", *command, HOME=home, XDG_DATA_HOME=home, XDG_CONFIG_HOME=home):
        yield front


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with ServerProcess(AGUI_KEEPALIVE=str(KEEPALIVE), AGUI_ALLOWED_HOSTS="localhost") as running:
        yield running
        assert not running.faults


@pytest.fixture(scope="module", params=PROXIES)
def front(
    request: pytest.FixtureRequest, server: ServerProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Front]:
    with in_front_of(server, request.param, tmp_path_factory.mktemp(request.param)) as running:
        yield running


def run_input(run: str, said: str) -> bytes:
    messages = [{"id": "m1", "role": "user", "content": said}]
    return json.dumps({"threadId": f"thread-{run}", "runId": run, "messages": messages}).encode()


def held_run(client: httpx.Client, run: str, *, comments: int) -> bytes:
    """Return the response of a run that another one lets end, once its first text and so many comments are there."""
    with client.stream("POST", "/invocations", content=run_input(run, "hold")) as response:
        pieces, received = response.iter_bytes(), b""
        while b"TEXT_MESSAGE_CONTENT" not in received or received.count(b"\n:") < comments:
            piece = next(pieces, None)
            assert piece is not None, (response.status_code, received)
            received += piece
        client.post("/invocations", content=run_input(f"release-{run}", f"release {run}"))
        return received + b"".join(pieces)


@pytest.mark.parametrize("http2", [False, True], ids=["http1", "http2"])
def test_events_arrive_one_by_one(front: Front, *, http2: bool) -> None:
    with front.client(http2=http2) as client:
        received = held_run(client, f"{front.name}-{http2}", comments=0)
    assert b"RUN_FINISHED" in received


@pytest.mark.parametrize("front", ["nginx", "haproxy"], indirect=True)
def test_a_silence_that_the_proxy_would_cut_is_bridged_by_comments(front: Front) -> None:
    with front.client() as client:
        received = held_run(client, f"silent-{front.name}", comments=COMMENTS)
    assert b"RUN_FINISHED" in received


async def test_a_websocket_passes(front: Front) -> None:
    async with socket_to(front.url, ssl=front.tls, origin=front.url) as socket:
        await send(socket, json.loads(run_input(f"socket-{front.name}", "hello")))
        while (await receive_frame(socket))["type"] != "RUN_FINISHED":
            pass


async def test_a_session_of_grpc_passes_in_both_directions(front: Front) -> None:
    tls = front.tls
    tls.set_alpn_protocols(["h2"])
    async with client_of(front.port, tls=tls) as client:
        session = await client.start_session()
        assert session.all("session_started"), "before the client says anything"
        await session.say("hello", message_id="m1")
        assert (await session.turn()).stop_reason == "end_turn"


def test_a_body_of_nine_megabytes_passes(front: Front) -> None:
    with front.client() as client:
        answer = client.post("/invocations", content=run_input(f"large-{front.name}", "x" * 9_000_000))
    assert events_of(answer.content)[-1]["type"] == "RUN_FINISHED"


def test_the_server_sees_the_name_that_the_browser_asked_for(front: Front) -> None:
    with front.client() as client:
        assert client.get("/threads", headers={"origin": front.url}).is_success
        assert client.get("/threads", headers={"origin": "https://evil.example"}).status_code == 403


@pytest.mark.parametrize("name", LOWERED)
def test_an_address_that_asks_too_often_is_refused(name: str, server: ServerProcess, tmp_path: Path) -> None:
    with in_front_of(server, name, tmp_path, *LOWERED[name]) as front, front.client() as client:
        statuses = [client.get("/ping").status_code for _ in range(5)]
    assert (statuses[0], statuses[-1]) == (200, 429)
