"""Results of commands as JSON."""

import threading
from collections.abc import Mapping

import pytest
from pydantic_core import from_json, to_json

from agui_container.engine.admission.offload import LARGE_BYTES
from agui_container.transports import commands
from agui_container.transports.commands import encode_result

RESULT: dict[str, object] = {
    "threadId": "é",
    "messages": [{"id": "m", "content": "hi"}, {"id": "n"}],
    "runs": {},
}


@pytest.mark.parametrize(("size", "is_on_loop"), [(LARGE_BYTES, True), (LARGE_BYTES + 1, False)])
async def test_a_large_result_is_encoded_off_the_event_loop(
    monkeypatch: pytest.MonkeyPatch, size: int, *, is_on_loop: bool
) -> None:
    threads, encode = set[int](), commands.encode_items

    def record(result: Mapping[str, object]) -> bytes:
        threads.add(threading.get_ident())
        return encode(result)

    monkeypatch.setattr(commands, "encode_items", record)
    encoded = await encode_result(RESULT, "first", size)
    assert encoded == to_json(RESULT)
    assert from_json(encoded) == RESULT
    assert bool(threads) is not is_on_loop
    assert threading.get_ident() not in threads
