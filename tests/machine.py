"""Programs that the machine of the tests may lack, because ``make install`` cannot always install them."""

import os
import shutil

import pytest


def find_program(*names: str) -> str:
    """Return the path of the first program that is found. Skip the test without one, and fail it where ``CI=true``."""
    for name in names:
        path = shutil.which(name)
        if path is not None:
            return path
    reason = f"{names[0]} is not installed"
    if os.environ.get("CI") == "true":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)
