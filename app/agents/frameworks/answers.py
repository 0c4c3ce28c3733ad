"""Answers to interrupts, before a framework sees them.

Rule: an answer to what nobody asked is left out with a warning, and never given to something else that waits. Source:
AG-UI spec 1.1, basic/patterns/interrupt-resume.
"""

from collections.abc import Collection, Sequence

from ag_ui.core import ResumeEntry

from app.agents.resume import warn_of_unknown
from app.core.errors import AppError, Code
from app.ports import RunContext


def named(entries: Sequence[ResumeEntry], waiting: Collection[str], ctx: RunContext) -> list[ResumeEntry]:
    """The entries that name an interrupt that waits.

    Raises:
        AppError: VALIDATION_ERROR for two answers to one interrupt.
    """
    warn_of_unknown(waiting, entries, ctx)
    found: dict[str, ResumeEntry] = {}
    for at, entry in enumerate(entries):
        if entry.interrupt_id in found:
            raise AppError(Code.VALIDATION_ERROR, f"resume.{at}.interruptId: this interrupt is answered twice.")
        if entry.interrupt_id in waiting:
            found[entry.interrupt_id] = entry
    return list(found.values())
