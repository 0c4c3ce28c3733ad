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
README = Document.read(ROOT / "README.md", ROOT)
GUIDES = {path.stem: Document.read(path, ROOT) for path in sorted((ROOT / "docs").glob("*.md"))}
DECISIONS = [Document.read(path, ROOT) for path in sorted((ROOT / "docs" / "decisions").glob("*.md"))]
OTHERS = [Document.read(ROOT / name, ROOT) for name in ("SECURITY.md", "CHANGELOG.md", "clients/typescript/README.md")]
PYTHON_CLIENT = Document.read(ROOT / "clients" / "python" / "README.md", ROOT)
DOCUMENTS = [README, PYTHON_CLIENT, *GUIDES.values()]
LINKED = [*DOCUMENTS, *DECISIONS, *OTHERS]
BLOCKS = [block for document in DOCUMENTS for block in document.blocks]

NPM, INSTALL = "needs-npm", "needs-install"
NOT_RUN = {
    "needs-aws": "needs an AWS account",
    "needs-kubernetes": "needs a cluster; tests/aws/deploy/test_elsewhere.py reads its files",
    "needs-docker": "needs a Docker engine with buildx",
    "needs-openai": "needs an OpenAI-compatible server",
    NPM: "needs packages of npm; tests/front_ends/test_guides.py runs it, or the tests of clients/typescript do",
    "needs-grpcurl": "needs grpcurl; buf asks for the same, with the same stack of Go",
    "needs-browser": "needs a page",
    "needs-platform": "needs `agui platform`; tests/aws/platform/test_guide.py runs it",
    "needs-platform-without-signatures": "needs `agui platform --auth none`; tests/aws/platform/test_guide.py runs it",
    "needs-framework": "needs an environment of the framework; tests/agents/frameworks serves each example from there",
    INSTALL: "needs the wheels and an environment of its own; tests/docs/test_first_steps.py runs it",
    "not-here": "installs packages, takes long, or needs a terminal or a server that these tests do not have",
    "listens": "listens until it is stopped; tests/docs/test_embedding.py runs it",
}
SERVES, ISSUER, RAISES, SAYS, THERE, OUTPUT = "serves", "issuer", "raises", "says", "there", "output"
MARKS = {*NOT_RUN, SERVES, ISSUER, RAISES, SAYS, THERE, OUTPUT}


@dataclass(frozen=True, slots=True)
class DocumentedServer:
    start: Block
    acts: tuple[Block, ...]

    def __str__(self) -> str:
        return str(self.start)

    @property
    def needs(self) -> bool:
        return bool(NOT_RUN.keys() & {*self.start.marks})


def scenes(document: Document) -> Iterator[DocumentedServer]:
    blocks = document.blocks
    starts = [at for at, block in enumerate(blocks) if SERVES in block.marks]
    for at, end in pairwise([*starts, len(blocks)]):
        yield DocumentedServer(
            blocks[at], tuple(block for block in blocks[at + 1 : end] if {SAYS, THERE} & {*block.marks})
        )


def output_of(block: Block) -> str | None:
    following = BLOCKS[BLOCKS.index(block) + 1 :][:1]
    return next((other.text for other in following if other.marks == (OUTPUT,)), None)
