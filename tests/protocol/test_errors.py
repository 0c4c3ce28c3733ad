"""The error table, in which every code has a complete row, and the cache of facts about classes."""

import pytest

from agui_container.protocol.errors import ERRORS, AppError, ErrorCode
from agui_container.protocol.type_cache import MAX_TYPES, TypeCache

DESIGN = {
    "UNAUTHORIZED": 401,
    "ACCESS_DENIED": 403,
    "VALIDATION_ERROR": 400,
    "PAYLOAD_TOO_LARGE": 413,
    "RATE_LIMIT_EXCEEDED": 429,
    "THREAD_BUSY": 409,
    "RUN_NOT_FOUND": 404,
    "SHUTTING_DOWN": 503,
    "AGENT_ERROR": 200,
    "RUN_TIMEOUT": 200,
}


def test_every_code_has_a_row_and_nothing_else_has() -> None:
    assert ERRORS.keys() == set(ErrorCode)


@pytest.mark.parametrize("code", ErrorCode)
def test_a_row_holds_a_status_and_a_close_code_that_exist(code: ErrorCode) -> None:
    row = ERRORS[code]
    assert row.http == 200 or 400 <= row.http <= 599
    assert 1000 < row.ws_close < 1016
    assert row.is_retryable in (True, False)


@pytest.mark.parametrize(("code", "status"), DESIGN.items())
def test_the_statuses_are_those_of_the_design(code: str, status: int) -> None:
    assert ERRORS[ErrorCode(code)].http == status


@pytest.mark.parametrize("code", [code for code in ErrorCode if code.startswith("MODEL_")])
def test_codes_inside_a_stream_have_status_200(code: ErrorCode) -> None:
    assert ERRORS[code].http == 200


def test_an_error_knows_its_row_and_its_message() -> None:
    error = AppError(ErrorCode.THREAD_BUSY, "Wait a moment.")
    assert error.spec is ERRORS[ErrorCode.THREAD_BUSY]
    assert (error.message, str(error)) == ("Wait a moment.", "Wait a moment.")


# --- facts about classes ----------------------------------------------------------------------------------------------


def test_a_fact_about_a_class_is_computed_once() -> None:
    asked: list[type] = []

    def name(kind: type) -> str:
        asked.append(kind)
        return kind.__name__

    known = TypeCache(name)
    assert [known[int], known[str], known[int]] == ["int", "str", "int"]
    assert asked == [int, str]


def test_classes_without_end_do_not_fill_the_memory() -> None:
    known = TypeCache(lambda kind: kind.__name__)
    for number in range(2 * MAX_TYPES):
        assert known[type(f"Event{number}", (), {})] == f"Event{number}"
    assert len(known) <= MAX_TYPES
