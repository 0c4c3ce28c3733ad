"""Project context: files such as AGENTS.md that tell the assistant where it works.

Rule: read once, at the start, which any fault stops with one sentence. The model is told the name of a file, and never
where it is.

The system text: what the operator, the skills and the application tell the model, in sections.

Rule: what changes least comes first, so that a provider's cache of the prompt holds for as long as it can: the prompt,
the project context and the list of skills (the same for all runs), the skill that the caller asks for (of one run), and
last the context that the application sends along. The operator's words stand before everybody else's.
"""

from collections.abc import Sequence
from pathlib import Path

from ag_ui.core import Context
from msgspec import Struct

MAX_BYTES = 100_000
"""Of one file: every model call pays for it."""


class ContextFileError(ValueError):
    """A context file cannot be used. The text is for the operator, at the start."""


class ContextFile(Struct, frozen=True):
    """A file's name and text."""

    name: str
    text: str


def read_text(path: Path) -> str:
    """A file as text without blanks around it, a byte order mark or not.

    Raises:
        ValueError: it cannot be read, is too large, is not UTF-8 or is empty; the text says which.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise ValueError(f"'{path}' has more than {MAX_BYTES} bytes.")
        text = data.decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        raise ValueError(f"'{path}' is not UTF-8 text.") from None
    except OSError as error:
        raise ValueError(f"'{path}' cannot be read: {error.strerror}.") from None
    if not text:
        raise ValueError(f"'{path}' is empty.")
    return text


def read_context_files(paths: Sequence[str]) -> tuple[ContextFile, ...]:
    """The files, in order; paths are relative to the working directory.

    Raises:
        ContextFileError: naming the path.
    """
    try:
        return tuple(ContextFile(Path(path).name, read_text(Path(path))) for path in paths)
    except ValueError as error:
        raise ContextFileError(str(error)) from None


def system_text(*sections: str) -> str:
    """The sections that there are."""
    return "\n\n".join(section for section in sections if section)


def project_context(files: Sequence[ContextFile]) -> str:
    """What the project's files say."""
    entries = [f"### {file.name}\n{file.text}" for file in files]
    return "\n\n".join(["## Project context", *entries]) if entries else ""


def application_context(context: Sequence[Context]) -> str:
    """Every context entry that the application sent along."""
    entries = [f"### {entry.description}\n{entry.value}" for entry in context]
    return "\n\n".join(["## Context from the application", *entries]) if entries else ""
