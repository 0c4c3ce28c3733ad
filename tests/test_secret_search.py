"""The search for planted secrets finds them, in each form and at each place."""

import base64
import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests import secret_search
from tests.requirements import requirement
from tests.secret_search import planted, remember_token, search, take_found
from tests.servers import search_schema

TESTS = Path(__file__).parent
ROOT = TESTS.parent
TOKEN = "e30.e30.a-signature-of-this-test-alone"  # noqa: S105 - nobody takes it

PLANT = """
import logging, pathlib
from tests.secret_search import planted

def test_logs():
    logging.getLogger("agui_container.x").warning("called with %s", planted("token"))

def test_stores(tmp_path):
    (tmp_path / "runs.db").write_bytes(b"\\0" + planted("token").encode())

def test_is_discreet(tmp_path):
    (tmp_path / "runs.db").write_bytes(b"nothing")
"""


@pytest.mark.parametrize("before", ["", "a", "ab", "abc"])
def test_a_secret_is_found_in_each_encoding(before: str) -> None:
    secret = f"{before}{planted('x')}"
    for text in (secret, secret.encode().hex(), base64.urlsafe_b64encode(secret.encode()).decode(), json.dumps(secret)):
        search(text, "a test")
        assert len(take_found()) == 1, text


def test_a_secret_is_found_in_bytes_that_are_no_text() -> None:
    search(b"\xff\x00" + planted("x").encode(), "a test")
    assert take_found() == [f"'{secret_search.MARK}' in a test"]


def test_the_signature_of_a_token_is_found_once_it_was_remembered() -> None:
    search(TOKEN, "a test")
    assert take_found() == []
    search(remember_token(TOKEN).rpartition(".")[2], "a test")
    assert take_found() == ["'a-signature-of-this-test-alone' in a test"]


def test_a_traceback_with_a_secret_is_found() -> None:
    error = ValueError(planted("x"))
    logging.getLogger("agui_container.x").error("failed", exc_info=error)
    assert len(take_found()) == 1


def test_a_search_without_a_secret_finds_nothing() -> None:
    search("a secret that nobody has planted", "a test")
    assert take_found() == []


@requirement("secret.hidden")
def test_a_row_of_a_database_with_a_secret_is_found(postgres_server: str) -> None:
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(b"CREATE SCHEMA searched CREATE TABLE rows (said text, kept bytea)")
        connection.execute("INSERT INTO searched.rows VALUES (%s, %s)", [planted("x"), planted("y").encode()])
        search_schema(connection, "searched")
    assert len(take_found()) == 2


def test_one_launcher_starts_the_servers_of_tests_and_searches_their_logs() -> None:
    texts = {path: path.read_text() for path in TESTS.rglob("*.py") if path != Path(__file__)}
    starters = [path for path, text in texts.items() if "Popen(" in text and '"agui_container"' in text]
    assert [path.relative_to(TESTS).as_posix() for path in starters] == ["sockets/process.py"]
    assert "search(line" in texts[starters[0]]


@requirement("secret.hidden")
def test_a_test_that_gives_a_secret_away_fails(tmp_path: Path) -> None:
    (tmp_path / "test_plant.py").write_text(PLANT)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.secret_search", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "--rootdir", str(tmp_path), "--basetemp", str(tmp_path.parent / "planted"), "test_plant.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'app'}"},
        capture_output=True,
        text=True,
        check=False,
    )
    failed = [line.partition(" ")[0] for line in done.stdout.splitlines() if line.startswith("ERROR test_plant.py")]
    assert done.returncode == 1, done.stdout
    assert len(failed) == 2
    assert "3 passed, 2 errors" in done.stdout
    assert "test_logs" in done.stdout
    assert "test_stores" in done.stdout
