"""The tables of errors in the guides of the protocols besides AG-UI are columns of the one table of the code."""

import json
import re

import pytest
from grpclib.const import Status
from starlette.requests import HTTPConnection

from agui_container.protocol.errors import ERRORS, AppError, ErrorCode
from agui_container.transports.grpc.status import status_of
from agui_container.transports.roboto.routes import refusal
from tests.docs.documents import GUIDES
from tests.docs.markdown import code
from tests.engine.doubles import caller

IN_A_STREAM = 200
"""HTTP status of an error that occurs only inside a stream."""


def roboto_classes() -> dict[int, str]:
    """The exceptions of Roboto's package by HTTP status, as the guide has them."""
    rows = GUIDES["roboto"].table("status", "A request that is\nrefused has the status of that table")
    found = ((status, re.match(r"`(\w+)`", name)) for status, name in rows)
    return {int(each): name[1] for status, name in found if name for each in status.split(", ")}


def test_the_guide_of_grpc_has_the_status_of_every_error() -> None:
    rows = [(code(name), code(status)) for name, status in GUIDES["grpc"].table("code", "## Errors")]
    assert rows == [(name.value, spec.grpc) for name, spec in ERRORS.items()]


@pytest.mark.parametrize("name", ErrorCode)
def test_a_call_ends_with_the_status_of_the_table(name: ErrorCode) -> None:
    assert status_of(AppError(name, "No.")) is Status[ERRORS[name].grpc]


def test_the_guide_of_roboto_has_the_class_of_every_status() -> None:
    assert roboto_classes().keys() == {spec.http for spec in ERRORS.values()} - {IN_A_STREAM}


@pytest.mark.parametrize("name", [name for name, spec in ERRORS.items() if spec.http != IN_A_STREAM])
def test_a_refusal_of_roboto_has_the_status_and_the_class_of_its_guide(name: ErrorCode) -> None:
    request = HTTPConnection({"type": "http", "headers": [], "state": {"caller": caller()}})
    answer = refusal(AppError(name, "No."), request)
    assert answer.status_code == ERRORS[name].http
    assert json.loads(bytes(answer.body))["error"] == {
        "error_code": roboto_classes()[answer.status_code],
        "message": "No.",
    }
