"""Large results are encoded in pieces."""

import asyncio

from pydantic_core import from_json

from agui_container.threads import LARGE_BYTES
from agui_container.web.requests import encode_result


async def test_a_large_result_is_encoded_while_other_tasks_run() -> None:
    items = [LARGE_BYTES * "x" for _ in range(5)]
    encoding = asyncio.create_task(encode_result({"messages": items}))
    turns = 0
    while not encoding.done():
        await asyncio.sleep(0)
        turns += 1
    assert turns >= len(items)
    assert from_json(encoding.result()) == {"messages": items}
