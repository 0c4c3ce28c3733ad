"""What those who trace are told; a part of the manifest in ``requirements``."""

TELEMETRY = {
    "trace.run": ("R30", "A run is a span that tells whose it is, how it ended and what it used."),
    "trace.calls": ("R30", "Calls of models and tools are spans below their run, in the words of the conventions."),
    "trace.subagents": ("R30", "What a subagent does is below the call that hands over."),
    "trace.ends": ("R30", "What fails is told by a code and no words; what is cancelled or waits has not failed."),
    "trace.own": ("R30", "What an agent traces itself is below its run; who only reads invokes no agent."),
    "trace.session": ("R22", "AgentCore's session is told, and goes along as baggage."),
    "trace.content": ("R30", "What is said is told only where the operator asks for it, and never as images."),
    "trace.measured": ("R30", "How long runs take, and the tokens that they use, are measured."),
    "trace.exported": ("R21", "What is recorded is sent before the process says that it is idle; nobody waits for it."),
    "trace.harmless": ("R30", "Where nobody traces nothing is done for it, and a recorder that breaks harms no run."),
    "trace.server": ("R30", "Under opentelemetry-instrument all of it is there, from the request down, without pings."),
    "trace.logs": ("R29", "Log lines in JSON carry the ids of their trace."),
}
