"""The extra ``cli``: what a command says if a package of it is missing."""

from collections.abc import Iterator
from contextlib import contextmanager

import click

EXTRA = ("agui_client", "prompt_toolkit", "rich", "watchfiles")
"""Packages of the extra ``cli``."""


@contextmanager
def needs_extra(command: str) -> Iterator[None]:
    """Import modules that need the extra. Raises ``ClickException``, with what to install, if a package is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRA:
            raise
        message = f"agui {command} needs the package {package}. Install it with: pip install 'agui-container[cli]'"
        raise click.ClickException(message) from None
