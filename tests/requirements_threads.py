"""Requirements for data that outlives a connection and a process; a part of the manifest."""

_REPLICAS = "docs/threads.md"
_HISTORY = "docs/threads.md; spec basic/threads"

DURABLE = {
    "replica.read": (_REPLICAS, "A run of one replica is read through another: the same events, none twice."),
    "replica.watched": (_REPLICAS, "A reader through another replica counts as a reader."),
    "replica.retry": (_REPLICAS, "A retry that reaches another replica reads the run and runs nothing."),
    "replica.cancel": ("docs/threads.md", "A run is cancelled through another replica, at once and as often as asked."),
    "replica.socket": (_REPLICAS, "A socket attaches to a run of another replica."),
    "replica.thread": ("docs/threads.md", "A thread has one active run, on whatever replica."),
    "replica.enqueue": ("docs/threads.md", "A run waits in line for another replica's, though not for ever."),
    "replica.runs": ("docs/threads.md", "All live runs of all replicas are listed, and the newest of the others."),
    "replica.standing": ("docs/threads.md", "Tokens and readers of a live run are known to every replica."),
    "thread.encrypted": (
        "docs/threads.md; spec events/reasoning",
        "An encrypted value is kept with its type, and a new value never has the type of an earlier one.",
    ),
    "replica.history": ("docs/threads.md", "Stored messages of a thread are put before those that a client sends."),
    "replica.connect": ("docs/threads.md", "A run without messages shows the thread as snapshots, and runs nothing."),
    "connect.shown": (
        "docs/threads.md",
        "A run without messages shows the thread, again and again, and leaves nothing.",
    ),
    "connect.known": (
        "docs/architecture.md#guarantees-and-the-code-behind-them",
        "A run without messages and with known ids is that run.",
    ),
    "connect.first": (
        "docs/threads.md",
        "The assistant is silent without a message; custom agents may speak first.",
    ),
    "connect.waiting": ("docs/threads.md", "Open interrupts are the outcome of showing their thread."),
    "state.kept": (_HISTORY, "A run without a state, or with null, has the one that its thread keeps."),
    "state.sent": (_HISTORY, "A state that a client sends takes the place of the kept one, unless it is empty."),
    "state.empty": (_HISTORY, "An empty state is the run's alone, until the run changes it."),
    "replica.lost": (
        _REPLICAS,
        "When a process dies its runs end with RUN_ERROR for every reader, and threads are free.",
    ),
    "durable.first": (_REPLICAS, "A reader sees an event once it is stored, and not before."),
    "durable.batches": ("docs/threads.md", "Events that come together are stored together."),
    "durable.together": ("docs/threads.md", "Events of many runs are stored together; no run delays another."),
    "durable.thread": ("docs/threads.md", "A run leaves its messages, its state and a title to its thread."),
    "durable.cancel": ("docs/threads.md", "A cancel reaches a run's replica by the store where there is no bus."),
    "durable.whole": ("docs/threads.md", "A write that has begun is completed, even if its caller has left."),
    "durable.gone": ("docs/threads.md", "A store that does not answer refuses and ends runs with a code of its own."),
    "durable.cut": (_REPLICAS, "What could not be stored is shown to no reader, and every replica has the same end."),
    "replica.kill": (_REPLICAS, "After a kill at any point nothing runs twice, is stuck, or is lost that was seen."),
    "replica.deleted": (
        _REPLICAS,
        "An ended run is read from the store, on any replica, and is deleted with its thread.",
    ),
    "replica.bus": (_REPLICAS, "Without a bus runs go on, and readers elsewhere get everything from the store."),
    "durable.kill": (_REPLICAS, "Runs of a killed process end when the next one has come, and threads are free."),
    "durable.cursor": (_REPLICAS, "A run that is read in pieces over any transports is the exact run."),
    "durable.gap": (_REPLICAS, "A store that does not answer for a moment costs readers no event."),
    "durable.deleted": ("docs/operations.md", "A database file that was deleted refuses and ends runs, and is logged."),
    "durable.full": (
        "docs/threads.md",
        "A full disk refuses runs and harms nothing that is stored; with room all works.",
    ),
    "operator.runs": ("docs/threads.md", "Operators see the runs of all owners on the command line."),
    "operator.cancel": ("docs/threads.md", "Operators cancel a run, wherever it is."),
    "durable.forgets": ("docs/threads.md", "Stored runs and answers are removed when they have expired."),
    "durable.stop": (_REPLICAS, "Runs that a stop has ended are stored with their ends."),
    "durable.restart": ("docs/threads.md", "Runs and threads outlive the process."),
}
