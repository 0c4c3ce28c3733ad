"""The search for planted secrets finds them, in each form and at each place."""

import base64
import json
import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests import secret_search
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
    search(b"\xff\x00" + secret.encode(), "bytes that are no text")
    assert take_found() == [f"'{secret_search.MARK}' in bytes that are no text"]


def test_the_signature_of_a_token_is_found_once_it_was_remembered() -> None:
    search(TOKEN, "a test")
    assert take_found() == []
    search(remember_token(TOKEN).rpartition(".")[2], "a test")
    assert take_found() == ["'a-signature-of-this-test-alone' in a test"]


def test_a_row_of_a_database_with_a_secret_is_found(postgres_server: str) -> None:
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(b"CREATE SCHEMA searched CREATE TABLE rows (said text, kept bytea)")
        connection.execute("INSERT INTO searched.rows VALUES (%s, %s)", [planted("x"), planted("y").encode()])
        search_schema(connection, "searched")
    assert len(take_found()) == 2


def test_a_test_that_gives_a_secret_away_fails(tmp_path: Path) -> None:
    (tmp_path / "test_plant.py").write_text(PLANT)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.secret_search", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "--rootdir", str(tmp_path), "--basetemp", str(tmp_path.parent / "planted"), "test_plant.py"],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": f"{ROOT}:{ROOT / 'app'}:{ROOT / 'clients/python/src'}",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
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
