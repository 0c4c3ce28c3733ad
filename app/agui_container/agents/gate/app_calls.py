"""The gate for the tool calls of MCP Apps, which a page passes on without a model and without a turn.

Rules:
- The policy and the caller's demands count as for other calls.
- A question about a call is kept with the thread, apart from those of its turns. An answer counts for the call that was
  asked about, and once: it claims the call before the call runs.
"""

import json
from collections.abc import Mapping
from typing import Final

from ag_ui.core import RunAgentInput
from msgspec import Struct
from msgspec.structs import replace

from agui_container.agents.gate.approval import approval_interrupt, match_answers, with_demands
from agui_container.agents.gate.calls import CallNote, ModelToolCall, failed_result, parse_arguments
from agui_container.agents.gate.journal import Journal
from agui_container.conversation.stored_parts import CUT_OFF
from agui_container.ports import CallRules, Permission, Policy, RunContext, RunInterrupted, ToolError

PART: Final = "apps"
"""The part of a thread in whose journal the questions are."""


class AppGate(Struct, frozen=True):
    policy: Policy
    journal: Journal

    async def allowed_arguments(
        self, tool: str, arguments: Mapping[str, object], run_input: RunAgentInput, ctx: RunContext
    ) -> Mapping[str, object]:
        """Return the arguments with which a call may be made.

        Raises:
            ToolError: the policy or a person denies the call, or its answer was used before.
            RunInterrupted: a person must allow it first.
            AppError: VALIDATION_ERROR for an invalid answer, STORE_UNAVAILABLE.
        """
        rules = with_demands(CallRules((self.policy,)), run_input.forwarded_props)
        decision = rules.decide(tool)
        if decision.permission is Permission.DENY:
            raise ToolError(f"this tool is not allowed{f': {decision.reason}' if decision.reason else '.'}")
        if decision.permission is Permission.ALLOW and not rules.asks_always:
            return arguments
        call = ModelToolCall(ctx.new_id(), tool, json.dumps(arguments))
        journal = await self.journal.open(run_input, replace(ctx, thread_id=PART, part_of=ctx.thread_id))
        asked = [note for note in journal.calls if note.is_made_by(call, 1)]
        answered = match_answers(asked, run_input.resume or (), journal.time_after(0))
        if not answered:
            question = approval_interrupt(call, decision, ctx.new_id(), journal.time_after(1), {})
            question = question.model_copy(update={"tool_call_id": None})
            if not await journal.reopen(CallNote(call, number=1, interrupts=[question])):
                raise ToolError("a person must allow this call, and this server does not know the thread to ask in.")
            raise RunInterrupted([question])
        note, rejection = answered[0].note.decided(answered[0].answer), answered[0].rejection(is_edited_away=False)
        if not await journal.claim(note.with_result(failed_result(CUT_OFF))):
            raise ToolError("the answer about this call was used before.")
        if rejection is not None:
            raise ToolError(rejection.removeprefix("Error: "))
        return parse_arguments(note.call.arguments)
