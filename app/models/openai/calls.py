"""Tool calls in fragments, put in order: which piece belongs to which call.

OpenAI sends an index with every piece, and id and name with the first. Others send whole calls, leave the index out,
give all calls index 0, repeat the name with every piece, or send the arguments as an object. The rules, in order: a
known index or id is that call; a piece with a name opens a new call if the call before it is told apart by its id or
name, or is already complete; anything else goes on with the call before it.
"""

import json
from collections.abc import Mapping, Sequence

from msgspec import Struct, field
from pydantic_core import from_json

from app.core.errors import Code
from app.models.openai.failures import ModelFailure
from app.models.openai.names import Names
from app.ports import ToolCallDelta

Piece = Mapping[str, object]


class _Call(Struct):
    index: int
    id: str | None = None
    name: str | None = None
    arguments: list[str] = field(default_factory=list)
    announced: bool = False


class Calls:
    """The calls of one model call."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._by_id: dict[str, _Call] = {}

    def __bool__(self) -> bool:
        return bool(self._calls)

    def feed(self, pieces: Sequence[Piece]) -> list[ToolCallDelta]:
        """What the pieces of one chunk add."""
        return [delta for piece in pieces for delta in self._piece(piece)]

    def finish(self) -> None:
        """Check that every call has a name.

        Raises:
            ModelFailure: one has none, so nobody can run it.
        """
        if not all(call.announced for call in self._calls):
            raise ModelFailure(Code.MODEL_ERROR, "The model sent a tool call without a name.")

    def _piece(self, piece: Piece) -> Sequence[ToolCallDelta]:
        function = piece.get("function")
        said = function if isinstance(function, dict) else {}
        name, arguments = _text(said.get("name")), _arguments(said.get("arguments"))
        call = self._call(piece, name, arguments)
        call.id, call.name = call.id or _text(piece.get("id")), call.name or name
        if call.id:
            self._by_id[call.id] = call
        if arguments:
            call.arguments.append(arguments)
        return self._delta(call, arguments)

    def _delta(self, call: _Call, arguments: str) -> Sequence[ToolCallDelta]:
        if call.announced:
            return (ToolCallDelta(call.index, arguments),) if arguments else ()
        if call.name is None:
            return ()  # held back until the name is known
        call.announced = True
        return (ToolCallDelta(call.index, "".join(call.arguments), self._names.original(call.name)),)

    def _call(self, piece: Piece, name: str | None, arguments: str) -> _Call:
        """The call that a piece belongs to, which may be a new one."""
        index, id_ = piece.get("index"), _text(piece.get("id"))
        if type(index) is not int:
            known = self._by_id.get(id_ or "") or (self._calls[-1] if self._calls else None)
            return self._opened() if known is None or _opens(known, id_, name, arguments) else known
        slot = self._by_index.get(index)
        if slot is None or _opens(slot, id_, name, arguments):
            slot = self._by_index[index] = self._opened()
        return slot

    def _opened(self) -> _Call:
        call = _Call(len(self._calls))
        self._calls.append(call)
        return call


def _opens(call: _Call, id_: str | None, name: str | None, arguments: str) -> bool:
    """Whether a piece that could go on with ``call`` is the first of another one."""
    if name is None or call.name is None:
        return False
    if id_ and id_ == call.id:
        return False
    if name != call.name:
        return True
    if not call.arguments:
        return bool(id_ and call.id)
    begins = arguments.lstrip().startswith("{") or (not arguments and bool(id_ and call.id))
    return begins and _is_complete("".join(call.arguments))


def _is_complete(arguments: str) -> bool:
    try:
        from_json(arguments)
    except ValueError:
        return False
    return True


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _arguments(value: object) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)
