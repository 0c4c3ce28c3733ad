"""Notes of threads in memory, within limits.

Rule: at a limit, the thread without writes for the longest time loses its notes, and the log reports it. The module is
not part of ``stores``, because an agent without a store uses it, too.
"""

import logging
from collections.abc import Collection, Sequence

from agui_container.ports.records import ThreadKey, ThreadNote, size_of_notes
from agui_container.runtime.eviction_queue import EvictionQueue
from agui_container.runtime.log_values import format_fields

MAX_BYTES = 64_000_000
MAX_THREADS = 10_000

logger = logging.getLogger(__name__)


class MemoryNotes:
    """``NoteStore`` in memory. Any thread exists."""

    def __init__(self, max_bytes: int = MAX_BYTES, max_threads: int = MAX_THREADS) -> None:
        self._threads: dict[ThreadKey, dict[tuple[str, str], ThreadNote]] = {}
        self._eviction = EvictionQueue[ThreadKey](max_threads, max_bytes)

    async def notes(self, thread: ThreadKey, *kinds: str) -> Sequence[ThreadNote]:
        return self.read(thread, kinds)

    async def put_notes(self, thread: ThreadKey, notes: Sequence[ThreadNote]) -> bool:
        self.put(thread, notes)
        return True

    async def settle_note(self, thread: ThreadKey, note: ThreadNote) -> bool:
        stored = self._threads.get(thread, {}).get((note.kind, note.id))
        if stored is None or stored.is_settled:
            return False
        self.put(thread, [note])
        return True

    def read(self, thread: ThreadKey, kinds: Collection[str]) -> Sequence[ThreadNote]:
        return [note for note in self._threads.get(thread, {}).values() if note.kind in kinds]

    def put(self, thread: ThreadKey, notes: Sequence[ThreadNote]) -> None:
        if notes:
            found = self._threads.setdefault(thread, {})
            found.update({(note.kind, note.id): note for note in notes})
            self._eviction.put(thread, size_of_notes(found.values()))
            self._evict()

    def remove(self, thread: ThreadKey) -> None:
        self._threads.pop(thread, None)
        self._eviction.remove(thread)

    def remove_where(self, thread: ThreadKey, messages: Collection[str]) -> None:
        found = self._threads.get(thread, {})
        self._replace(thread, [note for note in found.values() if note.message_id not in messages])

    def forget(self, until: float) -> None:
        """Remove the notes that expire before a time."""
        for thread, found in list(self._threads.items()):
            self._replace(thread, [note for note in found.values() if note.until is None or note.until > until])

    def _replace(self, thread: ThreadKey, notes: Sequence[ThreadNote]) -> None:
        if not notes:
            self.remove(thread)
        elif len(notes) < len(self._threads[thread]):
            self._threads[thread] = {(note.kind, note.id): note for note in notes}
            self._eviction.resize(thread, size_of_notes(notes))

    def _evict(self) -> None:
        while self._eviction.is_full:
            oldest = next(iter(self._eviction))
            logger.warning("notes evicted from memory %s", format_fields({"thread": oldest.thread_id}))
            self.remove(oldest)
