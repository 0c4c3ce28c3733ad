"""``agui init``: make the folder of a project, which runs and whose test passes at once.

Rule: a project has a stand-in for a model, or its README names the key that its model needs. It carries the wheels it
was made with, because no index has them. Files are written into an empty folder only.
"""

import re
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from string import Template

import click
from msgspec import Struct

from agui_container.cli.config import SCHEMA
from agui_container.cli.failure import CommandFailed
from agui_container.cli.wheels import CLIENT, SERVER, WheelError, find_wheel

TEMPLATES = Path(__file__).with_name("templates")
SUFFIX = ".txt"
HIDDEN = ("dockerignore", "gitignore")
"""Files whose names begin with a dot in a project."""

SETTINGS = "settings.txt"
"""The settings of a framework, which become a part of ``agui.toml``."""


class ProjectKind(Struct, frozen=True):
    """A kind of project.

    Attributes:
        title: words for the README.
        model: sentences that say what the model is or needs.
        extra: extra of agui-container that the agent needs, if any.
        packages: what else the agent needs.
        without_requirements: a package whose own requirements do not fit beside this server.
    """

    title: str
    model: str
    extra: str = ""
    packages: tuple[str, ...] = ()
    without_requirements: str = ""


STAND_IN = "Its model is a stand-in. For a real one"
GOOGLE = "Its model needs `GOOGLE_API_KEY`, or Vertex AI as ADK's own documentation has it."
ANTHROPIC = "Its model needs `ANTHROPIC_API_KEY`."
OPENAI = "Its model needs `OPENAI_API_KEY`, or `OPENAI_BASE_URL` of a server with OpenAI's API."

FRAMEWORKS = {
    "plain": ProjectKind(
        "the built-in assistant", f'{STAND_IN}, write `model = "bedrock:MODEL_ID"` or `"openai:MODEL"` in agui.toml.'
    ),
    "adk": ProjectKind("ADK", GOOGLE, "adk"),
    "ag2": ProjectKind("AG2", OPENAI, "ag2", ("openai",)),
    "agno": ProjectKind("Agno", OPENAI, "agno", ("openai",)),
    "claude-sdk": ProjectKind("the Claude Agent SDK", ANTHROPIC, "claude-sdk"),
    "langchain": ProjectKind("LangChain", OPENAI, "langgraph", ("langchain", "langchain-openai")),
    "langgraph": ProjectKind(
        "LangGraph", f"{STAND_IN}, give `model` in agent.py a chat model of LangChain.", "langgraph"
    ),
    "langroid": ProjectKind("Langroid", OPENAI, "langroid"),
    "llama-index": ProjectKind("LlamaIndex", OPENAI, "llama-index", ("llama-index-llms-openai",)),
    "microsoft": ProjectKind(
        "Microsoft's Agent Framework", OPENAI, "", ("agent-framework-openai",), "agent-framework-ag-ui"
    ),
    "openai-agents": ProjectKind("OpenAI Agents", OPENAI, "openai-agents"),
    "pydantic-ai": ProjectKind("Pydantic AI", f"{STAND_IN}, write its name in agent.py.", "pydantic-ai"),
    "strands": ProjectKind("Strands", f"{STAND_IN}, give `Agent` in agent.py a model of `strands.models`.", "strands"),
}

CREWAI = "crewai"
CREWAI_REFUSED = (
    "crewAI cannot share an environment with this server. Serve the crew with ag-ui-crewai in an environment of its"
    " own, and set AGUI_AGENT to its URL: examples/two_processes has both."
)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--framework",
    type=click.Choice([*FRAMEWORKS, CREWAI]),
    default="plain",
    show_default=True,
    help="The framework of the agent; plain is the built-in assistant.",
)
def init(folder: Path, framework: str) -> None:
    """Make a project in FOLDER: an agent, a tool that asks for approval, a test, settings and a Dockerfile."""
    if framework == CREWAI:
        raise CommandFailed(CREWAI_REFUSED)
    try:
        names = write_project(folder, framework)
    except OSError as error:
        raise CommandFailed(f"cannot write {error.filename or folder}: {error.strerror}") from None
    except WheelError as error:
        raise CommandFailed(f"cannot make a project that installs elsewhere: {error}") from None
    kind = FRAMEWORKS[framework]
    click.echo(f"Made {folder} ({kind.title}): {', '.join(names)}\n\n{kind.model}\n\nNext:")
    click.echo(click.style(f"  cd {shlex.quote(str(folder))}", fg="cyan"))
    if framework != "plain":
        click.echo(click.style(f"  pip install -r requirements.txt{second_install(kind)}", fg="cyan"))
    click.echo(click.style("  agui dev", fg="cyan"))


def second_install(kind: ProjectKind) -> str:
    """Return what follows the installation of requirements.txt, which has no line for a package without its own."""
    return f" && pip install --no-deps {kind.without_requirements}" if kind.without_requirements else ""


def write_project(folder: Path, framework: str) -> list[str]:
    """Write the files of a project and return their names. Raises ``CommandFailed`` if the folder has files."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise CommandFailed(f"{folder} is not empty. Name a new folder.")
    wheels = {package: find_wheel(package) for package in (SERVER, CLIENT)}
    values = values_of(folder.resolve().name, framework, {name: wheel.path for name, wheel in wheels.items()})
    for template in sorted([*(TEMPLATES / "project").iterdir(), *(TEMPLATES / framework).iterdir()]):
        if template.name != SETTINGS:
            name = template.name.removesuffix(SUFFIX)
            path = folder / (f".{name}" if name in HIDDEN else name)
            path.write_text(Template(template.read_text(encoding="utf-8")).substitute(values), encoding="utf-8")
    shutil.copyfile(SCHEMA, folder / SCHEMA.name)
    for wheel in wheels.values():
        path = folder / wheel.path
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(wheel.content)
    return sorted(path.name for path in folder.iterdir())


def values_of(name: str, framework: str, wheels: Mapping[str, str]) -> dict[str, str]:
    """Return the values of the placeholders."""
    chosen, settings = FRAMEWORKS[framework], TEMPLATES / framework / SETTINGS
    if not settings.exists():
        settings = TEMPLATES / "project" / SETTINGS
    return {
        "name": re.sub(r"[^\w .-]", "", name) or "agent",
        "title": chosen.title,
        "model": chosen.model,
        "server_wheel": wheels[SERVER],
        "client_wheel": wheels[CLIENT],
        "extras": ",".join(["all", *filter(None, [chosen.extra])]),
        "packages": "".join(f"{package}\n" for package in chosen.packages),
        "second_install": second_install(chosen),
        "settings": settings.read_text(encoding="utf-8").rstrip(),
    }
