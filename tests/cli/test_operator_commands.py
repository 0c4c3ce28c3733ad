"""Commands of operators, and their messages on failure."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from agui_container.cli.command_line import main
from agui_container.ports.records import Claim, Feedback, Lease, RunKey, ThreadKey
from agui_container.ports.store import Store
from agui_container.stores import KINDS, open_store
from tests.engine.conversations import store_conversation
from tests.engine.doubles import START, Json
from tests.requirements import requirement
from tests.secret_search import planted

T = TypeVar("T")
FEEDBACK = 105
"""More than a page."""


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A database with feedback of two users, and settings that name it."""
    url = f"sqlite:///{tmp_path}/store.db"
    monkeypatch.setenv("AGUI_STORE", url)
    for owner in ("ann", "bob"):
        within(url, lambda store, owner=owner: store_rated_thread(store, owner, 2))  # type: ignore[misc]
    return url


def within(url: str, work: Callable[[Store], Awaitable[T]]) -> T:
    """Work on a database that is open meanwhile."""

    async def working() -> T:
        store = open_store(url)
        await store.open()
        try:
            return await work(store)
        finally:
            await store.aclose()

    return asyncio.run(working())


async def store_rated_thread(store: Store, owner: str, count: int) -> None:
    """A thread whose messages have feedback."""
    messages: list[Json] = [{"id": f"m{n}", "role": "assistant", "content": "hi"} for n in range(1, count + 1)]
    await store_conversation(store, *messages, owner=owner)
    for message in messages:
        said = Feedback(message["id"], "negative", ("slow",), "ä\nb", START, START)
        await store.feedbacks.put(ThreadKey(owner, "t1"), said)


def run_feedback_command(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[Json]:
    """Return the lines that a command prints."""
    assert main(["feedback", *arguments]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    return [json.loads(line) for line in shown.out.splitlines()]


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line of a command that fails."""
    assert main(["feedback", *arguments]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    return shown.err.strip()


@requirement("feedback.triage")
def test_feedback_is_listed_and_triaged(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    listed = run_feedback_command(capsys, "list")
    assert [(line["owner"], line["messageId"]) for line in listed] == [
        *(("bob", "m2"), ("bob", "m1"), ("ann", "m2"), ("ann", "m1"))
    ]
    told = {"sentiment": "negative", "categories": ["slow"], "notes": "ä\nb", "createdAt": START, "changedAt": START}
    assert listed[-1] == {"owner": "ann", "threadId": "t1", "messageId": "m1", **told}
    (first,) = run_feedback_command(capsys, "triage", "ann", "t1", "m1", "--label", "model", "--note", "look at it")
    assert first == {**listed[-1], "label": "model", "note": "look at it"}
    (second,) = run_feedback_command(capsys, "triage", "ann", "t1", "m1", "--note", "", "--resolved-by", "eve")
    assert second.pop("resolvedAt") > 0
    assert second == {**listed[-1], "label": "model", "resolvedBy": "eve"}
    assert [line["messageId"] for line in run_feedback_command(capsys, "list")] == ["m2", "m1", "m2"]
    assert [line.get("resolvedBy") for line in run_feedback_command(capsys, "list", "--all")] == [
        None,
        None,
        None,
        "eve",
    ]
    (third,) = run_feedback_command(capsys, "triage", "ann", "t1", "m1", "--reopen")
    assert third == {**listed[-1], "label": "model"}
    assert len(run_feedback_command(capsys, "list")) == 4


def test_all_feedback_is_listed_however_much_there_is(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    within(url, lambda store: store_rated_thread(store, "eve", FEEDBACK))
    assert len(run_feedback_command(capsys, "list")) == FEEDBACK + 4
    assert run_feedback_command(capsys, "triage", "ann", "t1", "m1", "--label", "old")[0]["label"] == "old"


@pytest.mark.parametrize("where", [("ann", "t1", "m9"), ("ann", "t9", "m1"), ("joe", "t1", "m1")])
def test_feedback_that_is_not_there_cannot_be_triaged(
    url: str, where: tuple[str, str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert complaint(capsys, "triage", *where, "--label", "x") == "there is no such feedback"


@pytest.mark.parametrize(
    ("store", "why"),
    [
        ("memory", "AGUI_STORE: what it names is in the server's own process; name the database that it uses."),
        ("nonsense", f"AGUI_STORE must be one of {KINDS}."),
        (
            f"postgresql://user:{planted('password')}@127.0.0.1:1/database",
            "AGUI_STORE: the database at 127.0.0.1:1 failed: OperationalError: connection failed: ",
        ),
    ],
)
def test_without_a_database_one_line_says_so(
    store: str, why: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AGUI_STORE", store)
    line = complaint(capsys, "list")
    assert line.startswith(f"cannot do this: {why}")
    assert planted("password") not in line


@pytest.mark.parametrize("arguments", [[], ["feedback"], ["feedback", "triage", "ann"], ["feedback", "burn"], ["burn"]])
def test_arguments_that_are_not_a_command_are_explained(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert "Usage: agui" in capsys.readouterr().err


@requirement("operator.runs")
def test_an_operator_sees_the_runs_of_all_owners(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    key = RunKey("ann", "t2", "r9")
    within(url, lambda store: store.runs.claim(Claim(key, "replica-1", START, START + 60)))
    assert main(["runs", "list"]) == 0
    [line] = capsys.readouterr().out.splitlines()
    shown = json.loads(line)
    assert {name: shown[name] for name in ("owner", "threadId", "runId", "status", "replica", "events")} == {
        "owner": "ann",
        "threadId": "t2",
        "runId": "r9",
        "status": "running",
        "replica": "replica-1",
        "events": 0,
    }
    assert main(["runs", "list", "--all"]) == 0
    assert {json.loads(line)["owner"] for line in capsys.readouterr().out.splitlines()} == {"ann", "bob"}


@requirement("operator.runs")
@pytest.mark.parametrize(
    ("store", "why"),
    [
        ("memory", "what it names is in the server's own process; name the database that it uses."),
        ("agentcore-memory:chats-0123456789", "what it names is in the server's own process; name the database"),
        ("sqlite:///{}/none.db", "there is no such file."),
    ],
)
def test_runs_are_looked_for_only_where_a_server_keeps_them(
    store: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AGUI_STORE", store.format(tmp_path))
    assert main(["runs", "list"]) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith(f"cannot do this: AGUI_STORE: {why}")
    assert (shown.out, shown.err.count("\n")) == ("", 1)
    assert list(tmp_path.iterdir()) == []


@requirement("operator.cancel", "durable.cancel")
def test_without_a_bus_a_runs_replica_hears_of_a_cancel_when_it_renews_its_lease(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    key = RunKey("ann", "t2", "r9")
    within(url, lambda store: store.runs.claim(Claim(key, "replica-1", START, START + 60)))
    assert main(["runs", "cancel", *key]) == 0
    assert json.loads(capsys.readouterr().out)["status"] == "running"
    assert within(url, lambda store: store.runs.renew("replica-1", START + 120)) == [
        Lease(key, is_cancel_requested=True)
    ]


@requirement("operator.cancel")
def test_a_run_that_is_over_is_shown_as_it_is(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", "cancel", "ann", "t1", "r1"]) == 0
    assert json.loads(capsys.readouterr().out)["status"] == "finished"


@requirement("operator.cancel")
def test_an_operator_cannot_cancel_what_is_not_there(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", "cancel", "ann", "t1", "none"]) == 2
    assert capsys.readouterr().err == "there is no such run\n"
