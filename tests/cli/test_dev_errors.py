"""What clients read of an exception of an agent in ``agui dev``, and of a restart."""

from ctypes import c_char
from multiprocessing import Array

import pytest

from agui_container.cli.dev import CHANGED_BYTES, describe_dev_failure, names_of
from agui_container.cli.project import with_traceback
from agui_container.protocol.errors import AppError, ErrorCode, shutting_down


def raised(error: Exception, cause: Exception | None = None) -> Exception:
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


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        ([], "The server is shutting down."),
        (["/project/agent.py"], "restarted: agent.py changed"),
        (["/project/tools.py", "/project/agent.py", "/other/agent.py"], "restarted: agent.py, tools.py changed"),
        ([f"/{number:03}.py" for number in range(999)], "restarted: 000.py, 001.py, "),
    ],
)
def test_runs_that_a_restart_ends_name_the_files_that_changed(paths: list[str], message: str) -> None:
    changed = Array(c_char, CHANGED_BYTES)
    changed.value = names_of(paths)
    described = describe_dev_failure(changed, shutting_down())
    assert described.code is ErrorCode.SHUTTING_DOWN
    assert described.message.startswith(message)
    assert len(described.message) < CHANGED_BYTES + len("restarted:  changed.")
    assert describe_dev_failure(changed, raised(KeyError("paint"))).code is ErrorCode.AGENT_ERROR
