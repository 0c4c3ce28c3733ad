"""Clients other than grpcio, as they are published: ``@grpc/grpc-js`` on Node.js, and ``buf curl`` with Go's stack."""

import json
import os
import subprocess
from collections.abc import Iterator

import pytest

from tests.engine.doubles import Json
from tests.grpc.clients_on_node import BUF, FOLDER
from tests.machine import find_program
from tests.requirements import requirement
from tests.sockets.process import ServerProcess

SECONDS = 300.0
INVALID_ARGUMENT, CANCELLED, DEADLINE_EXCEEDED = 3, 1, 4


@pytest.fixture(autouse=True)
def clients() -> None:
    """The clients run on Node.js."""
    find_program("node")


def run_command(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=FOLDER, capture_output=True, encoding="utf-8", timeout=SECONDS, check=False, env=os.environ
    )


# --- @grpc/grpc-js ----------------------------------------------------------------------------------------------------


def play_scenario(server: ServerProcess, scenario: str) -> Json:
    """Run a scenario of ``client.mjs`` and return its result."""
    done = run_command("node", "client.mjs", str(server.port), scenario)
    assert done.returncode == 0, done.stderr
    found: Json = json.loads(done.stdout)
    return found


@requirement("grpc.clients", "roz.session")
def test_a_session_of_roz_on_node(server: ServerProcess) -> None:
    assert play_scenario(server, "roz") == {
        "model": "offline",
        "tool": "move",
        "text": "The result of move is moved to 3.",
        "events": True,
        "turn": ["m1", "end_turn"],
        "status": 0,
    }


@requirement("grpc.clients", "kontekst.runs")
def test_a_run_of_kontekst_on_node(server: ServerProcess) -> None:
    assert play_scenario(server, "kontekst") == {
        "kinds": [
            *("started", "turn_completed", "context_snapshot", "tools_proposed", "tool_started", "tool_completed"),
            *("tools_completed", "token", "turn_completed", "context_snapshot", "completed"),
        ],
        "name": "calculate",
        "text": "The result of calculate is 42.",
        "status": 0,
    }


@requirement("grpc.clients", "grpc.errors", "grpc.deadline")
def test_calls_that_end_otherwise_on_node(server: ServerProcess) -> None:
    assert play_scenario(server, "calls") == {
        "bind": f"127.0.0.1:{server.port}",
        "codes": [CANCELLED, DEADLINE_EXCEEDED, INVALID_ARGUMENT],
        "agui": "VALIDATION_ERROR",
        "details": "The first command must be start.",
    }


@requirement("grpc.clients", "grpc.messages", "grpc.slow")
def test_a_client_on_node_that_reads_slowly_compresses_and_pings(server: ServerProcess) -> None:
    assert play_scenario(server, "slow") == {"length": 20_000 * len("hello world, "), "status": 0}


# --- buf curl ---------------------------------------------------------------------------------------------------------


def run_curl(server: ServerProcess, path: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    url = f"http://127.0.0.1:{server.port}{path}"
    return run_command(str(BUF), "curl", "--http2-prior-knowledge", "--protocol", "grpc", *arguments, url)


def answers(done: subprocess.CompletedProcess[str]) -> Iterator[Json]:
    """The messages that buf prints."""
    assert done.returncode == 0, done.stderr
    decoder, rest = json.JSONDecoder(), done.stdout.lstrip()
    while rest:
        found, at = decoder.raw_decode(rest)
        yield found
        rest = rest[at:].lstrip()


@requirement("grpc.clients", "grpc.standard")
@pytest.mark.parametrize("version", ["grpc-v1", "grpc-v1alpha"])
def test_buf_finds_the_services_by_reflection(server: ServerProcess, version: str) -> None:
    reflected = ["--reflect-protocol", version]
    assert run_curl(server, "", *reflected, "--list-services").stdout.split() == [
        *("kontekst.AgentService", "kontekst.DaemonService", "roz.v1.AgentService"),
    ]
    methods = run_curl(server, "", *reflected, "--list-methods").stdout.split()
    assert {"kontekst.AgentService/Run", "roz.v1.AgentService/WatchTeam"} <= set(methods)
    (status,) = answers(run_curl(server, "/kontekst.DaemonService/GetStatus", *reflected, "-d", "{}"))
    assert status["bind"] == f"127.0.0.1:{server.port}"


@requirement("grpc.clients", "kontekst.runs")
def test_buf_streams_a_run(server: ServerProcess) -> None:
    found = list(answers(run_curl(server, "/kontekst.AgentService/Run", "-d", '{"start": {"prompt": "stream 3"}}')))
    assert "".join(event["token"]["text"] for event in found if "token" in event) == "hello world, " * 3
    assert "completed" in found[-1]


@requirement("grpc.clients", "roz.session")
def test_buf_has_a_session(server: ServerProcess) -> None:
    requests = '{"start": {}} {"user_message": {"content": "stream 3", "message_id": "m1"}}'
    found = list(answers(run_curl(server, "/roz.v1.AgentService/StreamSession", "-d", requests)))
    assert "".join(it["textDelta"]["content"] for it in found if "textDelta" in it) == "hello world, " * 3
    assert [it["turnComplete"]["stopReason"] for it in found if "turnComplete" in it] == ["end_turn"]


@requirement("grpc.clients", "grpc.errors")
def test_buf_shows_an_error_with_its_status(server: ServerProcess) -> None:
    done = run_curl(server, "/kontekst.AgentService/Run", "-d", '{"cancel": {}}')
    assert done.returncode != 0
    assert json.loads(done.stderr)["code"] == "invalid_argument"
    assert json.loads(done.stderr)["message"] == "The first command must be start."
