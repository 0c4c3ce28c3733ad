"""What the official AG-UI client says about this server."""

import pytest

pytest.register_assert_rewrite("tests.official.conversations")
