"""Files of this server as inline data, for models, frameworks and other servers, which read bytes and no handles.

Rule: the thread keeps the handles. Only what is passed on has the bytes, which are read once for a run. A file that is
gone stays a handle, which the model's client reports as a part that it cannot use.
"""

import base64
from collections.abc import Sequence
from typing import TypeVar

from ag_ui.core import ContentPart, DataSource, Message, MessagesSnapshotEvent, TextPart

from agui_container.ports import RunContext
from agui_container.ports.files import handle_of

T = TypeVar("T")


class FileData:
    def __init__(self, ctx: RunContext) -> None:
        self._ctx = ctx
        self._sources: dict[str, DataSource | None] = {}
        self._originals: dict[str, Message] = {}

    async def inline(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return the messages with the bytes of their files. Raises ``AppError`` STORE_UNAVAILABLE."""
        return [await self._message(message) for message in messages]

    def with_handles(self, event: T) -> T:
        """Return the event, a snapshot with the handles of the messages that ``inline`` has changed."""
        if not isinstance(event, MessagesSnapshotEvent):
            return event
        messages = [self._originals.get(message.id, message) for message in event.messages]
        return event.model_copy(update={"messages": messages})

    async def _message(self, message: Message) -> Message:
        content = message.content
        if not isinstance(content, list) or not any(map(handle_of, content)):
            return message
        self._originals[message.id] = message
        return message.model_copy(update={"content": [await self._part(part) for part in content]})

    async def _part(self, part: ContentPart) -> ContentPart:
        handle = handle_of(part)
        if handle is None or isinstance(part, TextPart):
            return part
        if handle not in self._sources:
            file = await self._ctx.file(handle)
            data = base64.b64encode(file.data).decode() if file else ""
            self._sources[handle] = DataSource(value=data, mime_type=file.mime_type) if file else None
        source = self._sources[handle]
        return part if source is None else part.model_copy(update={"source": source})
