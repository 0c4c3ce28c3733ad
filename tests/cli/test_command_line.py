"""The frame of the command line: help, unknown commands, missing packages of the extra, colours."""

import subprocess
import sys

import click
import pytest

from agui_container.cli import command_line
from agui_container.cli.command_line import SUMMARIES, main


@pytest.mark.parametrize("name", SUMMARIES)
def test_each_command_of_the_list_has_a_module_and_explains_itself(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([name, "--help"]) == 0
    assert capsys.readouterr().out.startswith(f"Usage: agui {name} ")


def test_the_help_lists_each_command_and_imports_none() -> None:
    code = "import sys; from agui_container.cli.command_line import main; main(['--help']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert all(f"  {name} " in done.stdout for name in SUMMARIES)
    imported = {word for word in done.stdout.splitlines()[-1].split() if word.startswith("agui_container.cli")}
    assert imported == {"agui_container.cli", "agui_container.cli.command_line", "agui_container.cli.extra"}


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


def test_a_package_that_is_missing_for_another_reason_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(_: str) -> object:
        raise ModuleNotFoundError("No module named 'numpy'", name="numpy")

    monkeypatch.setattr(command_line, "_load", load)
    with pytest.raises(ModuleNotFoundError):
        main(["serve"])


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
