"""Types of tool arguments, and the description of a tool for a model."""

import enum
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, Field

from agui_container.ports import Tool


def parameters_of(made: Tool) -> dict[str, Any]:
    assert isinstance(made.spec.parameters, dict)
    return made.spec.parameters


class Colour(enum.Enum):
    """A colour."""

    RED = "red"
    BLUE = "blue"


class Item(BaseModel):
    """One line of an order."""

    title: str
    count: int = Field(1, ge=1, description="How many")
    parts: list["Item"] = []


@dataclass
class Point:
    x: float
    y: float = 0.0
