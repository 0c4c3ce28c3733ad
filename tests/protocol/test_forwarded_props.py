"""Fields of ``forwardedProps`` are read by their names, and numbers of usage only where they make sense."""

from typing import Annotated

import pytest
from ag_ui.core import TokenUsage
from pydantic import BaseModel, Field, TypeAdapter

from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocol.parser import read_forwarded_prop
from agui_container.protocol.token_usage import count_tokens
from tests.protocol.samples import without_validation


class Tea(BaseModel):
    cups: Annotated[int, Field(ge=1)]


TEAS = TypeAdapter(list[Tea])


@pytest.mark.parametrize(
    ("teas", "message"),
    [
        (2, "forwardedProps.teas: Input should be a valid list."),
        ([{"cups": 2}, 2], "forwardedProps.teas.1: Input should be an object."),
        ([{"cups": 0}], "forwardedProps.teas.0.cups: Input should be greater than or equal to 1."),
    ],
)
def test_wrong_props_are_refused_by_name(teas: object, message: str) -> None:
    with pytest.raises(AppError) as refused:
        read_forwarded_prop({"teas": teas}, "teas", TEAS)
    assert (refused.value.code, refused.value.message) == (ErrorCode.VALIDATION_ERROR, message)


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
