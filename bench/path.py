"""The Python calls that one paced text delta passes from the agent's ``yield`` to the transport's write.

    python -m bench.path                     a second

The application serves a run over a loopback socket in this process, with its own HTTP protocol, and ``sys.setprofile``
records the calls. Only functions of ``agui_container`` and of uvicorn count. The goal is at most ``MAX_CALLS`` calls
in ``MAX_FILES`` files. No test depends on it.
"""

import asyncio
import contextlib
import socket
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from types import CodeType, FrameType

import uvicorn
import uvloop

import agui_container
from agui_container.main import build_app
from agui_container.server.run import uvicorn_config
from agui_container.server.uvicorn_protocols import HttpProtocol
from agui_container.settings import Settings
from bench import script
from bench.client import DELTA, END, post, run_body
from bench.options import MeasureError

MAX_CALLS, MAX_FILES = 19, 9
DELTAS, PAUSE = 20, 0.02
SETTLED = 5
"""Items after which a stream is in its steady state: its beginning and the first deltas take other ways."""

COUNTED = {Path(module.__file__ or "").parent: module.__name__ for module in (agui_container, uvicorn)}

DESCRIPTORS = 1_024
"""Files that the measured server may have open."""


class CallRecorder:
    """Records the calls between each item of the agent and the write that carries it.

    Attributes:
        paths: the calls of each item, in order, as ``file:function``.
    """

    def __init__(self) -> None:
        self.paths: list[tuple[str, ...]] = []
        self._calls: list[str] | None = None

    def profile(self, frame: FrameType, event: str, value: object) -> None:
        """Handle one event of ``sys.setprofile``."""
        if event == "return" and frame.f_code is script.agent.__code__:
            if type(value).__name__ == "async_generator_wrapped_value":  # it yields, and does not await
                self._calls = []
        elif self._calls is None:
            return
        elif event == "call":
            self._calls += names_of(frame.f_code)
        elif event == "return" and frame.f_code is HttpProtocol.write_chunk.__code__:
            self.paths.append(tuple(self._calls))
            self._calls = None


def names_of(code: CodeType) -> Sequence[str]:
    """``file:function``, or nothing for code that does not count."""
    path = Path(code.co_filename)
    for folder, package in COUNTED.items():
        if path.is_relative_to(folder):
            return (f"{package}/{path.relative_to(folder)}:{code.co_qualname}",)
    return ()


@contextlib.asynccontextmanager
async def serving() -> AsyncIterator[int]:
    """Serve the agent of ``bench.script`` in this process, and yield the port.

    Raises:
        MeasureError: the server does not start.
    """
    settings = Settings(agent="bench.script:agent", host="127.0.0.1", port=0)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn_config(build_app(settings), settings, DESCRIPTORS))
        task = asyncio.create_task(server.serve([listener]), name="serve")
        while not server.started:
            if task.done():
                raise MeasureError("the server does not start")
            await asyncio.sleep(0.01)
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            await task


async def serve_and_read(recorder: CallRecorder) -> None:
    """Serve one run with paced deltas, and read it to its end.

    Raises:
        MeasureError: the server does not start, or a delta is missing from the answer.
    """
    async with serving() as port:
        sys.setprofile(recorder.profile)
        try:
            answer = await read(port)
        finally:
            sys.setprofile(None)
    if answer.count(DELTA) != DELTAS:
        raise MeasureError("the answer lacks deltas")


async def read(port: int) -> bytes:
    """Ask for a run and return the whole response."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(post(run_body(f"paced {DELTAS} {PAUSE}")))
    answer = await reader.readuntil(END)
    writer.close()
    return answer


def report(path: Sequence[str]) -> str:
    """The calls in order, then their number and that of their files."""
    files = {name.partition(":")[0] for name in path}
    total = f"{len(path)} calls in {len(files)} files (goal: {MAX_CALLS} in {MAX_FILES})"
    return "\n".join([*(f"{number:>3} {name}" for number, name in enumerate(path, 1)), total, ""])


def main() -> None:
    """Record and print the path that most deltas take."""
    recorder = CallRecorder()
    uvloop.run(serve_and_read(recorder))
    settled = recorder.paths[SETTLED:]
    if not settled:
        raise MeasureError("no delta was written to its connection")
    [(path, _)] = Counter(settled).most_common(1)
    sys.stdout.write(report(path))


if __name__ == "__main__":
    main()
