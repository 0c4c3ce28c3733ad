"""Cost of a store: appending events in batches, and attaching to a long run.

    python -m bench.store_throughput [memory] [sqlite:///PATH] [postgresql://...]

Each line is one store. Without arguments: memory, and SQLite in a temporary file. A run is appended to by itself, so a
batch's figure is its latency too; ``together`` is 20 runs at once. ``renew`` is one heartbeat of a replica with those.
"""

import asyncio
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

from ag_ui.core import EventType

from agui_container.ports.records import Claim, RunKey
from agui_container.ports.store import Store
from agui_container.protocol.wire.envelope import Envelope
from agui_container.stores import open_store

DATA = b'{"type":"TEXT_MESSAGE_CONTENT","messageId":"0123456789abcdef","delta":"hello world, "}'
BATCHES = ((1, 500), (10, 2_000), (100, 20_000))
LONG = 100_000
TOGETHER = 20
REPLICA = "bench"


def envelopes(first: int, count: int) -> list[Envelope]:
    """Events as a model's answer has them."""
    return [Envelope("r", seq, EventType.TEXT_MESSAGE_CONTENT, DATA) for seq in range(first, first + count)]


async def claim_run(store: Store) -> RunKey:
    """Claim a new run on a thread of its own."""
    key = RunKey("bench", uuid4().hex, "r")
    await store.runs.claim(Claim(key, REPLICA, time.time(), time.time() + 60))
    return key


async def appending(store: Store, batch: int, count: int) -> float:
    """Seconds to append ``count`` events."""
    key = await claim_run(store)
    parts = [envelopes(first, batch) for first in range(1, count + 1, batch)]
    started = time.perf_counter()
    for part in parts:
        await store.runs.append(key, REPLICA, part)
    return time.perf_counter() - started


async def attaching(store: Store, key: RunKey, after: int) -> tuple[int, float]:
    """Return the number of events after ``after``, and the seconds to read them."""
    count, started = 0, time.perf_counter()
    while part := await store.runs.envelopes(key, after + count):
        count += len(part)
    return count, time.perf_counter() - started


async def measure_store(url: str) -> str:
    """Measure one store and return its line."""
    store = open_store(url)
    await store.open()
    cells = [url.partition(":")[0].ljust(12)]
    for batch, count in BATCHES:
        seconds = await appending(store, batch, count)
        cells.append(
            f"batches of {batch}: {seconds / count * 1e6:7.1f} us/event {seconds / count * batch * 1e3:6.2f} ms each"
        )
    started = time.perf_counter()
    await asyncio.gather(*(appending(store, 10, 1_000) for _ in range(TOGETHER)))
    cells.append(f"together: {(time.perf_counter() - started) / TOGETHER / 1_000 * 1e6:6.1f} us/event")
    started = time.perf_counter()
    renewed = await store.runs.renew(REPLICA, time.time() + 60)
    cells.append(f"renew {len(renewed)}: {(time.perf_counter() - started) * 1e3:.1f} ms")
    key = await claim_run(store)
    for first in range(1, LONG + 1, 1_000):
        await store.runs.append(key, REPLICA, envelopes(first, 1_000))
    for after in (0, LONG // 2, LONG - 1_000):
        count, seconds = await attaching(store, key, after)
        cells.append(f"attach {count}: {seconds * 1e3:.0f} ms, {seconds / count * 1e6:.1f} us/event")
    await store.aclose()
    return "\n    ".join(cells)


async def main(urls: Sequence[str]) -> None:
    """Measure each."""
    with TemporaryDirectory() as folder:
        for url in urls or ("memory", f"sqlite:///{Path(folder)}/store.db"):
            print(await measure_store(url), flush=True)  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
