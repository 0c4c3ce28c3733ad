"""``agui threads``, ``agui runs`` and ``agui feedback`` on a server by its URL."""

import json
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest
from ag_ui.core import RunStartedEvent

from agui_client import Outcome, SyncSession
from agui_container.cli.command_line import main
from tests.cli.terminal import PYTHONPATH
from tests.server.sockets.process import ServerProcess

pytestmark = [pytest.mark.wire, pytest.mark.processes]

Run = Callable[..., str]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], scripted: ServerProcess) -> Run:
    def run(*arguments: str, status: int = 0) -> str:
        group, command, *rest = arguments
        assert main([group, command, scripted.invocations, *rest]) == status
        output = capsys.readouterr()
        return output.err if status else output.out

    return run


def parse_lines(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def test_threads_are_listed_shown_exported_renamed_and_deleted(
    run: Run, scripted: ServerProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    thread = str(uuid4())
    assert main(["invoke", scripted.invocations, "reason", "--thread", thread]) == 0
    capsys.readouterr()
    run("threads", "rename", thread, "The answer")
    titles = {each["threadId"]: each.get("title") for each in parse_lines(run("threads", "list"))}
    assert titles[thread] == "The answer"
    shown = run("threads", "show", thread)
    assert shown == "# The answer\n\n**User**\n\nreason\n\n**Assistant**\n\n42\n"
    for name in ("t.md", "t.json"):
        run("threads", "export", thread, f"{tmp_path}/{name}")
    assert (tmp_path / "t.md").read_text() == shown
    assert [it["role"] for it in json.loads((tmp_path / "t.json").read_text())["messages"]][-1] == "assistant"
    assert "t.md: No such file or directory." in run("threads", "export", thread, f"{tmp_path}/none/t.md", status=2)
    run("threads", "delete", thread)
    assert thread not in run("threads", "list")


def test_threads_of_an_agent_are_listed_while_the_command_serves_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)  # for the project's database
    monkeypatch.setenv("PYTHONPATH", PYTHONPATH)
    agent, thread = "tests.cli.terminal_agent:agent", str(uuid4())
    assert main(["invoke", agent, "hello", "--thread", thread]) == 0
    capsys.readouterr()
    assert main(["threads", "list", agent]) == 0
    assert [each["threadId"] for each in parse_lines(capsys.readouterr().out)] == [thread]


@pytest.mark.parametrize("command", ["show", "rename", "delete"])
def test_a_thread_that_is_not_there_is_named(run: Run, command: str) -> None:
    assert "no such thread" in run("threads", command, str(uuid4()), status=2).lower()


def test_runs_and_feedback_are_listed(run: Run, scripted: ServerProcess) -> None:
    with SyncSession.start("hello", url=scripted.invocations) as session:
        thread = session.run().thread_id
        session.submit_feedback(-1, "negative")
    assert thread in {each["threadId"] for each in parse_lines(run("runs", "list", "--all"))}
    feedback = parse_lines(run("feedback", "list"))
    assert (thread, "negative") in {(each["threadId"], each["sentiment"]) for each in feedback}


def test_a_run_is_cancelled(run: Run, scripted: ServerProcess) -> None:
    with SyncSession.start("wait", url=scripted.invocations) as session:
        events = session.events()
        started = next(event for event in events if isinstance(event, RunStartedEvent))
        ids = (started.thread_id, started.run_id)
        assert ids in {(each["threadId"], each["runId"]) for each in parse_lines(run("runs", "list"))}
        run("runs", "cancel", *ids)
        assert list(events)
        assert session.outcome is Outcome.CANCELLED


@pytest.mark.parametrize("arguments", [["threads", "list"], ["runs", "list"], ["feedback", "list"]])
def test_a_server_that_is_not_there_is_one_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*arguments, "http://127.0.0.1:9"]) == 2
    output = capsys.readouterr()
    assert (output.out, output.err.count("\n")) == ("", 1)
