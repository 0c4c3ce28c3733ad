"""Tokens of model calls, also where an agent has put something else among them."""

import pytest
from ag_ui.core import TokenUsage

from agui_container.protocol.token_usage import count_tokens
from tests.protocol.samples import without_validation


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ([], 0),
        ([TokenUsage(input_tokens=3, output_tokens=2)], 5),
        ([TokenUsage(input_tokens=3, output_tokens=2, total_tokens=9)], 9),
        ([TokenUsage(input_tokens=3), TokenUsage(output_tokens=2)], 5),
        ([{"input_tokens": 3}, 5, None, "many", TokenUsage(input_tokens=1)], 1),
        ([without_validation(TokenUsage, input_tokens="3", output_tokens=-2, total_tokens=None)], 0),
    ],
)
def test_only_numbers_that_make_sense_count(usage: list[object], tokens: int) -> None:
    assert count_tokens(usage) == tokens
