"""A client other than grpcio, as it is published: ``@grpc/grpc-js`` on Node.js."""

import json
import os
import subprocess

import pytest

from tests.engine.doubles import Json
from tests.machine import find_program
from tests.protocols.grpc.clients_on_node import FOLDER
from tests.server.sockets.process import ServerProcess

pytestmark = [pytest.mark.wire, pytest.mark.other_language]

SECONDS = 300.0
INVALID_ARGUMENT, CANCELLED, DEADLINE_EXCEEDED = 3, 1, 4


@pytest.fixture(autouse=True)
def node() -> None:
    find_program("node")


def run_command(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=FOLDER, capture_output=True, encoding="utf-8", timeout=SECONDS, check=False, env=os.environ
    )


def play_scenario(server: ServerProcess, scenario: str) -> Json:
    done = run_command("node", "client.mjs", str(server.port), scenario)
    assert done.returncode == 0, done.stderr
    found: Json = json.loads(done.stdout)
    return found


def test_a_session_of_roz_on_node(server: ServerProcess) -> None:
    assert play_scenario(server, "roz") == {
        "model": "offline",
        "tool": "move",
        "text": "The result of move is moved to 3.",
        "events": True,
        "turn": ["m1", "end_turn"],
        "status": 0,
    }


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


def test_calls_that_end_otherwise_on_node(server: ServerProcess) -> None:
    assert play_scenario(server, "calls") == {
        "bind": f"127.0.0.1:{server.port}",
        "codes": [CANCELLED, DEADLINE_EXCEEDED, INVALID_ARGUMENT],
        "agui": "VALIDATION_ERROR",
        "details": "The first command must be start.",
    }


def test_a_client_on_node_that_reads_slowly_compresses_and_pings(server: ServerProcess) -> None:
    assert play_scenario(server, "slow") == {"length": 20_000 * len("hello world, "), "status": 0}
