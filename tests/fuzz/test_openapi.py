"""The server keeps to its OpenAPI description for whatever schemathesis derives from it."""

from collections.abc import Iterator
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.engine.doubles import WAIT
from tests.requirements import requirement
from tests.sockets.process import ServerProcess

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance]
"""Checks of every answer. The schema of an event stream is that of its text, which schemathesis does not read."""

Case = schemathesis.Case[APIOperation[Any, Any, Any, Any]]

EXAMPLES = 2
"""Requests of each operation. Every test run makes the same ones."""


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    """A server with the built-in assistant, which has a path of its own, too."""
    with ServerProcess(AGUI_AGENT="assistant", AGUI_AGENTS="helper=assistant", AGUI_SCOPE="none") as started:
        yield started


@requirement("fuzz.requests")
def test_requests_that_the_description_allows_and_others_get_what_it_says(server: ServerProcess) -> None:
    schema = schemathesis.openapi.from_url(f"http://127.0.0.1:{server.port}/openapi.json")
    operations = [found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)]
    assert len(operations) > 20
    with requests.Session() as session:

        def check(case: Case) -> None:
            check_answer(case, session)

        for operation in operations:
            settings(max_examples=EXAMPLES, phases=[Phase.generate])(given(operation.as_strategy())(check))()
    assert server.faults == []


def check_answer(case: Case, session: requests.Session) -> None:
    """Send a request and check the answer."""
    response = case.call(session=session, timeout=WAIT)
    is_json = "json" in response.headers.get("content-type", [""])[0]
    case.validate_response(response, checks=[*CHECKS, response_schema_conformance] if is_json else CHECKS)
