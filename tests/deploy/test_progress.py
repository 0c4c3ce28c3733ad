"""The progress of a deployment: a bar on a terminal, which leaves only lines, and lines elsewhere."""

import re
from contextlib import redirect_stderr
from pathlib import Path

import pytest

from agui_container.cli.command_line import main
from tests.cli.test_screen import RecordingTerminal
from tests.deploy.account import Account
from tests.deploy.docker import FakeDocker
from tests.requirements import requirement

STEPS = 13
BAR = re.compile(r"^[^\[\n] +(\d+)/13 (━*╸?) *(.*)$", re.MULTILINE)
"""A spinner or a space, the number of steps that are done, the bar and the state of the step that runs."""

COLUMNS = 40


def run(terminal: RecordingTerminal, builder: str = "codebuild") -> int:
    with redirect_stderr(terminal):
        return main(["deploy", "--builder", builder, "--no-test"])


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> RecordingTerminal:
    """A narrow terminal as the standard error, without colours, by which an unfilled part of the bar differs."""
    terminal = RecordingTerminal(COLUMNS)
    for name, value in {"COLUMNS": str(COLUMNS), "TERM": "xterm", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    return terminal


def bars(terminal: RecordingTerminal) -> list[tuple[int, int]]:
    """The number of steps and the length of each bar that the terminal has shown, without repetitions."""
    found = [(int(each[1]), len(each[2])) for _, shown in terminal.frames for each in BAR.finditer(shown)]
    return list(dict.fromkeys(found))


def lines(terminal: RecordingTerminal) -> list[str]:
    """The lines that are left on the terminal, joined where its width has cut them."""
    rows = [row.rstrip() for row in terminal.screen.display]
    return re.sub(r"\n(?!\[|cannot)", "", "\n".join(row for row in rows if row)).splitlines()


@requirement("deploy.progress")
def test_the_bar_moves_with_each_step_up_to_its_end_and_leaves_the_lines(
    project: Path, account: type[Account], terminal: RecordingTerminal
) -> None:
    assert run(terminal) == 0
    shown = bars(terminal)
    assert [steps for steps, _ in shown] == list(range(STEPS + 1))
    lengths = [length for _, length in shown]
    assert lengths == sorted(lengths)
    assert (lengths[0], lengths[-1]) == (0, 16)
    left = lines(terminal)
    assert [line.partition("]")[0] for line in left] == [f"[{number}/13" for number in range(1, STEPS + 1)]
    assert left[0] == "[1/13] make repository agui-weather"


@requirement("deploy.progress")
def test_the_bar_is_one_row_of_a_narrow_terminal(
    project: Path, account: type[Account], terminal: RecordingTerminal
) -> None:
    assert run(terminal) == 0
    for _, shown in terminal.frames:
        rows = shown.rstrip().splitlines()
        found = [number for number, row in enumerate(rows) if BAR.fullmatch(row)]
        assert found in ([], [len(rows) - 1]), shown
    assert len(bars(terminal)) == STEPS + 1


@requirement("deploy.progress")
@pytest.mark.parametrize("number", [1, 11], ids=["the first call", "the last call"])
def test_a_step_that_fails_ends_the_bar_where_it_was_and_leaves_the_lines(
    project: Path, account: type[Account], terminal: RecordingTerminal, number: int
) -> None:
    account.fail_at = number
    assert run(terminal) == 2
    done = [steps for steps, _ in bars(terminal)]
    assert done == list(range(len(done)))
    assert len(done) < STEPS
    left = lines(terminal)
    assert not any(BAR.match(line) for line in left)
    assert left[-1].startswith("cannot make ")
    assert left[-2].startswith(f"[{len(done)}/13] ")


@requirement("deploy.progress", "deploy.docker")
def test_the_output_of_docker_is_shown_above_the_bar(
    project: Path, account: type[Account], docker: FakeDocker, terminal: RecordingTerminal
) -> None:
    docker.fail("login *")
    assert run(terminal, "docker") == 2
    assert "[3/8] log in to the registryplanted: login gave up" in lines(terminal)


@requirement("deploy.progress")
def test_there_is_no_bar_where_the_standard_error_is_no_terminal(
    project: Path, account: type[Account], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["deploy", "--builder", "codebuild", "--no-test"]) == 0
    shown = capsys.readouterr().err
    assert [line.partition("]")[0] for line in shown.splitlines()] == [f"[{number}/13" for number in range(1, 14)]
    assert "━" not in shown
    assert "\x1b" not in shown
