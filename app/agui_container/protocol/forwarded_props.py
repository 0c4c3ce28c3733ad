"""Reader for this server's own fields in ``forwardedProps`` of a ``RunAgentInput``.

Rule: a field with a wrong value is refused, and the error names the field. Unknown fields are ignored, because
frameworks put their own fields there. Source: AG-UI spec 1.1, basic/run-input.
"""

from collections.abc import Mapping
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from agui_container.protocol.errors import AppError, ErrorCode, clip_message

T = TypeVar("T")


def read_forwarded_prop(props: object, name: str, shape: TypeAdapter[T]) -> T | None:
    """Return the validated field ``name`` of ``forwardedProps``, or None if it is absent or null.

    Args:
        props: ``forwardedProps`` as the client sent it, any JSON value.
        name: the field.
        shape: validator of the field's value.

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
        path = ".".join(map(str, ("forwardedProps", name, *first["loc"])))
        message = "Input should be an object" if first["type"] == "model_type" else first["msg"]
        raise AppError(ErrorCode.VALIDATION_ERROR, clip_message(f"{path}: {message}.")) from None
