"""Helpers of asyncio and threads that know no protocol."""
