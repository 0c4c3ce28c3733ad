"""The checks of the official client's verifier, told apart by its error texts (rules reference, 1a)."""

import re

RULES: tuple[tuple[str, str], ...] = (
    ("V1", "First event must be 'RUN_STARTED'"),
    ("V2", "Cannot send 'RUN_STARTED' while a run is still active"),
    ("V3", "The run has already errored"),
    ("V4", "The run has already finished with 'RUN_FINISHED'"),
    ("V5", r"Cannot send '\w+' with 'subagentRunId: null'"),
    ("V10", "'TEXT_MESSAGE_START' event: A text message with ID '.*' is already in progress"),
    ("V11", "'TEXT_MESSAGE_CONTENT' event: No active text message"),
    ("V12", "'TEXT_MESSAGE_END' event: No active text message"),
    ("V13", "'TOOL_CALL_START' event: A tool call with ID '.*' is already in progress"),
    ("V14", "does not match its parent message"),
    ("V15", "tool call '.*' is owned by '.*' but its parent message"),
    ("V16 ARGS", "'TOOL_CALL_ARGS' event: No active tool call"),
    ("V16 END", "'TOOL_CALL_END' event: No active tool call"),
    ("V17", "Step .* is already active"),
    ("V18", "A step must be finished by whoever started it"),
    ("V19", "for step .* that was not started"),
    ("V20 span", "A reasoning span with ID '.*' is already in progress"),
    ("V20 message", "A reasoning message with ID '.*' is already in progress"),
    ("V21 span", "No active reasoning span"),
    ("V21 content", "'REASONING_MESSAGE_CONTENT' event: No active reasoning message"),
    ("V21 end", "'REASONING_MESSAGE_END' event: No active reasoning message"),
    ("V22 message", "does not match the message '.*' opener's"),
    ("V22 call", "does not match the tool call '.*' opener's"),
    ("V22 reasoning", "does not match the reasoning message '.*' opener's"),
    ("V22 activity", "does not match the activity '.*' opener's"),
    ("V25", "subagent '.*' is already active"),
    ("V26", "has already finished in this run"),
    ("V27", "has not been started in this run"),
    ("V28", "no active subagent found"),
    ("V29 steps", "'RUN_FINISHED' while steps"),
    ("V29 messages", "'RUN_FINISHED' while text messages"),
    ("V29 reasoning", "'RUN_FINISHED' while reasoning messages"),
    ("V29 spans", "'RUN_FINISHED' while reasoning spans"),
    ("V29 calls", "'RUN_FINISHED' while tool calls"),
    ("V29 subagents", "'RUN_FINISHED' while subagents"),
)

CHUNK_RULES: tuple[tuple[str, str], ...] = (
    ("K text id", "First TEXT_MESSAGE_CHUNK must have a messageId"),
    ("K call id", "First TOOL_CALL_CHUNK must have a toolCallId"),
    ("K call name", "First TOOL_CALL_CHUNK must have a toolCallName"),
    ("K reasoning id", "First REASONING_MESSAGE_CHUNK must have a messageId"),
    ("K role", "chunk role '.*' does not match"),
    ("K name", "chunk name '.*' does not match"),
    ("K call name changes", "chunk toolCallName '.*' does not match"),
    ("K parent", "chunk parentMessageId '.*' does not match"),
    ("K owner", "chunk subagentRunId '.*' does not match"),
    ("K ambiguous", "Ambiguous"),
)


def rule(error: str) -> str:
    return next((name for name, pattern in (*RULES, *CHUNK_RULES) if re.search(pattern, error)), error)
