"""Secrets that tests send, and the search for them in all that the suite produces; a plugin of pytest.

Rule: a secret of a test is made by ``planted`` or remembered by ``remember_token``. What the suite produces is given
to ``search``: log records of this process, logs of servers, spans, errors, and files in a test's folder, such as
databases. A secret that is found fails the test that is running.
"""

import base64
import logging
from collections.abc import Generator
from pathlib import Path

import pytest

from agui_container.logging import JsonFormatter

MARK = "planted-secret"


def encodings(text: str) -> list[str]:
    """Return what base64 makes of a text inside a longer one, for each place at which it may begin."""
    shifted = [base64.urlsafe_b64encode(b"-" * shift + text.encode()).decode().rstrip("=") for shift in range(3)]
    return [encoded[(shift * 4 + 2) // 3 : -1] for shift, encoded in enumerate(shifted)]


_marks = (MARK, MARK.encode().hex(), *encodings(MARK))
_signatures: set[str] = set()
_found: list[str] = []


def planted(name: str) -> str:
    return f"{MARK}-{name}"


def remember_token(token: str) -> str:
    if signature := token.rpartition(".")[2]:
        _signatures.update((signature, signature.encode().hex()))
    return token


def search(produced: str | bytes, place: str) -> None:
    text = produced.decode("latin-1") if isinstance(produced, bytes) else produced
    _found.extend(f"{secret!r} in {place}" for secret in (*_marks, *_signatures) if secret in text)


def take_found() -> list[str]:
    found = _found[:]
    _found.clear()
    return found


class SearchHandler(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(JsonFormatter())

    def emit(self, record: logging.LogRecord) -> None:
        search(self.format(record), f"a log record of {record.name}")


def search_folder(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            search(path.read_bytes(), str(path))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    handler, root = SearchHandler(), logging.getLogger()
    root.addHandler(handler)
    try:
        return (yield)
    finally:
        root.removeHandler(handler)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    folder = getattr(item, "funcargs", {}).get("tmp_path")
    yield
    if folder is not None:
        search_folder(folder)
    _signatures.clear()
    if found := take_found():
        pytest.fail("secrets were given away: " + "; ".join(found), pytrace=False)
