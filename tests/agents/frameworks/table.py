"""Frameworks of the table of cases: their agents, and the cases that an agent lacks. docs/frameworks.md says why."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.ports import free_port
from tests.server.sockets.process import ROOT, program_on


def python_of(framework: str) -> str | Path:
    """Return the interpreter of a framework's own environment: the Makefile. Two share that of the tests."""
    shared = framework in {"langgraph", "pydantic_ai"}
    return sys.executable if shared else ROOT / ".venv" / "frameworks" / framework / "bin" / "python"


@dataclass(frozen=True)
class Row:
    """One framework. ``agents`` are names in its module in this folder, with the cases that each lacks.

    ``unrepaired`` are names of agents whose events are the framework's, or those of its own translation. ``app`` is an
    AG-UI server, where a framework's packages do not fit beside ours: its process has the framework's environment.
    """

    name: str
    agents: Mapping[str, Sequence[str]]
    unrepaired: Sequence[str] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    app: str = ""

    @property
    def python(self) -> str | Path:
        return sys.executable if self.app else python_of(self.name)

    def references(self, url: str) -> str:
        if self.app:
            return ",".join(f"{name}={url}" for name in (*self.agents, "example"))
        module = f"tests.agents.frameworks.{self.name}_agents"
        own = [f"{name}={module}:{name}" for name in (*self.agents, *self.unrepaired)]
        return ",".join([*own, f"example=examples.{self.name}_agent:agent"])


@contextmanager
def upstream(row: Row, variables: Mapping[str, str]) -> Iterator[str]:
    """Serve the row's own AG-UI server in the framework's environment. Gives the URL of its agent."""
    port = free_port()
    command = (python_of(row.name), "-m", "uvicorn", row.app, "--port", str(port))
    url = f"http://127.0.0.1:{port}"
    settings = {"PYTHONPATH": str(ROOT), **variables, **row.variables}
    with TemporaryDirectory() as home, program_on(url, *command, folder=ROOT, HOME=home, **settings):
        yield f"{url}/agent"


FORGETS = ("server tool", "client tool", "second turn", "edit", "policy", "approval")
SERVERS_OWN = ("policy", "usage")
"""Cases that the framework's own tests in this folder show: ``test_turns`` and ``test_langgraph``."""

# LlamaIndex brings the encodings that Langroid would download while it is imported.
PACKAGES = Path("lib", f"python{sys.version_info[0]}.{sys.version_info[1]}", "site-packages")
ENCODINGS = ROOT / ".venv/frameworks/llama_index" / PACKAGES / "llama_index/core/_static/tiktoken_cache"

# The Claude Agent SDK finds its command line in a search path.
COMMANDS = f"{ROOT / 'tests/agents/frameworks/bin'}:{Path(python_of('claude_sdk')).parent}:{os.environ['PATH']}"

ROWS = [
    Row("langgraph", {"agent": (*SERVERS_OWN, "approval")}),
    Row("pydantic_ai", {"agent": (*SERVERS_OWN, "approval"), "asking": (*SERVERS_OWN, "server tool")}),
    Row("adk", {"agent": ()}, ("bare",)),
    Row("ag2", {"agent": ()}, ("bare",)),
    Row("agno", {"agent": ("edit",), "stored": ("edit",), "team": ("edit",)}, ("bare",)),
    Row("claude_sdk", {"agent": ("edit",)}, variables={"PATH": COMMANDS}),
    Row(
        "crew",
        {"agent": ("usage",)},
        variables=dict.fromkeys(
            ("CREWAI_DISABLE_TELEMETRY", "CREWAI_DISABLE_VERSION_CHECK", "OTEL_SDK_DISABLED"), "true"
        ),
        app="tests.agents.frameworks.crew_server:app",
    ),
    Row("langchain", {"agent": ()}),
    Row(
        "langroid",
        {"agent": ("approval",), "task": ("approval",)},
        ("bare",),
        {"TIKTOKEN_CACHE_DIR": str(ENCODINGS)},
    ),
    Row("llama_index", {"agent": ("approval",), "workflow": ("approval",)}, ("bare",)),
    Row("microsoft", {"agent": ()}),
    Row("openai_agents", {"agent": (), "chat": ()}),
    Row(
        "strands",
        {
            "agent": (*SERVERS_OWN, "approval"),
            "asking": (*SERVERS_OWN, "server tool"),
            "graph": FORGETS,
            "swarm": FORGETS,
        },
        ("bare", "bare_hook", "bare_swarm", "bare_tool"),
    ),
]
