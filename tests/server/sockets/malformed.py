"""Malformed requests, each with the code of its refusal, for bodies and for WebSocket frames."""

import json
from pathlib import Path

from tests.engine.doubles import Json
from tests.server.sockets.client import run_input

MEGABYTE = 1_000_000


def with_field(**fields: object) -> bytes:
    return json.dumps({**run_input("hi"), **fields}).encode()


def with_state(text: bytes) -> bytes:
    return json.dumps(run_input("hi")).encode().removesuffix(b"}") + b', "state": ' + text + b"}"


NOT_UTF8: dict[str, bytes] = {
    "invalid UTF-8": with_state(b'"\xff\xfe"'),
    "UTF-16": with_field().decode().encode("utf-16"),
    "an encoded surrogate": with_state(b'"\xed\xa0\x80"'),
}

LARGE = b'{"messages": "' + b"x" * 11 * MEGABYTE + b'"}'

SECRETS = (
    "Traceback",
    'File "',
    ".py",
    f"{Path(__file__).parents[3]}/",
    "site-packages",
    "object at 0x",
    "Exception",
    "Error:",
    "errors.pydantic",
    "KeyError",
    "TypeError",
    "ValueError",
    "RecursionError",
    "ValidationError",
    "DecodeError",
    "RunAgentInput(",
)


def assert_discreet(text: str) -> None:
    assert [secret for secret in SECRETS if secret in text] == []


def assert_error(event: Json, code: str) -> None:
    assert event["code"] == code
    assert event["message"].endswith((".", "more")) or ": " in event["message"]
    assert len(event["message"]) < 1000
    assert_discreet(json.dumps(event))
