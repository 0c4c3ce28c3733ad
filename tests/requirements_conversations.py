"""The manifest's rows about threads and feedback."""

_THREADS = "docs/threads.md; docs/http-api.md#routes"
_FEEDBACK = "docs/threads.md; docs/http-api.md#routes"

THREADS = {
    "thread.commands": (
        _THREADS,
        "Every operation on threads is a command on every transport.",
    ),
    "thread.routes": (_THREADS, "Every command of threads is a route as well, with the same answer."),
    "thread.ids": (_THREADS, "An id may hold any character; percent-encoded it has one address of its own."),
    "thread.own": (_THREADS, "A thread of another scope is not found, whatever is asked of it."),
    "thread.unknown": (_THREADS, "A thread or message that is not there is THREAD_NOT_FOUND."),
    "thread.invalid": (_THREADS, "A bad field is a VALIDATION_ERROR that names it."),
    "thread.unavailable": (_THREADS, "A store that does not answer is STORE_UNAVAILABLE."),
    "thread.search": (_THREADS, "A search finds the threads whose title or messages have a text, page by page."),
    "thread.list": (_THREADS, "Threads are listed page by page, the one that changed last first."),
    "thread.get": (_THREADS, "A thread comes with its messages in AG-UI form, its state, its goals and its feedback."),
    "thread.waiting": (_THREADS, "A thread says what in it waits for an answer, and no longer once that is there."),
    "thread.answers": (_THREADS, "A thread keeps what its questions were answered with, also in a fork."),
    "thread.notices": (_THREADS, "A thread keeps what its runs have told the user, also in a fork."),
    "thread.message-runs": (_THREADS, "A thread says which run has made each message that a client has not sent."),
    "thread.pages": (_THREADS, "A long thread is read page by page, from its last messages to its first."),
    "thread.brief": (_THREADS, "A thread can be had without its messages; what else is known of it stays."),
    "thread.rename": (_THREADS, "A thread can be given a title, and it can be taken away."),
    "thread.delete": (_THREADS, "A thread that is deleted is gone with all that belongs to it."),
    "thread.delete-active": (_THREADS, "Deleting a thread cancels what runs on it."),
    "thread.runs": (_THREADS, "A run leaves a thread with its messages, its state and a title."),
    "thread.merge": ("docs/threads.md", "Messages are merged by id: what is new, an edit, or the whole conversation."),
    "thread.new-ids": (
        "docs/threads.md",
        "A conversation that is sent again under new ids is recognised by its content, on every store.",
    ),
    "thread.title": (_THREADS, "A title is made of how the first user began."),
    "thread.transcript": (_THREADS, "A thread can be had as text."),
    "thread.status": (_THREADS, "A thread says whose turn it is."),
    "thread.fork": (_THREADS, "A fork has the history up to a message; what becomes of one does not touch the other."),
    "thread.fork-busy": (_THREADS, "A message that is still being written cannot be forked: THREAD_BUSY."),
    "thread.delta": (_THREADS, "The deltas of a thread, merged, equal the thread."),
    "thread.large": (_THREADS, "An answer that no event can hold is refused, clearly."),
    "thread.cors": (
        "docs/configuration.md; docs/http-api.md#routes",
        "A configured page may use every method that the routes have.",
    ),
}

FEEDBACK = {
    "feedback.given": (_FEEDBACK, "A user may rate what an assistant has said, and sees it with the thread."),
    "feedback.replaced": (_FEEDBACK, "Feedback on the same message replaces the first, whose time stays."),
    "feedback.categories": (_FEEDBACK, "Categories fit the sentiment, and 'other' needs notes."),
    "feedback.assistant": (_FEEDBACK, "Messages of users and tools cannot be rated."),
    "feedback.triage": (_FEEDBACK, "Operators triage feedback on the command line."),
    "feedback.hidden": (_FEEDBACK, "The triage of feedback reaches no user."),
}
