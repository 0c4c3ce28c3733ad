"""An assistant with a tool that needs an approval."""

import pytest

from tests.agents.approval_helpers import ApprovalFixture


@pytest.fixture
def fixture() -> ApprovalFixture:
    return ApprovalFixture()
