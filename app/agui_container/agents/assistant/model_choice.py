"""The model that a caller chooses for one run: ``forwardedProps.model``.

Rule: only models that the operator allows (``AGUI_MODELS``) can be chosen.
"""

from collections.abc import Mapping

from pydantic import StrictStr, TypeAdapter

from agui_container.ports import Model
from agui_container.protocol.errors import AppError, ErrorCode, clip_message
from agui_container.protocol.forwarded_props import read_forwarded_prop

_NAME = TypeAdapter(StrictStr)


def chosen_model(props: object, models: Mapping[str, Model], default: Model) -> Model:
    """The model of a run. Raises ``AppError`` VALIDATION_ERROR for a model that is not allowed."""
    name = read_forwarded_prop(props, "model", _NAME)
    if not name:
        return default
    if name not in models:
        allowed = f"allowed are {', '.join(models)}" if models else "this server allows no choice"
        raise AppError(
            ErrorCode.VALIDATION_ERROR,
            clip_message(f"forwardedProps.model: '{name[:64]}' cannot be chosen; {allowed}."),
        )
    return models[name]
