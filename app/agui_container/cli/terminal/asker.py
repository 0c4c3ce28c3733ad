"""Questions to the person at the terminal: the next message, an answer, one key.

Rules:

- The end of the input is ``EOFError``, and Ctrl-C is ``KeyboardInterrupt``.
- A key that was typed before a question was there answers no question. Otherwise it could allow a call that the person
  has not seen. It waits for the next message.
"""

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import Completer
from prompt_toolkit.history import History
from prompt_toolkit.input.typeahead import clear_typeahead, store_typeahead
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.keys import Keys

from agui_container.cli.failure import without_controls


class Asker:
    """Asks with completion, and with a history of messages."""

    def __init__(self, history: History | None = None, completer: Completer | None = None) -> None:
        bindings = KeyBindings()
        bindings.add("escape", "enter")(lambda event: event.current_buffer.insert_text("\n"))
        self._messages: PromptSession[str] = PromptSession(
            history=history, completer=completer, complete_while_typing=True, key_bindings=bindings
        )
        self._input = self._messages.input

    async def message(self) -> str:
        """Return the next message or slash command. Alt-Enter begins a new line."""
        return await self._messages.prompt_async("> ")

    async def line(self, question: str, text: str = "") -> str:
        """Return the answer to a question, which begins as ``text`` and is kept in no history."""
        answers: PromptSession[str] = PromptSession()
        return await answers.prompt_async(f"{without_controls(question)} ", default=text)

    async def key(self, question: str, keys: Mapping[str, str]) -> str:
        """Return the first of the keys that is pressed. ``keys`` says what each one means."""
        bindings = KeyBindings()
        for key in keys:
            bindings.add(key)(lambda event: event.app.exit(result=event.data))
        bindings.add("<any>")(lambda _: None)
        legend = "  ".join(f"[{key}] {meaning}" for key, meaning in keys.items())
        answers: PromptSession[str] = PromptSession()
        return await answers.prompt_async(f"{question} {legend} ", key_bindings=bindings)

    @contextmanager
    def typing_ahead(self) -> Iterator[None]:
        """Keep typed keys, unseen, for the next message. Ctrl-C is the signal."""
        with self._input.raw_mode(), self._input.attach(self._keep_keys):
            yield

    def _keep_keys(self) -> None:
        keys = self._input.read_keys()
        store_typeahead(self._input, [key for key in keys if key.key is not Keys.ControlC])
        if any(key.key is Keys.ControlC for key in keys):
            signal.raise_signal(signal.SIGINT)

    def discard_typed_keys(self) -> None:
        """Forget keys that were typed before a question was there."""
        self._input.read_keys()
        clear_typeahead(self._input)
