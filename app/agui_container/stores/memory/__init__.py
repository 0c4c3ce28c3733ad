"""The store in the memory of one process.

Rule: no method awaits anything, so each call is atomic on the event loop. The amount of data is bounded.
"""

from agui_container.stores.memory.store import MemoryStore

__all__ = ["MemoryStore"]
