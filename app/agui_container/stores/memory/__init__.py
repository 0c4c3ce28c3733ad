"""The store in the memory of one process, within limits."""

from agui_container.stores.memory.store import MemoryStore

__all__ = ["MemoryStore"]
