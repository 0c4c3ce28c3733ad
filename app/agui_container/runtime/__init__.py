"""Building blocks for asyncio and threads, independent of the protocol."""
