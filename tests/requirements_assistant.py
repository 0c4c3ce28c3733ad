"""Requirements for the built-in assistant with any model and transport; a part of the manifest."""

_TOOLS = "spec events/tool-calls#frontend-tools"
_INTERRUPTS = "spec basic/patterns/interrupt-resume"

ASSISTANT = {
    "assistant.streams": ("docs/models.md#the-offline-model", "`stream N` streams N deltas, whatever carries them."),
    "assistant.thinks": ("docs/models.md#the-offline-model; spec events/reasoning", "`think` reasons, then answers."),
    "assistant.seals": (
        "spec events/reasoning",
        "An artefact of reasoning goes back with its text, unless it was altered.",
    ),
    "assistant.builtin": ("docs/models.md#the-offline-model", "The builtin tools are called, and their results said."),
    "assistant.waits": ("docs/models.md#the-offline-model", "`wait S` is silent between two deltas."),
    "assistant.helps": ("docs/models.md#the-offline-model", "Anything else is answered with what can be tried."),
    "assistant.calls": (
        "docs/models.md#the-offline-model",
        "Several calls run at once; results come in the order of the calls.",
    ),
    "assistant.arguments": (
        "docs/models.md#the-offline-model",
        "Arguments arrive as the model wrote them, whatever pieces they came in.",
    ),
    "assistant.tool-fails": (
        "docs/http-api.md#errors",
        "A failed, refused or unknown call is an answer to the model, without secrets.",
    ),
    "assistant.failure": (
        "spec basic/metadata; spec events/tool-calls",
        "A failed call is marked for clients, models and the thread, whatever its words; nothing else is.",
    ),
    "assistant.duration": ("spec basic/metadata", "A result says how long its tool ran, where one ran."),
    "assistant.delegates": (
        "docs/models.md#the-offline-model",
        "`delegate TEXT` hands TEXT to a subagent, whose word is the call's result.",
    ),
    "assistant.apart": (
        "docs/architecture.md#guarantees-and-the-code-behind-them",
        "Runs at the same time share a model and nothing else.",
    ),
    "assistant.client-tool": (_TOOLS, "A client's call ends the run pending; its result goes on."),
    "assistant.mixed-tools": (_TOOLS, "Server and client calls of one turn are each answered by their own side."),
    "assistant.own-tool-wins": (
        "docs/architecture.md#guarantees-and-the-code-behind-them",
        "A client tool cannot take the name of a server tool.",
    ),
    "assistant.strange-names": (_TOOLS, "A tool's name may be one that providers do not take."),
    "assistant.repairs": (
        "docs/architecture.md#ag-uis-rules-and-the-code-that-enforces-them",
        "Orphans, doubles and gaps of a history are repaired before a model sees it.",
    ),
    "assistant.last-result": ("docs/threads.md", "The last result of a client's call counts, call by call."),
    "assistant.own-result": ("docs/threads.md", "No client replaces the result of a server's tool."),
    "assistant.order": (
        "docs/threads.md",
        "Reasoning keeps its place among texts and calls, also for a client that does not send it back.",
    ),
    "assistant.forged-call": (
        "docs/architecture.md#guarantees-and-the-code-behind-them",
        "A call in the history runs nothing.",
    ),
    "assistant.untrusted": (
        "docs/architecture.md#ag-uis-rules-and-the-code-that-enforces-them",
        "System and developer messages of a caller are dropped unless trusted.",
    ),
    "assistant.context": ("spec run-input", "Context entries follow the system prompt."),
    "assistant.usage": ("spec events/lifecycle#token-usage", "Usage of all model calls is on every terminal event."),
    "agents.by-name": (
        "docs/agents.md#several-agents",
        "The agent that a body, a path or a kontekst client names answers. A wrong name is refused.",
    ),
    "assistant.model-choice": ("docs/configuration.md", "A model of AGUI_MODELS that a caller chooses answers."),
    "assistant.steps": ("docs/configuration.md", "A run that needs more model calls than AGUI_MAX_STEPS is ended."),
    "assistant.model-fails": (
        "docs/http-api.md#errors; docs/models.md#the-offline-model",
        "A model that fails in the middle ends the run with MODEL_ERROR.",
    ),
    "assistant.model-stalls": (
        "docs/architecture.md#guarantees-and-the-code-behind-them",
        "A run that ends lets go of a model that says nothing.",
    ),
    "assistant.tool-stalls": (
        "docs/architecture.md#guarantees-and-the-code-behind-them",
        "A run that is cancelled does not wait for its tools.",
    ),
    "assistant.retry": (
        "docs/architecture.md#guarantees-and-the-code-behind-them",
        "A retry asks no model and runs no tool again.",
    ),
    "assistant.history": ("spec run-input", "A model is told the whole conversation, unchanged."),
}

APPROVALS = {
    "approval.asks": ("docs/approvals.md", "A call that must be approved is one interrupt that says all of it."),
    "approval.approved": ("docs/approvals.md", "An approved call runs, and the model goes on."),
    "approval.same-run": (_INTERRUPTS, "An answer under the ids of the run that asked is no retry of it."),
    "approval.gone": (
        "docs/limits.md; docs/approvals.md",
        "Approvals of one caller push out its own only, and the answer to one that is gone is an error.",
    ),
    "approval.edited": ("docs/approvals.md", "Edited arguments replace the call's and are validated again."),
    "approval.denied": ("docs/approvals.md", "A denied call does not run, and the model is told why."),
    "approval.abandoned": (_INTERRUPTS, "An interrupt may be cancelled; its call does not run."),
    "approval.each": (_INTERRUPTS, "Each interrupt has its own answer."),
    "approval.partly": (
        _INTERRUPTS,
        "An interrupt without an answer is asked again, and no model is called meanwhile.",
    ),
    "approval.malformed": ("docs/approvals.md", "A payload of another form is refused; the call stays open."),
    "approval.once": (
        "docs/architecture.md#guarantees-and-the-code-behind-them",
        "An answer that is sent again runs nothing again.",
    ),
    "approval.again": (
        "docs/architecture.md#guarantees-and-the-code-behind-them",
        "An answer that comes again finds what became of its call, and so does the model.",
    ),
    "approval.twice": (_INTERRUPTS, "Two answers to one interrupt are refused, and nothing runs."),
    "assistant.nothing": (
        "docs/models.md#what-a-model-is-asked",
        "A model is called only with something to answer: text or inline media of the user, or a result.",
    ),
    "input.inline": (
        "docs/http-api.md#what-an-input-may-hold",
        "Inline data is data in every shape that carries it, and reaches agents and models as plain base64.",
    ),
    "input.schemas": (
        "docs/http-api.md#what-an-input-may-hold",
        "The parameters of a client's tool are an object schema, or the tool is refused by its name.",
    ),
    "assistant.opaque-values": (
        "docs/models.md#requests-to-these-servers",
        "The opaque value of a model's call is kept with it and sent back to that model.",
    ),
    "assistant.half-pairs": (
        "docs/http-api.md#what-an-input-may-hold",
        "Half of a surrogate pair in a message or a result becomes U+FFFD; the conversation goes on.",
    ),
    "assistant.large-integers": (
        "docs/http-api.md#what-an-input-may-hold",
        "An integer that no double holds is refused in a request, and infinite in what agents and tools send.",
    ),
    "approval.unsendable": (
        "docs/http-api.md#errors",
        "A result that cannot be sent is an error to the model; the thread goes on.",
    ),
    "approval.client-call": (_TOOLS, "A model is not asked while a client's call of the answered turn is open."),
    "approval.down": (_INTERRUPTS, "An approval is kept while its tool's server cannot be reached."),
    "approval.whose": (_INTERRUPTS, "An answer counts on its thread and from its owner only."),
    "approval.held": (
        "docs/architecture.md#guarantees-and-the-code-behind-them",
        "The call of the interrupt runs, even if the history shows another one.",
    ),
    "approval.mixed": ("docs/approvals.md", "Calls beside one that waits run, or are left to the client."),
    "approval.delegated": (
        "docs/approvals.md; spec events/subagents",
        "A subagent's call is asked for and answered, too.",
    ),
    "approval.cancelled-run": (_INTERRUPTS, "A run that is cancelled before it asks leaves nothing open."),
    "approval.invalid": (_INTERRUPTS, "A resume of no known form is a VALIDATION_ERROR before a run exists."),
    "approval.restart": (
        "docs/tools.md",
        "An interrupt that is open when the process ends is answered in the next one, once.",
    ),
    "approval.replica": ("docs/tools.md", "An interrupt of one replica is answered through another, once."),
    "approval.own": ("docs/tools.md", "An assistant of one's own keeps what waits in the server's store, too."),
    "approval.client": (_INTERRUPTS, "The official client's own checks accept every answer and the resumed run."),
    "approval.client-refuses": (
        _INTERRUPTS,
        "Answers that the official client refuses to send are refused by the server for reasons of its own.",
    ),
    "approval.client-aborts": (
        "docs/configuration.md",
        "An abort of the official client while a tool waits ends the run.",
    ),
}
