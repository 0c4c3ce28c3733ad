"""What callers ask of this server in ``forwardedProps``, the place that AG-UI leaves for what a server offers besides.

Rule: a field that is there and wrong is refused by its name; everything else in there is somebody else's.
"""

from collections.abc import Mapping
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from agui_container.protocol.errors import AppError, ErrorCode, clip_message

T = TypeVar("T")


def read_forwarded_prop(props: object, name: str, shape: TypeAdapter[T]) -> T | None:
    """What ``forwardedProps`` has under this name; None where there is nothing.

    Raises:
        AppError: VALIDATION_ERROR, naming the field.
    """
    value = props.get(name) if isinstance(props, Mapping) else None
    if value is None:
        return None
    try:
        return shape.validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(map(str, ("forwardedProps", name, *first["loc"])))
        message = "Input should be an object" if first["type"] == "model_type" else first["msg"]
        raise AppError(ErrorCode.VALIDATION_ERROR, clip_message(f"{where}: {message}.")) from None
