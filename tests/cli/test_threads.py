"""``agui threads``, and what the other commands of operators do with a URL."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from ag_ui.core import RunStartedEvent

from agui_client import Outcome, SyncSession
from agui_container.cli.command_line import main
from tests.requirements import requirement
from tests.sockets.process import ServerProcess

Run = Callable[..., str]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command, and return what it prints."""

    def run(*arguments: str, status: int = 0) -> str:
        assert main(arguments) == status
        output = capsys.readouterr()
        return output.err if status else output.out

    return run


@pytest.fixture(params=["url", "store"])
def place(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> Iterator[list[str]]:
    """Options of a place that has the thread ``t``: a server, or its database after the server has ended."""
    url = f"sqlite:///{tmp_path}/store.db"
    with ServerProcess(AGUI_AGENT="tests.cli.terminal_agent:agent", AGUI_STORE=url) as server:
        assert run("invoke", "reason", server.invocations, "--thread", "t") == "42\n"
        if request.param == "url":
            yield ["--url", server.invocations]
            return
    monkeypatch.setenv("AGUI_STORE", url)
    yield []


def parse_lines(text: str) -> list[dict[str, object]]:
    """Parse what a command lists."""
    return [json.loads(line) for line in text.splitlines()]


@requirement("threads.command")
def test_threads_are_listed_shown_exported_renamed_and_deleted(run: Run, place: list[str], tmp_path: Path) -> None:
    run("threads", "rename", "t", "The answer", *place)
    listed = parse_lines(run("threads", "list", *place))
    assert [(thread["threadId"], thread["title"]) for thread in listed] == [("t", "The answer")]
    shown = run("threads", "show", "t", *place)
    assert shown == "# The answer\n\n**User**\n\nreason\n\n**Assistant**\n\n42\n"
    for name in ("t.md", "t.json"):
        run("threads", "export", "t", f"{tmp_path}/{name}", *place)
    assert (tmp_path / "t.md").read_text() == shown
    assert [it["role"] for it in json.loads((tmp_path / "t.json").read_text())["messages"]][-1] == "assistant"
    run("threads", "delete", "t", *place)
    assert run("threads", "list", *place) == ""


@requirement("threads.command")
@pytest.mark.parametrize("command", [["show"], ["rename"], ["delete"]])
def test_a_thread_that_is_not_there_is_named(run: Run, place: list[str], command: list[str]) -> None:
    assert "no such thread" in run("threads", *command, str(uuid4()), *place, status=2).lower()


@requirement("operator.by-url")
def test_runs_and_feedback_of_a_server_are_listed_by_its_url(run: Run, scripted: ServerProcess) -> None:
    with SyncSession.start("hello", url=scripted.invocations) as session:
        thread = session.run().thread_id
        session.submit_feedback(-1, "negative")
    runs = parse_lines(run("runs", "list", "--all", "--url", scripted.invocations))
    assert thread in {each["threadId"] for each in runs}
    feedback = parse_lines(run("feedback", "list", "--url", scripted.invocations))
    assert [(each["threadId"], each["sentiment"]) for each in feedback] == [(thread, "negative")]


@requirement("operator.by-url")
def test_a_run_of_a_server_is_cancelled_by_its_url(run: Run, scripted: ServerProcess) -> None:
    place = ["--url", scripted.invocations]
    with SyncSession.start("wait", url=scripted.invocations) as session:
        events = session.events()
        started = next(event for event in events if isinstance(event, RunStartedEvent))
        ids = (started.thread_id, started.run_id)
        assert ids in {(each["threadId"], each["runId"]) for each in parse_lines(run("runs", "list", *place))}
        run("runs", "cancel", "anyone", *ids, *place)
        assert list(events)
        assert session.outcome is Outcome.CANCELLED
