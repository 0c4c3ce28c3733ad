"""Parts of messages that a model cannot take: a note for the model, a warning, and a report for the client."""

import logging

from ag_ui.core import ContentPart, TextPart

from agui_container.ports import MediaDroppedDelta
from agui_container.runtime.log_values import format_fields

logger = logging.getLogger(__name__)

NOT_INLINE = "only inline data is used, nothing is fetched"
NOT_BASE64 = "not base64"
"""Reasons that every model has."""


class DroppedMedia:
    """Dropped parts of one request.

    Attributes:
        reports: a report of each dropped part, in order.
    """

    def __init__(self) -> None:
        self.reports: list[MediaDroppedDelta] = []

    def drop(self, message_id: str, index: int, part: ContentPart, reason: str) -> str:
        """Record that part number ``index`` of a message is dropped. Return the note for the model."""
        source = "" if isinstance(part, TextPart) else part.source.type
        logger.warning(
            "content part dropped %s", format_fields({"part": part.type, "source": source, "reason": reason})
        )
        self.reports.append(MediaDroppedDelta(message_id, index, part.type, reason))
        return f"[{part.type} left out: this model cannot be given it]"
