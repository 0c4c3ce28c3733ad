"""The model that a caller chooses for one run: ``forwardedProps.model``.

Rule: only models that the operator allows (``AGUI_MODELS``) can be chosen.
"""

from collections.abc import Mapping

from pydantic import StrictStr, TypeAdapter

from app.core.errors import AppError, Code, clipped
from app.core.forwarded import forwarded
from app.ports import Model

_NAME = TypeAdapter(StrictStr)


def chosen_model(props: object, models: Mapping[str, Model], default: Model) -> Model:
    """The model of a run. Raises ``AppError`` VALIDATION_ERROR for a model that is not allowed."""
    name = forwarded(props, "model", _NAME)
    if not name:
        return default
    if name not in models:
        allowed = f"allowed are {', '.join(models)}" if models else "this server allows no choice"
        raise AppError(
            Code.VALIDATION_ERROR, clipped(f"forwardedProps.model: '{name[:64]}' cannot be chosen; {allowed}.")
        )
    return models[name]
