"""Fields of ``forwardedProps`` are read by their names, and errors name them."""

from typing import Annotated

import pytest
from pydantic import BaseModel, Field, TypeAdapter

from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocol.parser import read_forwarded_prop


class Tea(BaseModel):
    cups: Annotated[int, Field(ge=1)]


TEAS = TypeAdapter(list[Tea])


@pytest.mark.parametrize("props", [None, "teas", 5, [], {}, {"teas": None}, {"coffee": 1}])
def test_absent_props_are_none(props: object) -> None:
    assert read_forwarded_prop(props, "teas", TEAS) is None


def test_present_props_are_read() -> None:
    assert read_forwarded_prop({"teas": [{"cups": 2}], "coffee": 1}, "teas", TEAS) == [Tea(cups=2)]


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


def test_a_refusal_does_not_say_back_all_that_was_sent() -> None:
    with pytest.raises(AppError) as refused:
        read_forwarded_prop({"cups": {"x" * 1_000_000: "many"}}, "cups", TypeAdapter(dict[str, int]))
    assert len(refused.value.message) < 600
