"""A click in an A2UI surface, which a page sends in ``forwardedProps.a2uiAction``, as messages for the agent.

Source: ``@ag-ui/a2ui-middleware`` 0.0.10, whose call and text these are.
"""

import json
from collections.abc import Mapping, Sequence

from ag_ui.core import AssistantMessage, FunctionCall, Message, ToolCall, ToolMessage

TOOL = "log_a2ui_event"
RESULT = "a2ui-result-"
"""Beginning of the ids of the results that this server writes."""


def action_messages(messages: Sequence[Message], props: object, run_id: str) -> Sequence[Message]:
    """Return a call of the assistant and its result for a click, nothing without one.

    The ids follow from the run, so that a retry of the run has the same messages. The middleware leaves the click in
    the input, so its messages may be there already. Those of an earlier click stay what they are.
    """
    click = props.get("a2uiAction") if isinstance(props, Mapping) else None
    action = click.get("userAction") if isinstance(click, Mapping) else None
    if not isinstance(action, Mapping) or ends_with_click(messages, run_id, describe(action)):
        return ()
    function = FunctionCall(name=TOOL, arguments=json.dumps(action, ensure_ascii=False))
    call = ToolCall(id=f"a2ui-call-{run_id}", function=function)
    return (
        AssistantMessage(id=f"a2ui-{run_id}", content="", tool_calls=[call]),
        ToolMessage(id=f"{RESULT}{run_id}", tool_call_id=call.id, content=describe(action)),
    )


def ends_with_click(messages: Sequence[Message], run_id: str, text: str) -> bool:
    match messages[-2:]:
        case [AssistantMessage(tool_calls=calls), ToolMessage(id=id_, content=content)]:
            is_click = any(call.function.name == TOOL for call in calls or ())
            return is_click and (id_ == f"{RESULT}{run_id}" or (not id_.startswith(RESULT) and content == text))
    return False


def describe(action: Mapping[str, object]) -> str:
    name, surface = action.get("name", "unknown_action"), action.get("surfaceId", "unknown_surface")
    component = f" (component: {action['sourceComponentId']})" if action.get("sourceComponentId") else ""
    context = json.dumps(action.get("context") or {}, ensure_ascii=False)
    return f'User performed action "{name}" on surface "{surface}"{component}. Context: {context}'
