"""Consent that a tool asks a person for, by a link: the call is repeated when the person says so."""

import pytest

from agui_container import Settings, ask_for_consent, tool
from agui_container.testing import open_thread

HAS_CONSENT: list[bool] = []
URL = "https://login.example/authorize"


@tool
def drive() -> str:
    """Read the person's drive."""
    if not HAS_CONSENT:
        ask_for_consent(URL)
    return "two files"


@pytest.fixture(autouse=True)
def no_consent() -> None:
    HAS_CONSENT.clear()


async def test_the_call_is_repeated_until_the_person_has_consented() -> None:
    async with open_thread(settings=Settings(tools="tests.agents.test_consent:drive")) as thread:
        await thread.send("call drive {}")
        (first,) = thread.interrupts
        assert (first.reason, first.metadata) == ("oauth_consent", {"url": URL})
        assert first.tool_call_id
        await thread.answer({})
        (second,) = thread.interrupts
        assert second.id != first.id
        HAS_CONSENT.append(True)
        await thread.answer({})
        assert "two files" in thread.text


async def test_a_person_may_decline() -> None:
    async with open_thread(settings=Settings(tools="tests.agents.test_consent:drive")) as thread:
        await thread.send("call drive {}")
        await thread.decline()
        assert not thread.interrupts
        assert "the user did not want this call" in thread.text
