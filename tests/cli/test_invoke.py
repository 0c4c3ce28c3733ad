"""``agui invoke``: what is on which output, and what the exit status says."""

import json
import sys
from io import StringIO
from pathlib import Path

import pytest

from agui_container.cli.command_line import main
from tests.cli.terminal import PYTHONPATH, open_terminal
from tests.ports import free_port
from tests.server.sockets.process import ServerProcess

pytestmark = [pytest.mark.wire, pytest.mark.processes]

FAILED, INTERRUPTED, CANCELLED = 1, 4, 130


@pytest.mark.parametrize("transport", [[], ["--ws"]], ids=["sse", "websocket"])
def test_only_the_answer_is_on_the_standard_output(
    assistant: ServerProcess, capsys: pytest.CaptureFixture[str], transport: list[str]
) -> None:
    assert main(["invoke", assistant.invocations, "calculate 6*7", "--approve", "all", *transport]) == 0
    output = capsys.readouterr()
    assert output.out == "The result of calculate is 42.\n"
    assert 'calls calculate {"expression": "6*7"}' in output.err
    assert "result: 42" in output.err


def test_events_are_json_lines(scripted: ServerProcess, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["invoke", scripted.invocations, "reason", "--json"]) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [event["type"] for event in events][:2] == ["RUN_STARTED", "REASONING_MESSAGE_START"]
    assert events[-1]["type"] == "RUN_FINISHED"
    assert "".join(event["delta"] for event in events if event["type"] == "TEXT_MESSAGE_CONTENT") == "42"


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [("fail now", FAILED, "has the cause. (request "), ("form", INTERRUPTED, "waits: Which paint?"), ("hello", 0, "")],
)
def test_the_exit_status_says_how_the_run_ended(
    scripted: ServerProcess, capsys: pytest.CaptureFixture[str], text: str, status: int, said: str
) -> None:
    assert main(["invoke", scripted.invocations, text]) == status
    assert said in capsys.readouterr().err


def test_the_traceback_of_an_agent_that_the_command_serves_is_on_the_standard_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)  # for the project's database
    monkeypatch.setenv("PYTHONPATH", PYTHONPATH)
    assert main(["invoke", "tests.cli.terminal_agent:agent", "fail now"]) == FAILED
    output = capsys.readouterr()
    assert output.out == ""
    assert "terminal_agent.py" in output.err
    assert "RuntimeError: now" in output.err


def test_settings_of_the_assistant_do_not_refuse_an_agent_that_the_command_names_in_its_place(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", PYTHONPATH)
    settings = 'system_prompt = "You are brief."\nmax_steps = 3\n'
    (tmp_path / "agui.toml").write_text(settings)
    assert main(["invoke", "tests.cli.terminal_agent:agent", "hello"]) == 0
    (tmp_path / "agui.toml").write_text(f'agent = "tests.cli.terminal_agent:agent"\n{settings}')
    assert main(["invoke", "tests.cli.terminal_agent:agent", "hello"]) == 2
    assert "AGUI_SYSTEM_PROMPT is for the built-in assistant" in capsys.readouterr().err


def test_ctrl_c_cancels_the_run(scripted: ServerProcess, tmp_path: Path) -> None:
    with open_terminal("invoke", scripted.invocations, "wait", home=tmp_path) as terminal:
        terminal.wait_for("I wait.")
        terminal.send("\x03")
        assert terminal.wait_for_end() == CANCELLED


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["ftp://localhost", "hello"], "is no URL of http, https, ws or wss"),
        (["arn:aws:s3:::bucket", "hello"], "is no ARN of an AgentCore runtime"),
        (["tests.cli.terminal_agent:nothing", "hello"], "The agent could not be served."),
        (["broken:agent", "hello"], 'broken.py", line 1\n    agent = (\n'),
        (["localhost:1"], "give a text, or write it to the standard input"),
        (["localhost:1", "hello", "--file", "nothing.png"], "nothing.png"),
        (["localhost:1", "hello", "--state", "broken.py"], "'broken.py' is not JSON: Expecting value"),
    ],
)
def test_a_wrong_command_line_is_explained(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)  # an agent that is served makes the folder of the project's database
    monkeypatch.setenv("PYTHONPATH", PYTHONPATH)
    (tmp_path / "broken.py").write_text("agent = (\n")
    assert main(["invoke", *arguments]) == 2
    output = capsys.readouterr().err
    assert said in output
    assert "Traceback" not in output


def test_text_state_files_and_thread_of_a_run_are_given(
    scripted: ServerProcess, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "state.json").write_text('{"count": 1}')
    (tmp_path / "photo.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    thread = f"thread-{free_port()}"
    monkeypatch.setattr(sys, "stdin", StringIO("from the input\n"))
    assert main(["invoke", scripted.invocations, "hello", "--state", f"{tmp_path}/state.json", "--thread", thread]) == 0
    assert main(["invoke", scripted.invocations, "parts", "--file", f"{tmp_path}/photo.png", "--thread", thread]) == 0
    assert main(["threads", "show", scripted.invocations, thread]) == 0
    output = capsys.readouterr().out
    assert output.startswith("1 messages, state {'count': 1}, props {}.\nI have ['text', 'image'].\n")
    assert "hello\n\nfrom the input" in output


@pytest.mark.parametrize(
    ("how", "status", "said"),
    [("all", 0, "The result of calculate is 42."), ("none", 0, "denied"), (None, INTERRUPTED, "")],
)
def test_approvals_are_given_denied_or_left(
    assistant: ServerProcess, capsys: pytest.CaptureFixture[str], how: str | None, status: int, said: str
) -> None:
    option = ["--approve", how] if how else []
    assert main(["invoke", assistant.invocations, "calculate 6*7", *option]) == status
    assert said in capsys.readouterr().out
