"""Buffer of the frames of a gRPC connection, in which a call waits for its turn before anything is made of it.

One read can begin a hundred calls, and a caller can have hundreds of connections. A connection is not read while one of
its calls waits, so the calls that wait are never more than the connections.
"""

from collections.abc import Callable

from h2.frame_buffer import FrameBuffer
from hyperframe.frame import Frame, HeadersFrame

from agui_container.engine.run.fairness import RequestTurns


class CallBuffer(FrameBuffer):
    """Frames of one connection. Iteration ends before the first call that must wait.

    Args:
        turns: turns of all requests.
        account: the caller, named by its network address.
    """

    def __init__(self, turns: RequestTurns, account: str) -> None:
        super().__init__(server=True)
        self._turns = turns
        self._account = account
        self._waiting: Frame | None = None

    def __next__(self) -> Frame:
        if (frame := self._waiting) is not None:
            self._waiting = None
            return frame
        frame = super().__next__()
        if isinstance(frame, HeadersFrame) and not self._turns.take():
            self._waiting = frame
            raise StopIteration
        return frame

    @property
    def has_waiting_call(self) -> bool:
        """True if a call waits."""
        return self._waiting is not None

    @property
    def incomplete_bytes(self) -> int:
        """Bytes of the frame and of the headers that have not arrived in full. 0 while a call waits."""
        headers = sum(len(frame.data) for frame in self._headers_buffer)
        return 0 if self.has_waiting_call else len(self._data) + headers

    def wait(self, resume: Callable[[], None]) -> None:
        """Call ``resume``, which iterates the frames again, in the turn of the call that waits."""
        self._turns.reserve(self._account).add_done_callback(lambda _: resume())
