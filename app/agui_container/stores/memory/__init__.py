"""The store of one process that keeps nothing beyond it.

Rule: no method waits for anything, so each is one step for everybody else. What is kept is bounded.
"""

from agui_container.stores.memory.store import MemoryStore

__all__ = ["MemoryStore"]
