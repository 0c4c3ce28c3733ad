"""The synchronous face: in scripts, inside a running event loop, and as notebooks show it."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest
from ag_ui.core import BaseEvent, TextMessageContentEvent

from agui_client import Approval, Decision, Outcome, RunRefusedError, Session, SessionStatus, SyncSession, client_tool
from tests.server.sockets.process import ROOT, ServerProcess

pytestmark = [pytest.mark.wire, pytest.mark.processes]

PATH = f"{ROOT}/clients/python/src"


def converse(url: str) -> SyncSession:
    @client_tool
    def get_weather(city: str) -> str:
        """The weather in a city."""
        return f"sunny in {city}"

    session = SyncSession.start('call get_weather {"city": "Berlin"}', url=url, client_tools=[get_weather])
    session.run()
    session.send_text("what time is it").run(on_approval=lambda approval: approval.deny("no clock"))
    events = session.send_text("hello").events()
    assert (
        "".join(event.delta for event in events if isinstance(event, TextMessageContentEvent))
        == session.messages[-1].content
    )
    return session


def check(session: SyncSession) -> None:
    assert "The result of get_weather is sunny in Berlin." in session.transcript
    assert "the user denied this call: no clock" in session.transcript
    assert session.status is SessionStatus.USER_TURN
    session.close()


def test_a_script_needs_no_event_loop(url: str) -> None:
    check(converse(url))


async def test_the_same_works_inside_a_running_loop(url: str) -> None:
    check(converse(url))


def test_a_program_and_its_fork_end_though_their_sessions_stay_open(server: ServerProcess) -> None:
    script = (
        "import os\n"
        "from agui_client import SyncSession\n"
        f"session = SyncSession.start('calculate 6*7', url='{server.ws}').run()\n"
        "child = os.fork()\n"
        f"session = session if child else SyncSession('{server.ws}')\n"
        "session.send_text('calculate 1+1').run()\n"
        "print(os.wait()[1] if child else '', session.latest_message.content)\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        env={**os.environ, "PYTHONPATH": PATH},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout == " The result of calculate is 2.\n0 The result of calculate is 2.\n"
    assert done.stderr == ""


def test_handlers_are_called_in_the_callers_thread(url: str) -> None:
    threads: set[str] = set()

    async def decide(approval: Approval) -> Decision:
        return approval.approve()

    def note(_: BaseEvent) -> None:
        threads.add(threading.current_thread().name)

    with SyncSession.start("what time is it", url=url) as session:
        session.run(on_event=note, on_approval=decide)
    assert threads == {threading.current_thread().name}
    assert str(session.messages[-1].content).startswith("The result of current_time is")


def test_ctrl_c_ends_the_call_and_the_run_can_be_cancelled(url: str) -> None:
    def press(_: BaseEvent) -> None:
        raise KeyboardInterrupt

    with SyncSession.start("wait 600", url=url) as session:
        with pytest.raises(KeyboardInterrupt):
            session.run(on_event=press)
        session.cancel()
        assert session.run().outcome is Outcome.CANCELLED


def test_threads_are_listed_renamed_forked_rated_and_deleted(url: str) -> None:
    session = SyncSession.start("calculate 6*7", url=url).run()
    assert session.rename("Sums").title == "Sums"
    fork = session.fork(0)
    assert [message.role for message in fork.messages] == ["user"]
    assert session.submit_feedback(-1, "positive", ["correct"]).message_id == session.messages[-1].id
    listed = session.command("threads.list", limit=1)["threads"]
    assert listed[0]["threadId"] == fork.thread_id  # type: ignore[index]
    fork.delete()
    with pytest.raises(RunRefusedError) as caught:
        fork.refresh()
    assert caught.value.code == "THREAD_NOT_FOUND"
    for each in (session, fork):
        each.close()


def test_a_call_from_an_async_handler_is_refused_and_does_not_hang(url: str) -> None:
    with SyncSession.start("hello", url=url) as session:

        async def refresh(_: BaseEvent) -> None:
            session.refresh()

        with pytest.raises(RuntimeError, match="event loop thread"):
            session.run(on_event=refresh)


@pytest.mark.parametrize("make", [Session, SyncSession])
def test_a_notebook_shows_the_conversation_and_no_markup_of_it(make: Callable[[str], Session | SyncSession]) -> None:
    session = make("http://localhost:8080")
    session.send_text("<script>alert(1)</script>")
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in session._repr_html_()
    assert "<script" not in session._repr_html_()
    assert session._repr_markdown_() == "**User**\n\n<script>alert(1)</script>"
    assert repr(session).endswith("agent_turn, 1 messages>")
