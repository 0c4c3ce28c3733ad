"""Registrations of foreign protocols: what each one adds to the application, and where ``main`` finds it.

Rule: a module ``registration`` is all that the start imports of a protocol over gRPC, and the first client imports the
rest. A protocol over HTTP is imported where it is served. A protocol's options are the settings of the same names: it
reads them itself, so ``main`` has one line for each protocol.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from starlette.routing import BaseRoute

from agui_container.engine.engine import Engine
from agui_container.protocol.errors import AppError

T = TypeVar("T")

Closers = list[Callable[[], Awaitable[None]]]
"""Functions that close resources when the application ends."""

BuildServices = Callable[..., Sequence[Any]]
"""Builds the services of a protocol for an engine and the rules of its calls. ``protocols/grpc/server.py`` has the
types, which the start does not import."""


class GrpcRegistration(msgspec.Struct, frozen=True):
    """A protocol over gRPC. ``services`` are full names; ``load`` is called in a thread."""

    services: Sequence[str]
    load: Callable[[], BuildServices]


class HttpRegistration(msgspec.Struct, frozen=True):
    """A protocol over HTTP. ``error_form`` writes an error on a path below ``prefix`` as JSON."""

    prefix: str
    capabilities: Mapping[str, object]
    routes: Callable[[Engine, Closers], Sequence[BaseRoute]]
    error_form: Callable[[AppError], bytes]


def read_options(settings: object, options: type[T]) -> T:
    """Return those settings that a protocol reads. Its fields have the names of settings."""
    return msgspec.convert(settings, options, from_attributes=True)
