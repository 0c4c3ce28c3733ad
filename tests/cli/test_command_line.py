"""The frame of the command line: help, unknown commands, missing packages of the extra, colours."""

import logging
import os
import socket
import subprocess
import sys
from pathlib import Path

import click
import pytest

from agui_container.cli import command_line
from agui_container.cli.command_line import SUMMARIES, main


def test_the_help_lists_each_command_and_imports_none() -> None:
    code = "import sys; from agui_container.cli.command_line import main; main(['--help']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert all(f"  {name} " in done.stdout for name in SUMMARIES)
    imported = {word for word in done.stdout.splitlines()[-1].split() if word.startswith("agui_container.cli")}
    assert imported == {"agui_container.cli", "agui_container.cli.command_line", "agui_container.cli.failure"}


def test_a_command_that_is_misspelt_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sevre"]) == 2
    assert capsys.readouterr().err.endswith("Error: No such command 'sevre'. Did you mean 'serve'?\n")


@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [("rich.console", "rich", "cli"), ("boto3", "boto3", "aws"), ("botocore.exceptions", "boto3", "aws")],
)
def test_a_command_whose_package_is_missing_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], module: str, package: str, extra: str
) -> None:
    def load(_: str) -> object:
        raise ModuleNotFoundError(f"No module named '{module}'", name=module)

    monkeypatch.setattr(command_line, "_load", load)
    assert main(["serve"]) == 1
    expected = (
        f"Error: agui serve needs the package {package}. Install it with: pip install 'agui-container[{extra}]'\n"
    )
    assert capsys.readouterr().err == expected


@pytest.mark.parametrize(("variable", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_a_terminal_that_wants_no_colours_gets_none(variable: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, value)
    colours = list[bool | None]()

    @click.command()
    @click.pass_context
    def probe(ctx: click.Context) -> None:
        colours.append(ctx.color)

    monkeypatch.setattr(command_line, "_load", lambda _: probe)
    assert main(["serve"]) == 0
    assert colours == [False]


TAKING = {
    "platform": ["--port"],
    "chat": ["--web", "--no-open", "http://localhost:9", "--web-port"],
    "dev": ["--host", "127.0.0.1", "--no-open", "--port"],
}


@pytest.mark.wire
@pytest.mark.parametrize("name", TAKING)
def test_a_port_that_is_taken_is_one_line(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for variable in [each for each in os.environ if each.startswith("AGUI_")]:
        monkeypatch.delenv(variable)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main([name, *TAKING[name], str(port)]) == 2
    expected = f"cannot listen on 127.0.0.1:{port}: Address already in use. Port 0 takes a free one.\n"
    assert (capsys.readouterr().err, caplog.messages) == (expected, [])


WITHOUT_UNIX = """
import asyncio, importlib, pkgutil, signal, subprocess, sys
for name in ("SIGHUP", "SIGQUIT", "SIGTSTP", "SIGUSR1", "SIGUSR2", "SIGWINCH"):
    delattr(signal, name)
sys.modules.update(dict.fromkeys(("fcntl", "grp", "httptools", "pwd", "resource", "termios", "tty", "uvloop")))
import agui_client, agui_container.cli
for found in pkgutil.walk_packages(agui_container.cli.__path__, "agui_container.cli."):
    importlib.import_module(found.name)
"""


def test_every_command_can_be_imported_without_what_windows_lacks() -> None:
    subprocess.run([sys.executable, "-c", WITHOUT_UNIX], check=True)
