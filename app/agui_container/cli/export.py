"""A conversation as a text or a file."""

import json
from pathlib import Path

from agui_client.rendering import markdown
from agui_client.session_state import SessionState


def as_json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def as_markdown(session: SessionState) -> str:
    heading = f"# {session.title}\n\n" if session.title else ""
    return f"{heading}{markdown(session.messages)}"


def export(session: SessionState, path: Path) -> None:
    """Write a conversation: as JSON if the name ends with .json, otherwise as Markdown. Raises ``OSError``."""
    messages = [it.model_dump(mode="json", by_alias=True, exclude_none=True) for it in session.messages]
    fields = {"threadId": session.thread_id, "title": session.title, "messages": messages, "state": session.state}
    text = as_json(fields) if path.suffix == ".json" else as_markdown(session)
    path.write_text(f"{text}\n", encoding="utf-8")
