from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GetStatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetStatusResponse(_message.Message):
    __slots__ = ("bind", "endpoint", "model_dir", "llama_server_healthy", "llama_server_running", "llama_server_pid", "uptime_seconds", "started_at_rfc3339", "data_dir")
    BIND_FIELD_NUMBER: _ClassVar[int]
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    MODEL_DIR_FIELD_NUMBER: _ClassVar[int]
    LLAMA_SERVER_HEALTHY_FIELD_NUMBER: _ClassVar[int]
    LLAMA_SERVER_RUNNING_FIELD_NUMBER: _ClassVar[int]
    LLAMA_SERVER_PID_FIELD_NUMBER: _ClassVar[int]
    UPTIME_SECONDS_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_RFC3339_FIELD_NUMBER: _ClassVar[int]
    DATA_DIR_FIELD_NUMBER: _ClassVar[int]
    bind: str
    endpoint: str
    model_dir: str
    llama_server_healthy: bool
    llama_server_running: bool
    llama_server_pid: int
    uptime_seconds: int
    started_at_rfc3339: str
    data_dir: str
    def __init__(self, bind: _Optional[str] = ..., endpoint: _Optional[str] = ..., model_dir: _Optional[str] = ..., llama_server_healthy: _Optional[bool] = ..., llama_server_running: _Optional[bool] = ..., llama_server_pid: _Optional[int] = ..., uptime_seconds: _Optional[int] = ..., started_at_rfc3339: _Optional[str] = ..., data_dir: _Optional[str] = ...) -> None: ...

class ShutdownRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ShutdownResponse(_message.Message):
    __slots__ = ("message",)
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    message: str
    def __init__(self, message: _Optional[str] = ...) -> None: ...

class RunCommand(_message.Message):
    __slots__ = ("start", "approve_tool", "deny_tool", "cancel")
    START_FIELD_NUMBER: _ClassVar[int]
    APPROVE_TOOL_FIELD_NUMBER: _ClassVar[int]
    DENY_TOOL_FIELD_NUMBER: _ClassVar[int]
    CANCEL_FIELD_NUMBER: _ClassVar[int]
    start: StartRunCommand
    approve_tool: ApproveToolCommand
    deny_tool: DenyToolCommand
    cancel: CancelRunCommand
    def __init__(self, start: _Optional[_Union[StartRunCommand, _Mapping]] = ..., approve_tool: _Optional[_Union[ApproveToolCommand, _Mapping]] = ..., deny_tool: _Optional[_Union[DenyToolCommand, _Mapping]] = ..., cancel: _Optional[_Union[CancelRunCommand, _Mapping]] = ...) -> None: ...

class StartRunCommand(_message.Message):
    __slots__ = ("prompt", "session_id", "agent_name", "working_dir", "skill")
    PROMPT_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_NAME_FIELD_NUMBER: _ClassVar[int]
    WORKING_DIR_FIELD_NUMBER: _ClassVar[int]
    SKILL_FIELD_NUMBER: _ClassVar[int]
    prompt: str
    session_id: str
    agent_name: str
    working_dir: str
    skill: SkillInvocation
    def __init__(self, prompt: _Optional[str] = ..., session_id: _Optional[str] = ..., agent_name: _Optional[str] = ..., working_dir: _Optional[str] = ..., skill: _Optional[_Union[SkillInvocation, _Mapping]] = ...) -> None: ...

class SkillInvocation(_message.Message):
    __slots__ = ("name", "arguments")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    name: str
    arguments: str
    def __init__(self, name: _Optional[str] = ..., arguments: _Optional[str] = ...) -> None: ...

class ApproveToolCommand(_message.Message):
    __slots__ = ("call_id",)
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    def __init__(self, call_id: _Optional[str] = ...) -> None: ...

class DenyToolCommand(_message.Message):
    __slots__ = ("call_id", "reason")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    reason: str
    def __init__(self, call_id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class CancelRunCommand(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RunEvent(_message.Message):
    __slots__ = ("started", "token", "reasoning", "turn_completed", "tools_proposed", "tool_started", "tool_completed", "tool_failed", "tools_completed", "completed", "cancelled", "failed", "context_snapshot")
    STARTED_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    REASONING_FIELD_NUMBER: _ClassVar[int]
    TURN_COMPLETED_FIELD_NUMBER: _ClassVar[int]
    TOOLS_PROPOSED_FIELD_NUMBER: _ClassVar[int]
    TOOL_STARTED_FIELD_NUMBER: _ClassVar[int]
    TOOL_COMPLETED_FIELD_NUMBER: _ClassVar[int]
    TOOL_FAILED_FIELD_NUMBER: _ClassVar[int]
    TOOLS_COMPLETED_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_FIELD_NUMBER: _ClassVar[int]
    CANCELLED_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    started: RunStartedEvent
    token: TokenDeltaEvent
    reasoning: ReasoningDeltaEvent
    turn_completed: TurnCompletedEvent
    tools_proposed: ToolsProposedEvent
    tool_started: ToolExecutionStartedEvent
    tool_completed: ToolExecutionCompletedEvent
    tool_failed: ToolExecutionFailedEvent
    tools_completed: ToolsCompletedEvent
    completed: RunCompletedEvent
    cancelled: RunCancelledEvent
    failed: RunFailedEvent
    context_snapshot: ContextSnapshotEvent
    def __init__(self, started: _Optional[_Union[RunStartedEvent, _Mapping]] = ..., token: _Optional[_Union[TokenDeltaEvent, _Mapping]] = ..., reasoning: _Optional[_Union[ReasoningDeltaEvent, _Mapping]] = ..., turn_completed: _Optional[_Union[TurnCompletedEvent, _Mapping]] = ..., tools_proposed: _Optional[_Union[ToolsProposedEvent, _Mapping]] = ..., tool_started: _Optional[_Union[ToolExecutionStartedEvent, _Mapping]] = ..., tool_completed: _Optional[_Union[ToolExecutionCompletedEvent, _Mapping]] = ..., tool_failed: _Optional[_Union[ToolExecutionFailedEvent, _Mapping]] = ..., tools_completed: _Optional[_Union[ToolsCompletedEvent, _Mapping]] = ..., completed: _Optional[_Union[RunCompletedEvent, _Mapping]] = ..., cancelled: _Optional[_Union[RunCancelledEvent, _Mapping]] = ..., failed: _Optional[_Union[RunFailedEvent, _Mapping]] = ..., context_snapshot: _Optional[_Union[ContextSnapshotEvent, _Mapping]] = ...) -> None: ...

class RunStartedEvent(_message.Message):
    __slots__ = ("run_id", "session_id", "agent_name")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_NAME_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    session_id: str
    agent_name: str
    def __init__(self, run_id: _Optional[str] = ..., session_id: _Optional[str] = ..., agent_name: _Optional[str] = ...) -> None: ...

class TokenDeltaEvent(_message.Message):
    __slots__ = ("text",)
    TEXT_FIELD_NUMBER: _ClassVar[int]
    text: str
    def __init__(self, text: _Optional[str] = ...) -> None: ...

class ReasoningDeltaEvent(_message.Message):
    __slots__ = ("text",)
    TEXT_FIELD_NUMBER: _ClassVar[int]
    text: str
    def __init__(self, text: _Optional[str] = ...) -> None: ...

class TurnCompletedEvent(_message.Message):
    __slots__ = ("content", "reasoning", "context")
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    REASONING_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    content: str
    reasoning: str
    context: ContextSnapshot
    def __init__(self, content: _Optional[str] = ..., reasoning: _Optional[str] = ..., context: _Optional[_Union[ContextSnapshot, _Mapping]] = ...) -> None: ...

class ToolsProposedEvent(_message.Message):
    __slots__ = ("calls",)
    CALLS_FIELD_NUMBER: _ClassVar[int]
    calls: _containers.RepeatedCompositeFieldContainer[ProposedToolCall]
    def __init__(self, calls: _Optional[_Iterable[_Union[ProposedToolCall, _Mapping]]] = ...) -> None: ...

class ProposedToolCall(_message.Message):
    __slots__ = ("call_id", "name", "arguments_json", "preview")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    PREVIEW_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    name: str
    arguments_json: str
    preview: str
    def __init__(self, call_id: _Optional[str] = ..., name: _Optional[str] = ..., arguments_json: _Optional[str] = ..., preview: _Optional[str] = ...) -> None: ...

class ToolExecutionStartedEvent(_message.Message):
    __slots__ = ("call_id",)
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    def __init__(self, call_id: _Optional[str] = ...) -> None: ...

class ToolExecutionCompletedEvent(_message.Message):
    __slots__ = ("call_id", "output")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    output: str
    def __init__(self, call_id: _Optional[str] = ..., output: _Optional[str] = ...) -> None: ...

class ToolExecutionFailedEvent(_message.Message):
    __slots__ = ("call_id", "error")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    error: str
    def __init__(self, call_id: _Optional[str] = ..., error: _Optional[str] = ...) -> None: ...

class ToolsCompletedEvent(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RunCompletedEvent(_message.Message):
    __slots__ = ("run_id", "content", "reasoning")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    REASONING_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    content: str
    reasoning: str
    def __init__(self, run_id: _Optional[str] = ..., content: _Optional[str] = ..., reasoning: _Optional[str] = ...) -> None: ...

class RunCancelledEvent(_message.Message):
    __slots__ = ("run_id",)
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    def __init__(self, run_id: _Optional[str] = ...) -> None: ...

class RunFailedEvent(_message.Message):
    __slots__ = ("run_id", "error")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    error: str
    def __init__(self, run_id: _Optional[str] = ..., error: _Optional[str] = ...) -> None: ...

class ContextSnapshot(_message.Message):
    __slots__ = ("context_size", "system_tokens", "history_tokens", "memory_tokens", "total_tokens", "remaining_tokens", "history_messages", "memory_messages", "total_messages", "history_budget", "messages", "tool_tokens")
    CONTEXT_SIZE_FIELD_NUMBER: _ClassVar[int]
    SYSTEM_TOKENS_FIELD_NUMBER: _ClassVar[int]
    HISTORY_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_TOKENS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_TOKENS_FIELD_NUMBER: _ClassVar[int]
    REMAINING_TOKENS_FIELD_NUMBER: _ClassVar[int]
    HISTORY_MESSAGES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_MESSAGES_FIELD_NUMBER: _ClassVar[int]
    TOTAL_MESSAGES_FIELD_NUMBER: _ClassVar[int]
    HISTORY_BUDGET_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    TOOL_TOKENS_FIELD_NUMBER: _ClassVar[int]
    context_size: int
    system_tokens: int
    history_tokens: int
    memory_tokens: int
    total_tokens: int
    remaining_tokens: int
    history_messages: int
    memory_messages: int
    total_messages: int
    history_budget: int
    messages: _containers.RepeatedCompositeFieldContainer[MessageStats]
    tool_tokens: int
    def __init__(self, context_size: _Optional[int] = ..., system_tokens: _Optional[int] = ..., history_tokens: _Optional[int] = ..., memory_tokens: _Optional[int] = ..., total_tokens: _Optional[int] = ..., remaining_tokens: _Optional[int] = ..., history_messages: _Optional[int] = ..., memory_messages: _Optional[int] = ..., total_messages: _Optional[int] = ..., history_budget: _Optional[int] = ..., messages: _Optional[_Iterable[_Union[MessageStats, _Mapping]]] = ..., tool_tokens: _Optional[int] = ...) -> None: ...

class MessageStats(_message.Message):
    __slots__ = ("role", "tokens", "source")
    ROLE_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    role: str
    tokens: int
    source: str
    def __init__(self, role: _Optional[str] = ..., tokens: _Optional[int] = ..., source: _Optional[str] = ...) -> None: ...

class ContextSnapshotEvent(_message.Message):
    __slots__ = ("context",)
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    context: ContextSnapshot
    def __init__(self, context: _Optional[_Union[ContextSnapshot, _Mapping]] = ...) -> None: ...
