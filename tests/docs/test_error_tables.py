"""Tables of errors and scenarios are those of the code, and claims name their tests."""

import json
import re

import pytest
from starlette.requests import HTTPConnection

from agui_container.protocol.errors import ERRORS, AppError, ErrorCode
from agui_container.transports.roboto.routes import refusal
from bench.__main__ import SCENARIOS
from bench.scenarios.grpc_streams import GOAL
from tests.docs.documents import DOCUMENTS, GUIDES, SECURITY
from tests.docs.markdown import code
from tests.engine.doubles import caller
from tests.test_manifest import functions

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


# --- benchmarks -------------------------------------------------------------------------------------------------------


def test_the_table_of_scenarios_has_every_scenario() -> None:
    assert [code(name) for name, _ in GUIDES["benchmarks"].table("scenario")] == list(SCENARIOS)


def test_the_guide_of_grpc_names_the_goal_and_the_scenario() -> None:
    assert f"a ratio of {GOAL:g}" in GUIDES["grpc"].prose
    assert "grpc" in SCENARIOS


# --- claims -----------------------------------------------------------------------------------------------------------


NAME = re.compile(r"`(test_\w+)`")
OPERATIONS = GUIDES["operations"]


def rows_of_tests() -> dict[str, list[str]]:
    """The tests of each section of the guide to operations, from the page of evidence."""
    return {section: NAME.findall(names) for section, names in GUIDES["evidence"].table("section", "## Operations")}


def test_every_section_for_operators_names_its_tests() -> None:
    sections = re.findall(r"^## (.+)$", OPERATIONS.text, re.MULTILINE)
    without = {"What survives", "Kill it yourself"}
    named = rows_of_tests()
    assert [section for section in sections if section not in without and not named.get(section)] == []


def test_every_row_of_what_survives_has_its_tests() -> None:
    rows = [row[0] for row in OPERATIONS.table("what happens", "## What survives")]
    named = rows_of_tests()
    assert rows
    assert [row for row in rows if not named.get(f"What survives: {row}")] == []


def test_tables_for_users_name_no_tests() -> None:
    guides = {name: guide for name, guide in GUIDES.items() if name != "evidence"}
    rows = {name: re.findall(r"^\|.*`test_\w+`.*$", guide.prose, re.MULTILINE) for name, guide in guides.items()}
    assert [name for name, found in rows.items() if found] == []


@pytest.mark.parametrize("section", ["## What is protected", "## Limits of one identity"])
def test_every_claim_about_security_names_its_tests(section: str) -> None:
    rows = SECURITY.table("claim", section)
    assert rows
    assert [claim for claim, names in rows if not NAME.findall(names)] == []


def test_every_test_that_a_document_names_is_there() -> None:
    known = {function.name for _, function in functions()}
    named = {(document.name, name) for document in DOCUMENTS for name in NAME.findall(document.prose)}
    assert sorted(each for each in named if each[1] not in known) == []
