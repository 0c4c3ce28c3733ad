"""The official AG-UI client judges this server."""

import pytest

pytest.register_assert_rewrite("tests.official.conversations")
