"""The gate for the tool calls of MCP Apps, which a page passes on without a model and without a turn.

Rule: the policy and the caller's demands count as for other calls. The question about a call has an id that follows
from the call, so that the answer needs no store: a page sends the request again with ``resume``.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from functools import partial

from ag_ui.core import RunAgentInput

from agui_container.agents.gate.approval import answers_by_interrupt, approval_interrupt, read_answer, with_demands
from agui_container.agents.gate.calls import ModelToolCall
from agui_container.ports import CallRules, Permission, Policy, RunContext, RunInterrupted, ToolError

Gate = Callable[[str, Mapping[str, object], RunAgentInput, RunContext], Mapping[str, object]]


def app_gate(policy: Policy) -> Gate:
    """Return the function that lets calls of apps pass: ``allowed_arguments`` with this policy."""
    return partial(allowed_arguments, policy)


def allowed_arguments(
    policy: Policy, tool: str, arguments: Mapping[str, object], run_input: RunAgentInput, ctx: RunContext
) -> Mapping[str, object]:
    """Return the arguments with which a call may be made.

    Raises:
        ToolError: the policy or a person denies the call.
        RunInterrupted: a person must allow it first.
        AppError: VALIDATION_ERROR for an invalid answer.
    """
    rules = with_demands(CallRules((policy,)), run_input.forwarded_props)
    decision = rules.decide(tool)
    if decision.permission is Permission.DENY:
        raise ToolError(f"this tool is not allowed{f': {decision.reason}' if decision.reason else '.'}")
    if decision.permission is Permission.ALLOW and not rules.asks_always:
        return arguments
    text = json.dumps(arguments, sort_keys=True)
    digest = hashlib.sha256(json.dumps([ctx.thread_key, tool, text]).encode()).hexdigest()
    question = approval_interrupt(ModelToolCall("", tool, text), decision, f"app-{digest[:32]}", 0.0, {})
    question = question.model_copy(update={"tool_call_id": None, "expires_at": None})
    answered = answers_by_interrupt(run_input.resume or (), [question.id])
    if question.id not in answered:
        raise RunInterrupted([question])
    at, entry = answered[question.id]
    answer = read_answer(question, at, entry, None) if entry.status == "resolved" else None
    if answer is None or not answer.approved:
        reason = f": {answer.reason}" if answer and answer.reason else "."
        raise ToolError(f"the user denied this call{reason}")
    return arguments if answer.edited_args is None else answer.edited_args
