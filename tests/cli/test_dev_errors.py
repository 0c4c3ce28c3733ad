"""What clients read of an exception of an agent in ``agui dev``."""

import pytest

from agui_container.cli.project import with_traceback
from agui_container.protocol.errors import AppError, ErrorCode


def raised(error: Exception, cause: Exception | None = None) -> Exception:
    """Return the error, as it arrives from an agent."""
    with pytest.raises(type(error)) as caught:
        raise error from cause
    return caught.value


@pytest.mark.parametrize(
    "error",
    [
        raised(KeyError("paint")),
        raised(AppError(ErrorCode.AGENT_ERROR, "The agent failed."), KeyError("paint")),
    ],
    ids=["exception", "of a framework"],
)
def test_an_exception_has_its_traceback(error: Exception) -> None:
    described = with_traceback(error)
    assert described.code is ErrorCode.AGENT_ERROR
    assert "Traceback (most recent call last)" in described.message
    assert "KeyError: 'paint'" in described.message


@pytest.mark.parametrize(
    "error",
    [
        AppError(ErrorCode.AGENT_ERROR, "There is no paint."),
        raised(AppError(ErrorCode.MODEL_THROTTLED, "Too many requests."), KeyError("paint")),
    ],
    ids=["sentence of the agent", "of a model"],
)
def test_a_sentence_for_people_is_left_as_it_is(error: AppError) -> None:
    assert with_traceback(error) is error


def test_a_password_in_an_exception_is_masked() -> None:
    error = raised(OSError("cannot connect to postgresql://me:pa55word@db/agui"))
    assert "pa55word" not in with_traceback(error).message
