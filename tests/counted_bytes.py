"""Bytes that an identity has in flight, as they are counted from a moment on."""

import pytest

from agui_container.engine.admission.quota import IdentityQuota, Limit


def record_used_bytes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the bytes that are used after each change from now on. The list begins with 0."""
    used, change = [0], IdentityQuota.change

    def note(quota: IdentityQuota, name: Limit, more: int) -> None:
        change(quota, name, more)
        if name is Limit.BYTES_IN_FLIGHT:
            used.append(quota.amounts(name)[0].used)

    monkeypatch.setattr(IdentityQuota, "change", note)
    return used
