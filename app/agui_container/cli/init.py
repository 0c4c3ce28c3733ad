"""``agui init``: make the folder of a project, which runs and whose test passes at once.

Rule: a project needs no model, no key and no network. One line of it says how to name a real model. Files are written
into an empty folder only.
"""

import builtins
import keyword
import re
import shutil
from pathlib import Path
from string import Template

import click
from msgspec import Struct

from agui_container import __version__
from agui_container.cli.config import SCHEMA
from agui_container.cli.failure import CommandFailed

TEMPLATES = Path(__file__).with_name("templates")
SUFFIX = ".txt"
HIDDEN = ("dockerignore", "gitignore")
"""Files whose names begin with a dot in a project."""

PARTS = ("policy.txt", "settings.txt", "tool.py.txt")
"""Templates that become parts of other files."""

DEFAULT_TOOL = "publish"


class ProjectKind(Struct, frozen=True):
    """A kind of project.

    Attributes:
        title: words for the README.
        model: sentence that says how to name a real model.
        extra: extra of agui-container that the agent needs, if any.
    """

    title: str
    model: str
    extra: str = ""


FRAMEWORKS = {
    "plain": ProjectKind(
        "the built-in assistant", 'write `model = "bedrock:MODEL_ID"` or `"openai:MODEL"` in agui.toml.'
    ),
    "strands": ProjectKind("Strands", "give `Agent` in agent.py a model of `strands.models`.", "strands"),
    "langgraph": ProjectKind("LangGraph", "give `model` in agent.py a chat model of LangChain.", "langgraph"),
    "pydantic-ai": ProjectKind("Pydantic AI", "write its name in agent.py.", "pydantic-ai"),
}


def check_tools(_: click.Context, __: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    """Check the names of tools. Without one, the project has the tool ``publish``."""
    for name in names:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,63}", name) or keyword.iskeyword(name):
            raise click.BadParameter(f"'{name}' is not the name of a Python function.")
        if name in words_of_agents() or hasattr(builtins, name):
            raise click.BadParameter(f"'{name}' has another meaning in the code of a project. Choose another name.")
    return tuple(dict.fromkeys(names)) or (DEFAULT_TOOL,)


def words_of_agents() -> set[str]:
    """Return the words in the code of all agents. A tool with such a name could hide what the code needs."""
    return {
        word for path in TEMPLATES.glob(f"*/agent.py{SUFFIX}") for word in re.findall(r"(?<!\$)\b\w+", path.read_text())
    }


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--framework", type=click.Choice(list(FRAMEWORKS)), default="plain", show_default=True)
@click.option(
    "--tool", "tools", metavar="NAME", multiple=True, callback=check_tools, help="A tool to write. May be repeated."
)
def init(folder: Path, framework: str, tools: tuple[str, ...]) -> None:
    """Make a project in FOLDER: an agent, tools that ask for approval, a test, settings and a Dockerfile."""
    try:
        names = write_project(folder, framework, tools)
    except OSError as error:
        raise CommandFailed(f"cannot write {error.filename or folder}: {error.strerror}") from None
    click.echo(f"Made {folder} ({FRAMEWORKS[framework].title}): {', '.join(names)}\n\nNext:")
    click.echo(click.style(f"  cd {folder}", fg="cyan"))
    if FRAMEWORKS[framework].extra:
        click.echo(click.style("  pip install -r requirements.txt", fg="cyan"))
    click.echo(click.style("  agui dev", fg="cyan"))


def write_project(folder: Path, framework: str, tools: tuple[str, ...]) -> list[str]:
    """Write the files of a project and return their names. Raises ``CommandFailed`` if the folder has files."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise CommandFailed(f"{folder} is not empty. Name a new folder.")
    values = values_of(folder.resolve().name, framework, tools)
    for template in sorted([*(TEMPLATES / "project").iterdir(), *(TEMPLATES / framework).iterdir()]):
        if template.name not in PARTS:
            name = template.name.removesuffix(SUFFIX)
            path = folder / (f".{name}" if name in HIDDEN else name)
            path.write_text(fill(template, values), encoding="utf-8")
    shutil.copyfile(SCHEMA, folder / SCHEMA.name)
    return sorted(path.name for path in folder.iterdir())


def values_of(name: str, framework: str, tools: tuple[str, ...]) -> dict[str, str]:
    """Return the values of the placeholders."""
    folder, chosen = TEMPLATES / framework, FRAMEWORKS[framework]
    policy = folder / "policy.txt"
    rules = [fill(policy, {"tool": tool}) for tool in tools] if policy.exists() else []
    return {
        "name": re.sub(r"[^\w .-]", "", name) or "agent",
        "title": chosen.title,
        "model": chosen.model,
        "version": __version__,
        "extras": ",".join(["all", *filter(None, [chosen.extra])]),
        "tool": tools[0],
        "tools": ", ".join(tools),
        "tool_strings": ", ".join(f'"{tool}"' for tool in tools),
        "definitions": "\n\n\n".join(fill(folder / "tool.py.txt", {"tool": tool}).rstrip() for tool in tools),
        "settings": "\n".join([fill(folder / "settings.txt", {}).rstrip(), *map(str.rstrip, rules)]),
    }


def fill(template: Path, values: dict[str, str]) -> str:
    """Return the text of a template with values in place of its placeholders."""
    return Template(template.read_text(encoding="utf-8")).substitute(values)
