"""Questions to the person at the terminal: the next message, an answer, one key."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Protocol

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import Completer
from prompt_toolkit.history import FileHistory
from prompt_toolkit.input.typeahead import clear_typeahead
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from agui_container.cli.control_characters import without_controls
from agui_container.cli.signals import ended_by_ctrl_c
from agui_container.cli.terminal.input_lines import InputLines
from agui_container.cli.terminal.keyboard import discard_typed_keys


class Asker(Protocol):
    """Asks the person. The end of the input is ``EOFError``, and Ctrl-C is ``KeyboardInterrupt``."""

    async def message(self) -> str:
        """Return the next message or slash command."""
        ...

    async def line(self, question: str) -> str:
        """Return the answer to a question."""
        ...

    async def key(self, question: str, keys: Mapping[str, str]) -> str:
        """Return one of the keys. ``keys`` says what each one means."""
        ...

    def discard_typed_keys(self) -> None:
        """Forget keys that were typed before a question was there."""
        ...


class TerminalAsker:
    """Implements ``Asker`` with completion, and with a history of messages in a file."""

    def __init__(self, history: Path, completer: Completer) -> None:
        self._messages: PromptSession[str] = PromptSession(
            history=FileHistory(str(history)), completer=completer, complete_while_typing=True
        )

    async def message(self) -> str:
        """Return the next message or slash command. Alt-Enter begins a new line."""
        bindings = KeyBindings()

        @bindings.add("escape", "enter")
        def _(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text("\n")

        return await self._messages.prompt_async("> ", key_bindings=bindings)

    async def line(self, question: str) -> str:
        """Return the answer to a question, which is kept in no history."""
        answers: PromptSession[str] = PromptSession()
        return await answers.prompt_async(f"{question} ")

    async def key(self, question: str, keys: Mapping[str, str]) -> str:
        """Return the first of the keys that is pressed."""
        bindings = KeyBindings()
        for key in keys:
            bindings.add(key)(_exit_with(key))

        bindings.add("<any>")(lambda _: None)
        answers: PromptSession[str] = PromptSession()
        pressed: str = await answers.prompt_async(f"{question} {legend(keys)} ", key_bindings=bindings)
        return pressed

    def discard_typed_keys(self) -> None:
        """Forget keys that were typed before a question was there."""
        clear_typeahead(self._messages.input)
        discard_typed_keys()


def _exit_with(key: str) -> Callable[[KeyPressEvent], None]:
    def handle(event: KeyPressEvent) -> None:
        event.app.exit(result=key)

    return handle


class PipeAsker:
    """Implements ``Asker`` where the input is no terminal, or a dumb one: each line is one answer."""

    def __init__(self, prompts: IO[str] | None) -> None:
        self._prompts = prompts
        """The output for questions to a person at a dumb terminal. None prints none."""
        self._lines = InputLines()

    async def message(self) -> str:
        """Return the next line."""
        return await self._read("> ")

    async def line(self, question: str) -> str:
        """Return the next line."""
        return await self._read(f"{question} ")

    async def key(self, question: str, keys: Mapping[str, str]) -> str:
        """Return the next line that begins with one of the keys."""
        while True:
            answer = (await self._read(f"{question} {legend(keys)} ")).strip().lower()
            if answer[:1] in keys:
                return answer[:1]

    def discard_typed_keys(self) -> None:
        """Forget lines that a person has typed before a question was there. Those of a pipe are its answers."""
        if self._prompts is not None:
            self._lines.clear()
            discard_typed_keys()

    async def _read(self, prompt: str) -> str:
        if self._prompts is not None:
            self._prompts.write(without_controls(prompt))
            self._prompts.flush()
        return await ended_by_ctrl_c(self._lines.next())


def legend(keys: Mapping[str, str]) -> str:
    """Return what the keys mean, as ``[y] allow  [n] deny``."""
    return "  ".join(f"[{key}] {meaning}" for key, meaning in keys.items())


def choices(values: Sequence[object]) -> str:
    """Return numbered values, from 1."""
    return "\n".join(f"  {number}. {value}" for number, value in enumerate(values, 1))
