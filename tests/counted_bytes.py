"""Bytes that a caller has in flight, as they are counted from a moment on."""

import pytest

from agui_container.transports.bytes_in_flight import CallerBytes


def record_used_bytes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the bytes that are used after each change from now on. The list begins with 0."""
    used, change = [0], CallerBytes.change

    def note(share: CallerBytes, difference: int) -> None:
        change(share, difference)
        used.append(share.used)

    monkeypatch.setattr(CallerBytes, "change", note)
    return used
