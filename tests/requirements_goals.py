"""Requirements for goals and budgets of runs; a part of the manifest."""

_GOALS = "docs/goals.md"
_BUDGETS = "docs/goals.md"

GOALS = {
    "goal.achieved": (_GOALS, "A goal is achieved by data that fits its schema, given to the goal's own tool."),
    "goal.told": (_GOALS, "The model is told of the goals, and has a tool with the schema of each."),
    "goal.prompted": (_GOALS, "A model that stops too early is asked again, and goes on."),
    "goal.failed": (_GOALS, "A goal that is not achieved within the prompts fails; the run ends as a success."),
    "goal.wrong": (_GOALS, "Data that does not fit is an error to the model, which can try again."),
    "goal.several": (_GOALS, "Several goals may be achieved in one turn, each by its own call."),
    "goal.once": (_GOALS, "The data of the first call counts; a second call is refused."),
    "goal.alone": (_GOALS, "Without messages the goals are what is asked."),
    "goal.none": (_GOALS, "Without goals nothing is told, and no model is asked again."),
    "goal.invalid": (
        f"{_GOALS}; docs/http-api.md#errors",
        "A goal with a bad field is a VALIDATION_ERROR that names it.",
    ),
    "goal.names": (_GOALS, "A goal whose tool has the name of another tool is refused."),
    "goal.limit": (f"{_GOALS}; {_BUDGETS}", "A run that is ended by a limit fails its goals first."),
    "goal.model-fails": (_GOALS, "A run that fails fails its goals, and those that were achieved stay so."),
    "goal.cancelled": (_GOALS, "A run that is cancelled ends at once; its goals are not asked for again."),
    "goal.client-tool": (_GOALS, "Goals stay open while a client's call is open, and the next run goes on with them."),
    "goal.approval": (_GOALS, "Goals stay open while somebody must approve, and the run that answers has them."),
    "goal.policy": (_GOALS, "The policy holds for the goals' tools as for any tool."),
    "goal.again": (_GOALS, "Goals that are declared again in the same turn stand where they stood; others are new."),
    "goal.dropped": (_GOALS, "An empty list lets go of the goals that were open."),
    "goal.refused": (_GOALS, "A run that is refused leaves the goals as they were."),
    "goal.restart": (_GOALS, "The goals of a turn that goes on survive the process."),
    "goal.subagents": (_GOALS, "Subagents have no goals."),
    "goal.capabilities": (_GOALS, "The capabilities say how many goals a turn may have."),
}

BUDGETS = {
    "goal.foreign": ("docs/goals.md", "Custom events that another agent sends under the names of goals do no harm."),
    "budget.tokens": (
        _BUDGETS,
        "An assistant that has used its tokens makes no further model call: RUN_LIMIT_EXCEEDED.",
    ),
    "budget.answer": (_BUDGETS, "An answer that is there is not taken back, whatever it cost."),
    "budget.subagents": (_BUDGETS, "The tokens of subagents count, and end subagent and run."),
    "budget.asked": (_BUDGETS, "forwardedProps.budget asks for fewer steps and tokens, never for more."),
    "budget.seconds": (_BUDGETS, "A run ends after its caller's or its operator's seconds, the fewer."),
    "budget.invalid": (_BUDGETS, "A budget with a bad field is a VALIDATION_ERROR that names it."),
    "budget.silent": (_BUDGETS, "A model that reports no usage is held by steps and seconds only; the log says so."),
    "budget.own-agent": (_BUDGETS, "An own agent is ended at its next event once the tokens it reports are too many."),
    "budget.capabilities": (_BUDGETS, "The capabilities say how many tokens a run may use."),
}
