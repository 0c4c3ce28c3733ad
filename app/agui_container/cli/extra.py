"""Extras: what a command says if a package of one is missing."""

from collections.abc import Iterator
from contextlib import contextmanager

import click

from agui_container.imports import EXTRAS, advice_for

BROUGHT_BY = {"botocore": "boto3"}
"""Packages that come with a package of an extra."""


@contextmanager
def needs_extra(command: str) -> Iterator[None]:
    """Import modules that need an extra. Raises ``ClickException``, with what to install, if a package is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        package = BROUGHT_BY.get(package, package)
        extra = next((extra for extra, modules in EXTRAS.items() if package in modules), None)
        if extra is None:
            raise
        message = f"agui {command} needs the package {package}. {advice_for(extra)}"
        raise click.ClickException(message) from None
