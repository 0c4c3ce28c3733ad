"""The official AG-UI client in one Node process (``tests/js/judge.mjs``) that answers questions of pytest.

Every wait is bounded, and a process that dies or falls silent fails the test that asked with what it said on stderr.
"""

import json
import os
import queue
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from ag_ui.core import BaseEvent

from agui_container.protocol.encoder import encode
from tests.sse import SseFrame, frames_of

JS = Path(__file__).parents[1] / "js"
PATIENCE = 120.0

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Judgement:
    """Reports of the client's stages on one stream.

    ``accepted`` counts the events before the first rejection, ``events`` what came out of the stages.
    """

    accepted: int
    error: str | None
    events: Sequence[Json] = ()
    printed: Sequence[str] = ()

    @property
    def clean(self) -> bool:
        return self.error is None and not self.printed


@dataclass(frozen=True, slots=True)
class Turn:
    events: Sequence[Json]
    error: str | None
    failed: str | None
    printed: Sequence[str]
    meanwhile: Json | None
    pending: Sequence[str]
    interrupts: Sequence[Json]
    wire: Json

    @property
    def types(self) -> list[str]:
        return [event["type"] for event in self.events]

    @property
    def text(self) -> str:
        return "".join(event["delta"] for event in self.events if event["type"] == "TEXT_MESSAGE_CONTENT")

    @property
    def frames(self) -> list[SseFrame]:
        return frames_of(self.wire["text"].encode())


@dataclass(frozen=True, slots=True)
class Conversation:
    turns: Sequence[Turn]
    messages: Sequence[Json]
    state: object
    interrupts: Sequence[Json]


def walk_json(events: Iterable[BaseEvent]) -> bytes:
    return b"[%b]" % b",".join(encode(event) for event in events)


class Judge:
    """The running client. A context manager; not for several threads at once."""

    def __init__(self) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self._process = subprocess.Popen(
            ["node", "--stack-trace-limit=20", "judge.mjs"],
            cwd=JS,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={**os.environ, "NODE_NO_WARNINGS": "1"},
        )
        self._answers: queue.Queue[bytes] = queue.Queue()
        self._early: dict[int, Json] = {}
        self._asked = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def kill(self) -> None:
        self._process.kill()

    def close(self) -> None:
        self.kill()
        self._process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        for stream in (self._process.stdin, self._process.stdout, self._log):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()

    def verify(
        self,
        events: Iterable[BaseEvent] | Sequence[Mapping[str, object]],
        *,
        chunks: bool = False,
        enforce: bool = False,
    ) -> Judgement:
        walk = [event for event in events if isinstance(event, BaseEvent)]
        data = walk_json(walk) if walk else json.dumps(list(events)).encode()
        options = {"chunks": chunks, "enforce": enforce, "outputs": True}
        return Judgement(**self.answer(self.ask("verify", options, b'"events":' + data)))

    def ask_many(self, walks: Iterable[bytes], *, chunks: bool = False) -> int:
        """Start judging many streams, each as ``walk_json`` made it; ``many`` fetches the verdicts."""
        options = {"chunks": chunks, "outputs": chunks}
        return self.ask("verifyMany", options, b'"walks":[%b]' % b",".join(walks))

    def many(self, ticket: int) -> list[Judgement]:
        return [Judgement(**verdict) for verdict in self.answer(ticket)]

    def run(self, url: str, turns: Sequence[Json], **agent: object) -> Conversation:
        """Drive a server with the client's ``HttpAgent``.

        Args:
            url: where to POST.
            turns: per run the parameters of ``runAgent``, and ``add`` (messages before it), ``answer`` (the result of
                every call that the last run left pending), ``decide`` (on the open interrupts, by position),
                ``partly`` (send those answers without the client's help), ``seconds`` (that have passed),
                ``abortAfter`` (events), ``meanwhile`` (``{"after": events, "body": {...}}``, posted to ``url`` by a
                second request).
            agent: fields of the agent: ``threadId``, ``initialMessages``, ``initialState``, ``headers``.
        """
        return self._conversation({"url": url, "turns": list(turns), **agent})

    def replay(self, events: Sequence[Json]) -> Conversation:
        return self._conversation({"events": list(events), "turns": [{}]})

    def _conversation(self, request: Json) -> Conversation:
        answer = self.answer(self.ask("run", request))
        turns = [Turn(**turn) for turn in answer.pop("turns")]
        return Conversation(turns=turns, **answer)

    def ask(self, op: str, options: Mapping[str, object], raw: bytes = b"") -> int:
        self._asked += 1
        head = json.dumps({"id": self._asked, "op": op, **options}, separators=(",", ":")).encode()
        line = head if not raw else b"%b,%b}" % (head[:-1], raw)
        stdin = self._process.stdin
        try:
            if stdin is None:
                raise BrokenPipeError
            stdin.write(line + b"\n")
            stdin.flush()
        except OSError as error:
            raise AssertionError(f"the judge is gone: {self._said()}") from error
        return self._asked

    def answer(self, ticket: int) -> Any:  # noqa: ANN401 - JSON of the op's own shape
        while ticket not in self._early:
            try:
                line = self._answers.get(timeout=PATIENCE)
            except queue.Empty:
                raise AssertionError(f"the judge did not answer in {PATIENCE:.0f} s: {self._said()}") from None
            if not line:
                raise AssertionError(f"the judge died: {self._said()}")
            reply = json.loads(line)
            self._early[reply["id"]] = reply
        reply = self._early.pop(ticket)
        assert "fault" not in reply, reply["fault"]
        return reply["answer"]

    def _read(self) -> None:
        for line in self._process.stdout or ():
            self._answers.put(line)
        self._answers.put(b"")

    def _said(self) -> str:
        self._log.seek(0)
        return self._log.read().decode(errors="replace")[-2000:] or "nothing on stderr"
