"""The system text: what the operator, the skills and the application tell the model, in sections.

Rule: what changes least comes first, so that a provider's cache of the prompt holds for as long as it can: the prompt,
the project context and the list of skills (the same for all runs), the skill that the caller asks for (of one run), and
last the context that the application sends along. The operator's words stand before everybody else's.
"""

from collections.abc import Sequence

from ag_ui.core import Context

from app.agents.guidance.project import ContextFile


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
