"""The drawing of a turn: what each frame writes, and what the terminal shows after it."""

import asyncio
from io import StringIO

import pyte
import pytest
from ag_ui import core as ag
from rich.console import Console

from agui_container.cli.terminal.screen import Screen

COLUMNS, ROWS = 80, 40
DELTAS = 20_000
PARAGRAPHS = 8
WAIT_SECONDS = 120.0


class RecordingTerminal(StringIO):
    def __init__(self, columns: int = COLUMNS) -> None:
        super().__init__()
        self.screen = pyte.Screen(columns, ROWS)
        self.screen.set_mode(pyte.modes.LNM)
        self.frames: list[tuple[str, str]] = []
        self._stream = pyte.Stream(self.screen)
        self._written = asyncio.Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        """Show text, and keep it. Rich writes empty texts, too."""
        written = super().write(text)
        if not text:
            return written
        self._stream.feed(text)
        self.frames.append((text, "\n".join(line.rstrip() for line in self.screen.display)))
        self._written.set()
        return written

    async def wait_for(self, text: str) -> None:
        async with asyncio.timeout(WAIT_SECONDS):
            while not self.frames or text not in self.frames[-1][1]:
                self._written.clear()
                await self._written.wait()


def console_of(terminal: StringIO) -> Console:
    return Console(file=terminal, force_terminal=True, width=COLUMNS, height=ROWS)


async def test_text_that_is_on_the_screen_never_vanishes_and_is_never_doubled() -> None:
    terminal = RecordingTerminal()
    async with Screen(console_of(terminal)).turn() as show:
        show(ag.TextMessageStartEvent(message_id="m", role="assistant"))
        for number in range(PARAGRAPHS):
            show(ag.TextMessageContentEvent(message_id="m", delta=f"Paragraph {number} begins"))
            await terminal.wait_for(f"Paragraph {number} begins")
            show(ag.TextMessageContentEvent(message_id="m", delta=" and ends.\n\n"))
            await terminal.wait_for(f"Paragraph {number} begins and ends.")
        show(ag.TextMessageEndEvent(message_id="m"))
    begun = 0
    for written, shown in terminal.frames:
        counts = [shown.count(f"Paragraph {number} ") for number in range(PARAGRAPHS)]
        assert counts == [1] * sum(counts) + [0] * (PARAGRAPHS - sum(counts))
        assert sum(counts) >= begun
        begun = sum(counts)
        assert len(written) < 3 * COLUMNS
    final = "".join(written for written, shown in terminal.frames if f"Paragraph {PARAGRAPHS - 1}" in shown)
    assert "Paragraph 0" not in final


async def test_a_huge_result_shows_its_begin_and_how_much_is_left_out_and_that_it_has_an_app() -> None:
    terminal = RecordingTerminal()
    async with Screen(console_of(terminal)).turn() as show:
        show(ag.ToolCallStartEvent(tool_call_id="c", tool_call_name="read"))
        show(ag.ToolCallEndEvent(tool_call_id="c"))
        show(ag.ToolCallResultEvent(message_id="r", tool_call_id="c", content="y" * 1_000_000))
        show(ag.ActivitySnapshotEvent(message_id="a", activity_type="mcp-apps", content={"serverId": "shop"}))
    for words in ("… 999,000 more characters", "There is an app of shop."):
        assert words in terminal.frames[-1][1]
    assert len(terminal.getvalue()) < COLUMNS * ROWS


async def test_a_turn_without_events_and_a_call_without_a_result_show_a_spinner(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("agui_container.cli.terminal.screen.SPINNER", "◐")
    terminal = RecordingTerminal()
    async with Screen(console_of(terminal)).turn() as show:
        await terminal.wait_for("◐")
        show(ag.ToolCallStartEvent(tool_call_id="c", tool_call_name="read"))
        await terminal.wait_for("◐ read")
        show(ag.ToolCallResultEvent(message_id="r", tool_call_id="c", content="text"))
    assert "✓ read" in terminal.frames[-1][1]
    assert "◐" not in terminal.frames[-1][1]


async def test_a_delta_draws_nothing_by_itself() -> None:
    output = StringIO()
    async with Screen(console_of(output)).turn() as show:
        show(ag.TextMessageStartEvent(message_id="m", role="assistant"))
        before = output.tell()
        for number in range(DELTAS):
            show(ag.TextMessageContentEvent(message_id="m", delta=f"{number} "))
        assert output.tell() == before
    assert f" {DELTAS - 1}" in output.getvalue()
