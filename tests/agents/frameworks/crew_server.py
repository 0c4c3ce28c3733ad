"""The server of examples/two_processes with a memory that stores nothing. It runs in crewAI's own environment.

A flow makes a memory in LanceDB, whose packages are larger than all others of crewAI, and the example never uses it.
"""

from crewai.memory.storage.factory import set_memory_storage_factory

set_memory_storage_factory(lambda _: object())

from examples.two_processes.crew_server import app  # noqa: E402 - it makes the flow

__all__ = ["app"]
