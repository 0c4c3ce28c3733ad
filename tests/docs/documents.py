"""The documents, and the marks after the language of a fenced block.

A block of Python, JavaScript or shell is run as it stands. The marks say otherwise:

- ``file=NAME``: the reader saves it under that name; the servers of the same document find it.
- ``serves``: starts a server. The blocks behind it, up to the next such block, may be a ``says`` (lines of a
  conversation, a question behind ``>`` and its answer below) or marked ``there``: they are run against that server.
- ``issuer``: starts a token issuer that the servers of the same document ask.
- ``raises``, beside ``serves``: the log of that server is meant to show an exception.
- ``output``: what the block before it prints; ``…`` stands for anything.
- ``listens``: a program that is a server itself, which ``test_embedding.py`` runs.
- ``needs-…``, ``not-here``: not run here, and why. ``test_first_steps.py`` runs ``needs-install``.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from tests.docs.markdown import Block, Document

ROOT = Path(__file__).parents[2]
NAMES = (
    *("approvals", "client-tools", "comparison", "configuration", "deploy", "development", "http-api", "websocket"),
    *("agents", "benchmarks", "clients", "context", "frameworks", "goals", "grpc", "memory", "models", "observability"),
    *("add-a-protocol", "chat-page", "embedding", "install", "limits", "platform", "python", "security", "start"),
    *(
        "agentcore",
        "alarms",
        "cognito",
        "cost",
        "custom-events",
        "evidence",
        "glossary",
        "rollout",
        "scale",
        "troubleshooting",
    ),
    *("vpc", "websocket-binding", "why-not"),
    *("operations", "performance", "protobuf", "roboto", "state", "subagents", "terminal", "threads", "tools"),
    *("typescript", "from-agentcore-sdk", "reliability"),
)
README = Document.read(ROOT / "README.md", ROOT)
ARCHITECTURE = Document.read(ROOT / "docs" / "architecture.md", ROOT)
GUIDES = {name: Document.read(ROOT / "docs" / f"{name}.md", ROOT) for name in NAMES}
DECISIONS = [Document.read(path, ROOT) for path in sorted((ROOT / "docs" / "decisions").glob("*.md"))]
SECURITY = Document.read(ROOT / "SECURITY.md", ROOT)
NOTES = Document.read(ROOT / "bench" / "NOTES.md", ROOT)
CHANGELOG = Document.read(ROOT / "CHANGELOG.md", ROOT)
PYTHON_CLIENT = Document.read(ROOT / "clients" / "python" / "README.md", ROOT)
DOCUMENTS = [README, PYTHON_CLIENT, SECURITY, *GUIDES.values(), ARCHITECTURE, *DECISIONS, NOTES, CHANGELOG]
BLOCKS = [block for document in DOCUMENTS for block in document.blocks]

NPM, INSTALL = "needs-npm", "needs-install"
NOT_RUN = {
    "needs-aws": "needs an AWS account",
    "needs-kubernetes": "needs a cluster; tests/deploy/test_elsewhere.py reads its files",
    "needs-docker": "needs a Docker engine with buildx",
    "needs-openai": "needs an OpenAI-compatible server",
    NPM: "needs packages of npm; tests/front_ends/test_guides.py runs it, or the tests of clients/typescript do",
    "needs-grpcurl": "needs grpcurl; buf asks for the same, with the same stack of Go",
    "needs-browser": "needs a page",
    "needs-platform": "needs `agui platform`; tests/platform/test_guide.py runs it",
    "needs-platform-without-signatures": "needs `agui platform --auth none`; tests/platform/test_guide.py runs it",
    "needs-strands": "needs the environment of Strands; tests/frameworks serves its example from there",
    INSTALL: "needs the wheels and an environment of its own; tests/docs/test_first_steps.py runs it",
    "not-here": "installs packages, takes long, or needs a terminal or a server that these tests do not have",
    "listens": "listens until it is stopped; tests/docs/test_embedding.py runs it",
}
SERVES, ISSUER, RAISES, SAYS, THERE, OUTPUT, TREE = "serves", "issuer", "raises", "says", "there", "output", "tree"
MARKS = {*NOT_RUN, SERVES, ISSUER, RAISES, SAYS, THERE, OUTPUT, TREE}


@dataclass(frozen=True, slots=True)
class DocumentedServer:
    """A server that a document starts, and the blocks that use it."""

    start: Block
    acts: tuple[Block, ...]

    def __str__(self) -> str:
        return str(self.start)

    @property
    def needs(self) -> bool:
        """True if only the start can be tried here."""
        return bool(NOT_RUN.keys() & {*self.start.marks})


def scenes(document: Document) -> Iterator[DocumentedServer]:
    """The servers of a document."""
    blocks = document.blocks
    starts = [at for at, block in enumerate(blocks) if SERVES in block.marks]
    for at, end in pairwise([*starts, len(blocks)]):
        yield DocumentedServer(
            blocks[at], tuple(block for block in blocks[at + 1 : end] if {SAYS, THERE} & {*block.marks})
        )


def output_of(block: Block) -> str | None:
    """The output that the document promises: a block that follows and is marked as such."""
    following = BLOCKS[BLOCKS.index(block) + 1 :][:1]
    return next((other.text for other in following if other.marks == (OUTPUT,)), None)
