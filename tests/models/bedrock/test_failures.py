"""Every failure has a row in the table, and no message contains internals."""

import asyncio
import inspect

import botocore.exceptions  # type: ignore[import-untyped]
import pytest
import urllib3.exceptions

from agui_container.models.bedrock.failures import FAILURES, MAX_PAUSE, StreamFault, backoff, failure_of
from agui_container.models.bedrock.stream_parser import FAILED_STOPS, STOPS
from agui_container.protocol.errors import ERRORS as CODES
from tests.models.bedrock.rules import service_model


def test_every_exception_of_the_service_has_a_row() -> None:
    service = service_model()
    output = service.shape_for("ConverseStreamOutput").members
    exceptions = {name[0].upper() + name[1:] for name in output if name.endswith("Exception")}
    assert len(exceptions) == 5
    assert exceptions <= FAILURES.keys()


def test_every_stop_reason_is_known() -> None:
    reasons = {*service_model().shape_for("StopReason").enum}
    assert STOPS.keys() | FAILED_STOPS == reasons
    assert FAILURES.keys() >= FAILED_STOPS


def test_class_names_in_the_table_exist() -> None:
    known = {name for module in (botocore.exceptions, urllib3.exceptions) for name, _ in inspect.getmembers(module)}
    named = {name for name in FAILURES if name[0].isupper() and not name.endswith("Exception")}
    assert named - known == {"ModuleNotFoundError", "OSError", "ParserError", "ResponseParserError"}


def test_only_what_is_retryable_is_tried_again() -> None:
    for name, failure in FAILURES.items():
        assert failure.code.value.startswith("MODEL_")
        assert not failure.is_retryable or CODES[failure.code].is_retryable, name


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (StreamFault("incomplete"), "MODEL_ERROR"),
        (ConnectionResetError("10.0.0.1"), "MODEL_UNAVAILABLE"),
        (urllib3.exceptions.ProtocolError("x"), "MODEL_ERROR"),
        (urllib3.exceptions.ReadTimeoutError(None, None, "x"), "MODEL_TIMEOUT"),  # type: ignore[arg-type]
        (botocore.exceptions.SSLError(endpoint_url="x", error="y"), "MODEL_UNAVAILABLE"),
        (ModuleNotFoundError("boto3"), "MODEL_NOT_FOUND"),
        (KeyError("contentBlockIndex"), "MODEL_ERROR"),
        (RuntimeError("x"), "MODEL_ERROR"),
    ],
)
def test_every_exception_has_a_code(error: Exception, code: str) -> None:
    assert failure_of(error).code == code


async def test_the_pause_grows_and_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    for attempt in range(1, 10):
        await backoff(attempt)
    assert 0.25 <= slept[0] <= 0.5
    assert all(4.0 <= seconds <= MAX_PAUSE for seconds in slept[4:])
    assert len({*slept}) == len(slept)
