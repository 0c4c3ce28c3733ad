"""Every failure has a row in the table."""

import botocore.exceptions  # type: ignore[import-untyped]
import pytest
import urllib3.exceptions

from agui_container.models.bedrock.failures import FAILURES, StreamFault, failure_of
from agui_container.models.bedrock.stream_parser import FAILED_STOPS, STOPS
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
    assert failure_of(error)[0] == code
