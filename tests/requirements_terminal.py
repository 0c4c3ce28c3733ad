"""Requirements of the terminal; a part of the manifest."""

_CHAT = "docs/terminal.md#chat"
_INVOKE = "docs/terminal.md#scripts"
_THREADS = "docs/terminal.md#threads-runs-and-feedback"

TERMINAL = {
    "terminal.stream": (_CHAT, "An answer is printed while it arrives, each block once, at any width."),
    "terminal.flicker": (_CHAT, "Each frame is one write that clears nothing first, and final text is written once."),
    "terminal.keys": (_CHAT, "Keys that are typed meanwhile, and pasted lines, are one message and answer nothing."),
    "terminal.items": (_CHAT, "Reasoning, tool calls and subagents are shown beside the text."),
    "terminal.controls": (_CHAT, "Control characters of an agent never reach the terminal."),
    "terminal.approval": (_CHAT, "One key decides about a call, and an editor changes its arguments."),
    "terminal.form": (_CHAT, "A question with a schema is a form, whose answer is checked before it is sent."),
    "terminal.cancel": (_CHAT, "Ctrl-C cancels the run and not the program."),
    "terminal.errors": (_CHAT, "An error ends a turn and not the chat."),
    "terminal.files": (_CHAT, "A path in a message sends the file."),
    "terminal.slash": (_CHAT, "Slash commands complete, and change thread, model and view."),
    "terminal.continue": (_CHAT, "A chat continues the last thread of its server, with the history of messages."),
    "terminal.serves": (_CHAT, "An agent by its module is served while the command runs."),
    "terminal.plain": (_CHAT, "A pipe, a dumb terminal and NO_COLOR get plain text."),
    "terminal.light": (_CHAT, "A fast agent keeps less than half of a core busy."),
    "terminal.web": (
        "docs/terminal.md#the-page",
        "agui chat --web shows the page for an agent behind AgentCore, by /invocations and /ws alone.",
    ),
    "invoke.text": (_INVOKE, "Only the answer is on the standard output."),
    "invoke.events": (_INVOKE, "Events are JSON lines."),
    "invoke.status": (_INVOKE, "The exit status says how the run ended."),
    "invoke.input": (_INVOKE, "Text, state, files and thread of a run are given by options and the standard input."),
    "invoke.approve": (_INVOKE, "Approvals are given, denied or left as the option says."),
    "threads.command": (_THREADS, "Threads are listed, shown, exported, renamed and deleted in both places."),
    "operator.by-url": (_THREADS, "Runs and feedback of a server are listed, and runs cancelled, by its URL."),
}
