import datetime

from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AgentPlacement(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    AGENT_PLACEMENT_AUTO: _ClassVar[AgentPlacement]
    AGENT_PLACEMENT_CLOUD: _ClassVar[AgentPlacement]
    AGENT_PLACEMENT_EDGE: _ClassVar[AgentPlacement]

class ToolCategoryHint(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TOOL_CATEGORY_UNSPECIFIED: _ClassVar[ToolCategoryHint]
    TOOL_CATEGORY_PHYSICAL: _ClassVar[ToolCategoryHint]
    TOOL_CATEGORY_PURE: _ClassVar[ToolCategoryHint]
    TOOL_CATEGORY_CODE_SANDBOX: _ClassVar[ToolCategoryHint]
AGENT_PLACEMENT_AUTO: AgentPlacement
AGENT_PLACEMENT_CLOUD: AgentPlacement
AGENT_PLACEMENT_EDGE: AgentPlacement
TOOL_CATEGORY_UNSPECIFIED: ToolCategoryHint
TOOL_CATEGORY_PHYSICAL: ToolCategoryHint
TOOL_CATEGORY_PURE: ToolCategoryHint
TOOL_CATEGORY_CODE_SANDBOX: ToolCategoryHint

class SessionRequest(_message.Message):
    __slots__ = ("start", "user_message", "tool_result", "cancel_turn", "cancel_session", "ping", "feedback", "permission_decision", "register_tools", "webrtc_answer", "ice_candidate", "camera_request")
    START_FIELD_NUMBER: _ClassVar[int]
    USER_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    TOOL_RESULT_FIELD_NUMBER: _ClassVar[int]
    CANCEL_TURN_FIELD_NUMBER: _ClassVar[int]
    CANCEL_SESSION_FIELD_NUMBER: _ClassVar[int]
    PING_FIELD_NUMBER: _ClassVar[int]
    FEEDBACK_FIELD_NUMBER: _ClassVar[int]
    PERMISSION_DECISION_FIELD_NUMBER: _ClassVar[int]
    REGISTER_TOOLS_FIELD_NUMBER: _ClassVar[int]
    WEBRTC_ANSWER_FIELD_NUMBER: _ClassVar[int]
    ICE_CANDIDATE_FIELD_NUMBER: _ClassVar[int]
    CAMERA_REQUEST_FIELD_NUMBER: _ClassVar[int]
    start: StartSession
    user_message: UserMessage
    tool_result: ToolResult
    cancel_turn: CancelTurn
    cancel_session: CancelSession
    ping: Ping
    feedback: MessageFeedback
    permission_decision: PermissionDecision
    register_tools: RegisterTools
    webrtc_answer: WebRtcAnswer
    ice_candidate: IceCandidate
    camera_request: CameraRequest
    def __init__(self, start: _Optional[_Union[StartSession, _Mapping]] = ..., user_message: _Optional[_Union[UserMessage, _Mapping]] = ..., tool_result: _Optional[_Union[ToolResult, _Mapping]] = ..., cancel_turn: _Optional[_Union[CancelTurn, _Mapping]] = ..., cancel_session: _Optional[_Union[CancelSession, _Mapping]] = ..., ping: _Optional[_Union[Ping, _Mapping]] = ..., feedback: _Optional[_Union[MessageFeedback, _Mapping]] = ..., permission_decision: _Optional[_Union[PermissionDecision, _Mapping]] = ..., register_tools: _Optional[_Union[RegisterTools, _Mapping]] = ..., webrtc_answer: _Optional[_Union[WebRtcAnswer, _Mapping]] = ..., ice_candidate: _Optional[_Union[IceCandidate, _Mapping]] = ..., camera_request: _Optional[_Union[CameraRequest, _Mapping]] = ...) -> None: ...

class StartSession(_message.Message):
    __slots__ = ("environment_id", "host_id", "model", "tools", "history", "project_context", "max_context_tokens", "agent_placement", "camera_ids", "enable_video")
    ENVIRONMENT_ID_FIELD_NUMBER: _ClassVar[int]
    HOST_ID_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    HISTORY_FIELD_NUMBER: _ClassVar[int]
    PROJECT_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    MAX_CONTEXT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    AGENT_PLACEMENT_FIELD_NUMBER: _ClassVar[int]
    CAMERA_IDS_FIELD_NUMBER: _ClassVar[int]
    ENABLE_VIDEO_FIELD_NUMBER: _ClassVar[int]
    environment_id: str
    host_id: str
    model: str
    tools: _containers.RepeatedCompositeFieldContainer[ToolSchema]
    history: _containers.RepeatedCompositeFieldContainer[ConversationMessage]
    project_context: _containers.RepeatedScalarFieldContainer[str]
    max_context_tokens: int
    agent_placement: AgentPlacement
    camera_ids: _containers.RepeatedScalarFieldContainer[str]
    enable_video: bool
    def __init__(self, environment_id: _Optional[str] = ..., host_id: _Optional[str] = ..., model: _Optional[str] = ..., tools: _Optional[_Iterable[_Union[ToolSchema, _Mapping]]] = ..., history: _Optional[_Iterable[_Union[ConversationMessage, _Mapping]]] = ..., project_context: _Optional[_Iterable[str]] = ..., max_context_tokens: _Optional[int] = ..., agent_placement: _Optional[_Union[AgentPlacement, str]] = ..., camera_ids: _Optional[_Iterable[str]] = ..., enable_video: _Optional[bool] = ...) -> None: ...

class ConversationMessage(_message.Message):
    __slots__ = ("role", "parts")
    ROLE_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    role: str
    parts: _containers.RepeatedCompositeFieldContainer[ContentPart]
    def __init__(self, role: _Optional[str] = ..., parts: _Optional[_Iterable[_Union[ContentPart, _Mapping]]] = ...) -> None: ...

class ContentPart(_message.Message):
    __slots__ = ("text", "tool_use", "tool_result", "thinking", "image")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TOOL_USE_FIELD_NUMBER: _ClassVar[int]
    TOOL_RESULT_FIELD_NUMBER: _ClassVar[int]
    THINKING_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    text: TextContent
    tool_use: ToolUseContent
    tool_result: ToolResultContent
    thinking: ThinkingContent
    image: ImageContent
    def __init__(self, text: _Optional[_Union[TextContent, _Mapping]] = ..., tool_use: _Optional[_Union[ToolUseContent, _Mapping]] = ..., tool_result: _Optional[_Union[ToolResultContent, _Mapping]] = ..., thinking: _Optional[_Union[ThinkingContent, _Mapping]] = ..., image: _Optional[_Union[ImageContent, _Mapping]] = ...) -> None: ...

class TextContent(_message.Message):
    __slots__ = ("text",)
    TEXT_FIELD_NUMBER: _ClassVar[int]
    text: str
    def __init__(self, text: _Optional[str] = ...) -> None: ...

class ToolUseContent(_message.Message):
    __slots__ = ("id", "name", "input")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    id: str
    name: str
    input: _struct_pb2.Struct
    def __init__(self, id: _Optional[str] = ..., name: _Optional[str] = ..., input: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class ToolResultContent(_message.Message):
    __slots__ = ("tool_use_id", "name", "content", "is_error")
    TOOL_USE_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    IS_ERROR_FIELD_NUMBER: _ClassVar[int]
    tool_use_id: str
    name: str
    content: str
    is_error: bool
    def __init__(self, tool_use_id: _Optional[str] = ..., name: _Optional[str] = ..., content: _Optional[str] = ..., is_error: _Optional[bool] = ...) -> None: ...

class ThinkingContent(_message.Message):
    __slots__ = ("thinking", "signature")
    THINKING_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    thinking: str
    signature: str
    def __init__(self, thinking: _Optional[str] = ..., signature: _Optional[str] = ...) -> None: ...

class ImageContent(_message.Message):
    __slots__ = ("media_type", "data")
    MEDIA_TYPE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    media_type: str
    data: bytes
    def __init__(self, media_type: _Optional[str] = ..., data: _Optional[bytes] = ...) -> None: ...

class UserMessage(_message.Message):
    __slots__ = ("content", "context", "ai_mode", "message_id", "tools", "system_context")
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    AI_MODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    SYSTEM_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    content: str
    context: _containers.RepeatedCompositeFieldContainer[ContentBlock]
    ai_mode: str
    message_id: str
    tools: _containers.RepeatedCompositeFieldContainer[ToolSchema]
    system_context: str
    def __init__(self, content: _Optional[str] = ..., context: _Optional[_Iterable[_Union[ContentBlock, _Mapping]]] = ..., ai_mode: _Optional[str] = ..., message_id: _Optional[str] = ..., tools: _Optional[_Iterable[_Union[ToolSchema, _Mapping]]] = ..., system_context: _Optional[str] = ...) -> None: ...

class ContentBlock(_message.Message):
    __slots__ = ("text", "binary", "label")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    BINARY_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    text: str
    binary: BinaryContent
    label: str
    def __init__(self, text: _Optional[str] = ..., binary: _Optional[_Union[BinaryContent, _Mapping]] = ..., label: _Optional[str] = ...) -> None: ...

class BinaryContent(_message.Message):
    __slots__ = ("mime_type", "data")
    MIME_TYPE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    mime_type: str
    data: bytes
    def __init__(self, mime_type: _Optional[str] = ..., data: _Optional[bytes] = ...) -> None: ...

class ToolResult(_message.Message):
    __slots__ = ("tool_call_id", "success", "result", "exit_code", "truncated", "duration_ms")
    TOOL_CALL_ID_FIELD_NUMBER: _ClassVar[int]
    SUCCESS_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    EXIT_CODE_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    tool_call_id: str
    success: bool
    result: str
    exit_code: int
    truncated: bool
    duration_ms: int
    def __init__(self, tool_call_id: _Optional[str] = ..., success: _Optional[bool] = ..., result: _Optional[str] = ..., exit_code: _Optional[int] = ..., truncated: _Optional[bool] = ..., duration_ms: _Optional[int] = ...) -> None: ...

class CancelTurn(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: str
    def __init__(self, reason: _Optional[str] = ...) -> None: ...

class CancelSession(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: str
    def __init__(self, reason: _Optional[str] = ...) -> None: ...

class Ping(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class MessageFeedback(_message.Message):
    __slots__ = ("session_id", "message_id", "rating")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    RATING_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    message_id: str
    rating: str
    def __init__(self, session_id: _Optional[str] = ..., message_id: _Optional[str] = ..., rating: _Optional[str] = ...) -> None: ...

class PermissionDecision(_message.Message):
    __slots__ = ("tool_call_id", "approved", "modifier")
    TOOL_CALL_ID_FIELD_NUMBER: _ClassVar[int]
    APPROVED_FIELD_NUMBER: _ClassVar[int]
    MODIFIER_FIELD_NUMBER: _ClassVar[int]
    tool_call_id: str
    approved: bool
    modifier: _struct_pb2.Struct
    def __init__(self, tool_call_id: _Optional[str] = ..., approved: _Optional[bool] = ..., modifier: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class RegisterTools(_message.Message):
    __slots__ = ("source", "tools", "system_context")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    SYSTEM_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    source: str
    tools: _containers.RepeatedCompositeFieldContainer[ToolSchema]
    system_context: str
    def __init__(self, source: _Optional[str] = ..., tools: _Optional[_Iterable[_Union[ToolSchema, _Mapping]]] = ..., system_context: _Optional[str] = ...) -> None: ...

class SessionResponse(_message.Message):
    __slots__ = ("session_started", "text_delta", "thinking_delta", "tool_request", "turn_complete", "error", "keepalive", "pong", "context_compacted", "presence_hint", "activity_update", "telemetry", "task_progress", "webrtc_offer", "ice_candidate", "camera_update", "session_event")
    SESSION_STARTED_FIELD_NUMBER: _ClassVar[int]
    TEXT_DELTA_FIELD_NUMBER: _ClassVar[int]
    THINKING_DELTA_FIELD_NUMBER: _ClassVar[int]
    TOOL_REQUEST_FIELD_NUMBER: _ClassVar[int]
    TURN_COMPLETE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    KEEPALIVE_FIELD_NUMBER: _ClassVar[int]
    PONG_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_COMPACTED_FIELD_NUMBER: _ClassVar[int]
    PRESENCE_HINT_FIELD_NUMBER: _ClassVar[int]
    ACTIVITY_UPDATE_FIELD_NUMBER: _ClassVar[int]
    TELEMETRY_FIELD_NUMBER: _ClassVar[int]
    TASK_PROGRESS_FIELD_NUMBER: _ClassVar[int]
    WEBRTC_OFFER_FIELD_NUMBER: _ClassVar[int]
    ICE_CANDIDATE_FIELD_NUMBER: _ClassVar[int]
    CAMERA_UPDATE_FIELD_NUMBER: _ClassVar[int]
    SESSION_EVENT_FIELD_NUMBER: _ClassVar[int]
    session_started: SessionStarted
    text_delta: TextDelta
    thinking_delta: ThinkingDelta
    tool_request: ToolRequest
    turn_complete: TurnComplete
    error: SessionError
    keepalive: Keepalive
    pong: Pong
    context_compacted: ContextCompacted
    presence_hint: PresenceHint
    activity_update: ActivityUpdate
    telemetry: TelemetryUpdate
    task_progress: TaskProgress
    webrtc_offer: WebRtcOffer
    ice_candidate: IceCandidate
    camera_update: CameraUpdate
    session_event: SessionEventEnvelope
    def __init__(self, session_started: _Optional[_Union[SessionStarted, _Mapping]] = ..., text_delta: _Optional[_Union[TextDelta, _Mapping]] = ..., thinking_delta: _Optional[_Union[ThinkingDelta, _Mapping]] = ..., tool_request: _Optional[_Union[ToolRequest, _Mapping]] = ..., turn_complete: _Optional[_Union[TurnComplete, _Mapping]] = ..., error: _Optional[_Union[SessionError, _Mapping]] = ..., keepalive: _Optional[_Union[Keepalive, _Mapping]] = ..., pong: _Optional[_Union[Pong, _Mapping]] = ..., context_compacted: _Optional[_Union[ContextCompacted, _Mapping]] = ..., presence_hint: _Optional[_Union[PresenceHint, _Mapping]] = ..., activity_update: _Optional[_Union[ActivityUpdate, _Mapping]] = ..., telemetry: _Optional[_Union[TelemetryUpdate, _Mapping]] = ..., task_progress: _Optional[_Union[TaskProgress, _Mapping]] = ..., webrtc_offer: _Optional[_Union[WebRtcOffer, _Mapping]] = ..., ice_candidate: _Optional[_Union[IceCandidate, _Mapping]] = ..., camera_update: _Optional[_Union[CameraUpdate, _Mapping]] = ..., session_event: _Optional[_Union[SessionEventEnvelope, _Mapping]] = ...) -> None: ...

class ContextCompacted(_message.Message):
    __slots__ = ("level", "messages_before", "messages_after", "tokens_before", "tokens_after", "summary")
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_BEFORE_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_AFTER_FIELD_NUMBER: _ClassVar[int]
    TOKENS_BEFORE_FIELD_NUMBER: _ClassVar[int]
    TOKENS_AFTER_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    level: str
    messages_before: int
    messages_after: int
    tokens_before: int
    tokens_after: int
    summary: str
    def __init__(self, level: _Optional[str] = ..., messages_before: _Optional[int] = ..., messages_after: _Optional[int] = ..., tokens_before: _Optional[int] = ..., tokens_after: _Optional[int] = ..., summary: _Optional[str] = ...) -> None: ...

class SessionStarted(_message.Message):
    __slots__ = ("session_id", "model", "permissions")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    PERMISSIONS_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    model: str
    permissions: _containers.RepeatedCompositeFieldContainer[PermissionRule]
    def __init__(self, session_id: _Optional[str] = ..., model: _Optional[str] = ..., permissions: _Optional[_Iterable[_Union[PermissionRule, _Mapping]]] = ...) -> None: ...

class PermissionRule(_message.Message):
    __slots__ = ("tool_pattern", "policy", "category", "reason")
    TOOL_PATTERN_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    tool_pattern: str
    policy: str
    category: str
    reason: str
    def __init__(self, tool_pattern: _Optional[str] = ..., policy: _Optional[str] = ..., category: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class TextDelta(_message.Message):
    __slots__ = ("message_id", "content")
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    message_id: str
    content: str
    def __init__(self, message_id: _Optional[str] = ..., content: _Optional[str] = ...) -> None: ...

class ThinkingDelta(_message.Message):
    __slots__ = ("message_id", "content")
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    message_id: str
    content: str
    def __init__(self, message_id: _Optional[str] = ..., content: _Optional[str] = ...) -> None: ...

class ToolRequest(_message.Message):
    __slots__ = ("tool_call_id", "tool_name", "parameters", "timeout_ms")
    TOOL_CALL_ID_FIELD_NUMBER: _ClassVar[int]
    TOOL_NAME_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    tool_call_id: str
    tool_name: str
    parameters: _struct_pb2.Struct
    timeout_ms: int
    def __init__(self, tool_call_id: _Optional[str] = ..., tool_name: _Optional[str] = ..., parameters: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., timeout_ms: _Optional[int] = ...) -> None: ...

class TurnComplete(_message.Message):
    __slots__ = ("message_id", "usage", "stop_reason")
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    STOP_REASON_FIELD_NUMBER: _ClassVar[int]
    message_id: str
    usage: TokenUsage
    stop_reason: str
    def __init__(self, message_id: _Optional[str] = ..., usage: _Optional[_Union[TokenUsage, _Mapping]] = ..., stop_reason: _Optional[str] = ...) -> None: ...

class SessionError(_message.Message):
    __slots__ = ("code", "message", "retryable")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    RETRYABLE_FIELD_NUMBER: _ClassVar[int]
    code: str
    message: str
    retryable: bool
    def __init__(self, code: _Optional[str] = ..., message: _Optional[str] = ..., retryable: _Optional[bool] = ...) -> None: ...

class Keepalive(_message.Message):
    __slots__ = ("tokens_used", "tokens_max")
    TOKENS_USED_FIELD_NUMBER: _ClassVar[int]
    TOKENS_MAX_FIELD_NUMBER: _ClassVar[int]
    tokens_used: int
    tokens_max: int
    def __init__(self, tokens_used: _Optional[int] = ..., tokens_max: _Optional[int] = ...) -> None: ...

class Pong(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class PresenceHint(_message.Message):
    __slots__ = ("level", "reason")
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    level: str
    reason: str
    def __init__(self, level: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class ActivityUpdate(_message.Message):
    __slots__ = ("state", "detail", "progress")
    STATE_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    state: str
    detail: str
    progress: float
    def __init__(self, state: _Optional[str] = ..., detail: _Optional[str] = ..., progress: _Optional[float] = ...) -> None: ...

class TokenUsage(_message.Message):
    __slots__ = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens")
    INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CACHE_READ_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CACHE_CREATION_TOKENS_FIELD_NUMBER: _ClassVar[int]
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_creation_tokens: int
    def __init__(self, input_tokens: _Optional[int] = ..., output_tokens: _Optional[int] = ..., cache_read_tokens: _Optional[int] = ..., cache_creation_tokens: _Optional[int] = ...) -> None: ...

class ToolSchema(_message.Message):
    __slots__ = ("name", "description", "parameters_schema", "timeout_ms", "category")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    parameters_schema: _struct_pb2.Struct
    timeout_ms: int
    category: ToolCategoryHint
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., parameters_schema: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., timeout_ms: _Optional[int] = ..., category: _Optional[_Union[ToolCategoryHint, str]] = ...) -> None: ...

class JointState(_message.Message):
    __slots__ = ("name", "position", "velocity", "effort")
    NAME_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    VELOCITY_FIELD_NUMBER: _ClassVar[int]
    EFFORT_FIELD_NUMBER: _ClassVar[int]
    name: str
    position: float
    velocity: float
    effort: float
    def __init__(self, name: _Optional[str] = ..., position: _Optional[float] = ..., velocity: _Optional[float] = ..., effort: _Optional[float] = ...) -> None: ...

class Pose(_message.Message):
    __slots__ = ("x", "y", "z", "qx", "qy", "qz", "qw")
    X_FIELD_NUMBER: _ClassVar[int]
    Y_FIELD_NUMBER: _ClassVar[int]
    Z_FIELD_NUMBER: _ClassVar[int]
    QX_FIELD_NUMBER: _ClassVar[int]
    QY_FIELD_NUMBER: _ClassVar[int]
    QZ_FIELD_NUMBER: _ClassVar[int]
    QW_FIELD_NUMBER: _ClassVar[int]
    x: float
    y: float
    z: float
    qx: float
    qy: float
    qz: float
    qw: float
    def __init__(self, x: _Optional[float] = ..., y: _Optional[float] = ..., z: _Optional[float] = ..., qx: _Optional[float] = ..., qy: _Optional[float] = ..., qz: _Optional[float] = ..., qw: _Optional[float] = ...) -> None: ...

class TelemetryUpdate(_message.Message):
    __slots__ = ("host_id", "timestamp", "joint_states", "end_effector_pose", "sensor_readings")
    class SensorReadingsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    HOST_ID_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    JOINT_STATES_FIELD_NUMBER: _ClassVar[int]
    END_EFFECTOR_POSE_FIELD_NUMBER: _ClassVar[int]
    SENSOR_READINGS_FIELD_NUMBER: _ClassVar[int]
    host_id: str
    timestamp: float
    joint_states: _containers.RepeatedCompositeFieldContainer[JointState]
    end_effector_pose: Pose
    sensor_readings: _containers.ScalarMap[str, float]
    def __init__(self, host_id: _Optional[str] = ..., timestamp: _Optional[float] = ..., joint_states: _Optional[_Iterable[_Union[JointState, _Mapping]]] = ..., end_effector_pose: _Optional[_Union[Pose, _Mapping]] = ..., sensor_readings: _Optional[_Mapping[str, float]] = ...) -> None: ...

class TaskProgress(_message.Message):
    __slots__ = ("task_id", "phase", "progress", "description")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    phase: str
    progress: float
    description: str
    def __init__(self, task_id: _Optional[str] = ..., phase: _Optional[str] = ..., progress: _Optional[float] = ..., description: _Optional[str] = ...) -> None: ...

class WebRtcOffer(_message.Message):
    __slots__ = ("host_id", "sdp", "ice_candidates", "peer_id", "camera_ids")
    HOST_ID_FIELD_NUMBER: _ClassVar[int]
    SDP_FIELD_NUMBER: _ClassVar[int]
    ICE_CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    PEER_ID_FIELD_NUMBER: _ClassVar[int]
    CAMERA_IDS_FIELD_NUMBER: _ClassVar[int]
    host_id: str
    sdp: str
    ice_candidates: _containers.RepeatedScalarFieldContainer[str]
    peer_id: str
    camera_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, host_id: _Optional[str] = ..., sdp: _Optional[str] = ..., ice_candidates: _Optional[_Iterable[str]] = ..., peer_id: _Optional[str] = ..., camera_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class WebRtcAnswer(_message.Message):
    __slots__ = ("host_id", "sdp", "ice_candidates", "peer_id")
    HOST_ID_FIELD_NUMBER: _ClassVar[int]
    SDP_FIELD_NUMBER: _ClassVar[int]
    ICE_CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    PEER_ID_FIELD_NUMBER: _ClassVar[int]
    host_id: str
    sdp: str
    ice_candidates: _containers.RepeatedScalarFieldContainer[str]
    peer_id: str
    def __init__(self, host_id: _Optional[str] = ..., sdp: _Optional[str] = ..., ice_candidates: _Optional[_Iterable[str]] = ..., peer_id: _Optional[str] = ...) -> None: ...

class IceCandidate(_message.Message):
    __slots__ = ("host_id", "peer_id", "candidate", "sdp_mid", "sdp_m_line_index")
    HOST_ID_FIELD_NUMBER: _ClassVar[int]
    PEER_ID_FIELD_NUMBER: _ClassVar[int]
    CANDIDATE_FIELD_NUMBER: _ClassVar[int]
    SDP_MID_FIELD_NUMBER: _ClassVar[int]
    SDP_M_LINE_INDEX_FIELD_NUMBER: _ClassVar[int]
    host_id: str
    peer_id: str
    candidate: str
    sdp_mid: str
    sdp_m_line_index: int
    def __init__(self, host_id: _Optional[str] = ..., peer_id: _Optional[str] = ..., candidate: _Optional[str] = ..., sdp_mid: _Optional[str] = ..., sdp_m_line_index: _Optional[int] = ...) -> None: ...

class CameraRequest(_message.Message):
    __slots__ = ("host_id", "camera_ids")
    HOST_ID_FIELD_NUMBER: _ClassVar[int]
    CAMERA_IDS_FIELD_NUMBER: _ClassVar[int]
    host_id: str
    camera_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, host_id: _Optional[str] = ..., camera_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class CameraUpdate(_message.Message):
    __slots__ = ("host_id", "cameras", "event")
    HOST_ID_FIELD_NUMBER: _ClassVar[int]
    CAMERAS_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    host_id: str
    cameras: _containers.RepeatedCompositeFieldContainer[CameraInfoProto]
    event: str
    def __init__(self, host_id: _Optional[str] = ..., cameras: _Optional[_Iterable[_Union[CameraInfoProto, _Mapping]]] = ..., event: _Optional[str] = ...) -> None: ...

class CameraInfoProto(_message.Message):
    __slots__ = ("id", "label", "width", "height", "fps", "hw_encoder")
    ID_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    HEIGHT_FIELD_NUMBER: _ClassVar[int]
    FPS_FIELD_NUMBER: _ClassVar[int]
    HW_ENCODER_FIELD_NUMBER: _ClassVar[int]
    id: str
    label: str
    width: int
    height: int
    fps: int
    hw_encoder: bool
    def __init__(self, id: _Optional[str] = ..., label: _Optional[str] = ..., width: _Optional[int] = ..., height: _Optional[int] = ..., fps: _Optional[int] = ..., hw_encoder: _Optional[bool] = ...) -> None: ...

class WatchTeamRequest(_message.Message):
    __slots__ = ("task_id",)
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    def __init__(self, task_id: _Optional[str] = ...) -> None: ...

class TeamEvent(_message.Message):
    __slots__ = ("worker_started", "worker_phase", "worker_tool_call", "worker_completed", "worker_failed", "worker_exited", "worker_approval_requested", "worker_approval_resolved")
    WORKER_STARTED_FIELD_NUMBER: _ClassVar[int]
    WORKER_PHASE_FIELD_NUMBER: _ClassVar[int]
    WORKER_TOOL_CALL_FIELD_NUMBER: _ClassVar[int]
    WORKER_COMPLETED_FIELD_NUMBER: _ClassVar[int]
    WORKER_FAILED_FIELD_NUMBER: _ClassVar[int]
    WORKER_EXITED_FIELD_NUMBER: _ClassVar[int]
    WORKER_APPROVAL_REQUESTED_FIELD_NUMBER: _ClassVar[int]
    WORKER_APPROVAL_RESOLVED_FIELD_NUMBER: _ClassVar[int]
    worker_started: WorkerStarted
    worker_phase: WorkerPhase
    worker_tool_call: WorkerToolCall
    worker_completed: WorkerCompleted
    worker_failed: WorkerFailed
    worker_exited: WorkerExited
    worker_approval_requested: WorkerApprovalRequested
    worker_approval_resolved: WorkerApprovalResolved
    def __init__(self, worker_started: _Optional[_Union[WorkerStarted, _Mapping]] = ..., worker_phase: _Optional[_Union[WorkerPhase, _Mapping]] = ..., worker_tool_call: _Optional[_Union[WorkerToolCall, _Mapping]] = ..., worker_completed: _Optional[_Union[WorkerCompleted, _Mapping]] = ..., worker_failed: _Optional[_Union[WorkerFailed, _Mapping]] = ..., worker_exited: _Optional[_Union[WorkerExited, _Mapping]] = ..., worker_approval_requested: _Optional[_Union[WorkerApprovalRequested, _Mapping]] = ..., worker_approval_resolved: _Optional[_Union[WorkerApprovalResolved, _Mapping]] = ...) -> None: ...

class WorkerStarted(_message.Message):
    __slots__ = ("worker_id", "host_id")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    HOST_ID_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    host_id: str
    def __init__(self, worker_id: _Optional[str] = ..., host_id: _Optional[str] = ...) -> None: ...

class WorkerPhase(_message.Message):
    __slots__ = ("worker_id", "phase", "mode")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    phase: int
    mode: str
    def __init__(self, worker_id: _Optional[str] = ..., phase: _Optional[int] = ..., mode: _Optional[str] = ...) -> None: ...

class WorkerToolCall(_message.Message):
    __slots__ = ("worker_id", "tool")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    tool: str
    def __init__(self, worker_id: _Optional[str] = ..., tool: _Optional[str] = ...) -> None: ...

class WorkerCompleted(_message.Message):
    __slots__ = ("worker_id", "result")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    result: str
    def __init__(self, worker_id: _Optional[str] = ..., result: _Optional[str] = ...) -> None: ...

class WorkerFailed(_message.Message):
    __slots__ = ("worker_id", "reason")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    reason: str
    def __init__(self, worker_id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class WorkerExited(_message.Message):
    __slots__ = ("worker_id", "parent_task_id")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    PARENT_TASK_ID_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    parent_task_id: str
    def __init__(self, worker_id: _Optional[str] = ..., parent_task_id: _Optional[str] = ...) -> None: ...

class SessionEventEnvelope(_message.Message):
    __slots__ = ("event_id", "correlation_id", "parent_event_id", "timestamp", "event_type", "session_started", "session_rejected", "session_failed", "text_delta", "thinking_delta", "turn_finished", "tool_call_started", "tool_call_requested", "tool_call_finished", "safe_pause_entered", "activity_changed", "presence_hinted", "turn_started", "session_completed", "context_compacted", "tool_unavailable", "approval_requested", "approval_resolved", "safe_pause_cleared", "controller_loaded", "controller_shadow_started", "controller_promoted", "controller_rolled_back", "safety_intervention", "edge_transport_degraded", "verification_started", "verification_finished", "resume_summary", "telemetry_status_changed", "trust_posture_changed", "reasoning_trace", "model_call_completed", "memory_read", "memory_write", "sensor_repositioned", "contact_state_changed", "feedback_received", "mcp_server_degraded", "skill_loaded", "skill_crystallized")
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    CORRELATION_ID_FIELD_NUMBER: _ClassVar[int]
    PARENT_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    EVENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    SESSION_STARTED_FIELD_NUMBER: _ClassVar[int]
    SESSION_REJECTED_FIELD_NUMBER: _ClassVar[int]
    SESSION_FAILED_FIELD_NUMBER: _ClassVar[int]
    TEXT_DELTA_FIELD_NUMBER: _ClassVar[int]
    THINKING_DELTA_FIELD_NUMBER: _ClassVar[int]
    TURN_FINISHED_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALL_STARTED_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALL_REQUESTED_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALL_FINISHED_FIELD_NUMBER: _ClassVar[int]
    SAFE_PAUSE_ENTERED_FIELD_NUMBER: _ClassVar[int]
    ACTIVITY_CHANGED_FIELD_NUMBER: _ClassVar[int]
    PRESENCE_HINTED_FIELD_NUMBER: _ClassVar[int]
    TURN_STARTED_FIELD_NUMBER: _ClassVar[int]
    SESSION_COMPLETED_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_COMPACTED_FIELD_NUMBER: _ClassVar[int]
    TOOL_UNAVAILABLE_FIELD_NUMBER: _ClassVar[int]
    APPROVAL_REQUESTED_FIELD_NUMBER: _ClassVar[int]
    APPROVAL_RESOLVED_FIELD_NUMBER: _ClassVar[int]
    SAFE_PAUSE_CLEARED_FIELD_NUMBER: _ClassVar[int]
    CONTROLLER_LOADED_FIELD_NUMBER: _ClassVar[int]
    CONTROLLER_SHADOW_STARTED_FIELD_NUMBER: _ClassVar[int]
    CONTROLLER_PROMOTED_FIELD_NUMBER: _ClassVar[int]
    CONTROLLER_ROLLED_BACK_FIELD_NUMBER: _ClassVar[int]
    SAFETY_INTERVENTION_FIELD_NUMBER: _ClassVar[int]
    EDGE_TRANSPORT_DEGRADED_FIELD_NUMBER: _ClassVar[int]
    VERIFICATION_STARTED_FIELD_NUMBER: _ClassVar[int]
    VERIFICATION_FINISHED_FIELD_NUMBER: _ClassVar[int]
    RESUME_SUMMARY_FIELD_NUMBER: _ClassVar[int]
    TELEMETRY_STATUS_CHANGED_FIELD_NUMBER: _ClassVar[int]
    TRUST_POSTURE_CHANGED_FIELD_NUMBER: _ClassVar[int]
    REASONING_TRACE_FIELD_NUMBER: _ClassVar[int]
    MODEL_CALL_COMPLETED_FIELD_NUMBER: _ClassVar[int]
    MEMORY_READ_FIELD_NUMBER: _ClassVar[int]
    MEMORY_WRITE_FIELD_NUMBER: _ClassVar[int]
    SENSOR_REPOSITIONED_FIELD_NUMBER: _ClassVar[int]
    CONTACT_STATE_CHANGED_FIELD_NUMBER: _ClassVar[int]
    FEEDBACK_RECEIVED_FIELD_NUMBER: _ClassVar[int]
    MCP_SERVER_DEGRADED_FIELD_NUMBER: _ClassVar[int]
    SKILL_LOADED_FIELD_NUMBER: _ClassVar[int]
    SKILL_CRYSTALLIZED_FIELD_NUMBER: _ClassVar[int]
    event_id: str
    correlation_id: str
    parent_event_id: str
    timestamp: _timestamp_pb2.Timestamp
    event_type: str
    session_started: SessionStartedPayload
    session_rejected: SessionRejectedPayload
    session_failed: SessionFailedPayload
    text_delta: TextDeltaPayload
    thinking_delta: ThinkingDeltaPayload
    turn_finished: TurnFinishedPayload
    tool_call_started: ToolCallStartedPayload
    tool_call_requested: ToolCallRequestedPayload
    tool_call_finished: ToolCallFinishedPayload
    safe_pause_entered: SafePauseEnteredPayload
    activity_changed: ActivityChangedPayload
    presence_hinted: PresenceHintedPayload
    turn_started: TurnStartedPayload
    session_completed: SessionCompletedPayload
    context_compacted: ContextCompactedPayload
    tool_unavailable: ToolUnavailablePayload
    approval_requested: ApprovalRequestedPayload
    approval_resolved: ApprovalResolvedPayload
    safe_pause_cleared: SafePauseClearedPayload
    controller_loaded: ControllerLoadedPayload
    controller_shadow_started: ControllerShadowStartedPayload
    controller_promoted: ControllerPromotedPayload
    controller_rolled_back: ControllerRolledBackPayload
    safety_intervention: SafetyInterventionPayload
    edge_transport_degraded: EdgeTransportDegradedPayload
    verification_started: VerificationStartedPayload
    verification_finished: VerificationFinishedPayload
    resume_summary: ResumeSummaryPayload
    telemetry_status_changed: TelemetryStatusChangedPayload
    trust_posture_changed: TrustPostureChangedPayload
    reasoning_trace: ReasoningTracePayload
    model_call_completed: ModelCallCompletedPayload
    memory_read: MemoryReadPayload
    memory_write: MemoryWritePayload
    sensor_repositioned: SensorRepositionedPayload
    contact_state_changed: ContactStateChangedPayload
    feedback_received: FeedbackReceivedPayload
    mcp_server_degraded: McpServerDegradedPayload
    skill_loaded: SkillLoadedPayload
    skill_crystallized: SkillCrystallizedPayload
    def __init__(self, event_id: _Optional[str] = ..., correlation_id: _Optional[str] = ..., parent_event_id: _Optional[str] = ..., timestamp: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., event_type: _Optional[str] = ..., session_started: _Optional[_Union[SessionStartedPayload, _Mapping]] = ..., session_rejected: _Optional[_Union[SessionRejectedPayload, _Mapping]] = ..., session_failed: _Optional[_Union[SessionFailedPayload, _Mapping]] = ..., text_delta: _Optional[_Union[TextDeltaPayload, _Mapping]] = ..., thinking_delta: _Optional[_Union[ThinkingDeltaPayload, _Mapping]] = ..., turn_finished: _Optional[_Union[TurnFinishedPayload, _Mapping]] = ..., tool_call_started: _Optional[_Union[ToolCallStartedPayload, _Mapping]] = ..., tool_call_requested: _Optional[_Union[ToolCallRequestedPayload, _Mapping]] = ..., tool_call_finished: _Optional[_Union[ToolCallFinishedPayload, _Mapping]] = ..., safe_pause_entered: _Optional[_Union[SafePauseEnteredPayload, _Mapping]] = ..., activity_changed: _Optional[_Union[ActivityChangedPayload, _Mapping]] = ..., presence_hinted: _Optional[_Union[PresenceHintedPayload, _Mapping]] = ..., turn_started: _Optional[_Union[TurnStartedPayload, _Mapping]] = ..., session_completed: _Optional[_Union[SessionCompletedPayload, _Mapping]] = ..., context_compacted: _Optional[_Union[ContextCompactedPayload, _Mapping]] = ..., tool_unavailable: _Optional[_Union[ToolUnavailablePayload, _Mapping]] = ..., approval_requested: _Optional[_Union[ApprovalRequestedPayload, _Mapping]] = ..., approval_resolved: _Optional[_Union[ApprovalResolvedPayload, _Mapping]] = ..., safe_pause_cleared: _Optional[_Union[SafePauseClearedPayload, _Mapping]] = ..., controller_loaded: _Optional[_Union[ControllerLoadedPayload, _Mapping]] = ..., controller_shadow_started: _Optional[_Union[ControllerShadowStartedPayload, _Mapping]] = ..., controller_promoted: _Optional[_Union[ControllerPromotedPayload, _Mapping]] = ..., controller_rolled_back: _Optional[_Union[ControllerRolledBackPayload, _Mapping]] = ..., safety_intervention: _Optional[_Union[SafetyInterventionPayload, _Mapping]] = ..., edge_transport_degraded: _Optional[_Union[EdgeTransportDegradedPayload, _Mapping]] = ..., verification_started: _Optional[_Union[VerificationStartedPayload, _Mapping]] = ..., verification_finished: _Optional[_Union[VerificationFinishedPayload, _Mapping]] = ..., resume_summary: _Optional[_Union[ResumeSummaryPayload, _Mapping]] = ..., telemetry_status_changed: _Optional[_Union[TelemetryStatusChangedPayload, _Mapping]] = ..., trust_posture_changed: _Optional[_Union[TrustPostureChangedPayload, _Mapping]] = ..., reasoning_trace: _Optional[_Union[ReasoningTracePayload, _Mapping]] = ..., model_call_completed: _Optional[_Union[ModelCallCompletedPayload, _Mapping]] = ..., memory_read: _Optional[_Union[MemoryReadPayload, _Mapping]] = ..., memory_write: _Optional[_Union[MemoryWritePayload, _Mapping]] = ..., sensor_repositioned: _Optional[_Union[SensorRepositionedPayload, _Mapping]] = ..., contact_state_changed: _Optional[_Union[ContactStateChangedPayload, _Mapping]] = ..., feedback_received: _Optional[_Union[FeedbackReceivedPayload, _Mapping]] = ..., mcp_server_degraded: _Optional[_Union[McpServerDegradedPayload, _Mapping]] = ..., skill_loaded: _Optional[_Union[SkillLoadedPayload, _Mapping]] = ..., skill_crystallized: _Optional[_Union[SkillCrystallizedPayload, _Mapping]] = ...) -> None: ...

class SessionPermissionRulePayload(_message.Message):
    __slots__ = ("tool_pattern", "policy", "category", "reason")
    TOOL_PATTERN_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    tool_pattern: str
    policy: str
    category: str
    reason: str
    def __init__(self, tool_pattern: _Optional[str] = ..., policy: _Optional[str] = ..., category: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class SessionStartedPayload(_message.Message):
    __slots__ = ("session_id", "mode", "blueprint_version", "model_name", "permissions")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    BLUEPRINT_VERSION_FIELD_NUMBER: _ClassVar[int]
    MODEL_NAME_FIELD_NUMBER: _ClassVar[int]
    PERMISSIONS_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    mode: str
    blueprint_version: str
    model_name: str
    permissions: _containers.RepeatedCompositeFieldContainer[SessionPermissionRulePayload]
    def __init__(self, session_id: _Optional[str] = ..., mode: _Optional[str] = ..., blueprint_version: _Optional[str] = ..., model_name: _Optional[str] = ..., permissions: _Optional[_Iterable[_Union[SessionPermissionRulePayload, _Mapping]]] = ...) -> None: ...

class SessionRejectedPayload(_message.Message):
    __slots__ = ("code", "message", "retryable")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    RETRYABLE_FIELD_NUMBER: _ClassVar[int]
    code: str
    message: str
    retryable: bool
    def __init__(self, code: _Optional[str] = ..., message: _Optional[str] = ..., retryable: _Optional[bool] = ...) -> None: ...

class SessionFailedPayload(_message.Message):
    __slots__ = ("failure",)
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    failure: str
    def __init__(self, failure: _Optional[str] = ...) -> None: ...

class TurnStartedPayload(_message.Message):
    __slots__ = ("turn_index",)
    TURN_INDEX_FIELD_NUMBER: _ClassVar[int]
    turn_index: int
    def __init__(self, turn_index: _Optional[int] = ...) -> None: ...

class SessionCompletedPayload(_message.Message):
    __slots__ = ("summary", "input_tokens", "output_tokens")
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    summary: str
    input_tokens: int
    output_tokens: int
    def __init__(self, summary: _Optional[str] = ..., input_tokens: _Optional[int] = ..., output_tokens: _Optional[int] = ...) -> None: ...

class TextDeltaPayload(_message.Message):
    __slots__ = ("content", "message_id")
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    content: str
    message_id: str
    def __init__(self, content: _Optional[str] = ..., message_id: _Optional[str] = ...) -> None: ...

class ThinkingDeltaPayload(_message.Message):
    __slots__ = ("content", "message_id")
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    content: str
    message_id: str
    def __init__(self, content: _Optional[str] = ..., message_id: _Optional[str] = ...) -> None: ...

class TurnFinishedPayload(_message.Message):
    __slots__ = ("input_tokens", "output_tokens", "cache_creation_tokens", "cache_read_tokens", "stop_reason", "message_id")
    INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CACHE_CREATION_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CACHE_READ_TOKENS_FIELD_NUMBER: _ClassVar[int]
    STOP_REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    input_tokens: int
    output_tokens: int
    cache_creation_tokens: int
    cache_read_tokens: int
    stop_reason: str
    message_id: str
    def __init__(self, input_tokens: _Optional[int] = ..., output_tokens: _Optional[int] = ..., cache_creation_tokens: _Optional[int] = ..., cache_read_tokens: _Optional[int] = ..., stop_reason: _Optional[str] = ..., message_id: _Optional[str] = ...) -> None: ...

class ToolCallStartedPayload(_message.Message):
    __slots__ = ("call_id", "tool_name", "category")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    TOOL_NAME_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    tool_name: str
    category: str
    def __init__(self, call_id: _Optional[str] = ..., tool_name: _Optional[str] = ..., category: _Optional[str] = ...) -> None: ...

class ToolCallRequestedPayload(_message.Message):
    __slots__ = ("call_id", "tool_name", "parameters", "timeout_ms")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    TOOL_NAME_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    tool_name: str
    parameters: _struct_pb2.Struct
    timeout_ms: int
    def __init__(self, call_id: _Optional[str] = ..., tool_name: _Optional[str] = ..., parameters: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., timeout_ms: _Optional[int] = ...) -> None: ...

class ToolCallFinishedPayload(_message.Message):
    __slots__ = ("call_id", "tool_name", "result_summary")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    TOOL_NAME_FIELD_NUMBER: _ClassVar[int]
    RESULT_SUMMARY_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    tool_name: str
    result_summary: str
    def __init__(self, call_id: _Optional[str] = ..., tool_name: _Optional[str] = ..., result_summary: _Optional[str] = ...) -> None: ...

class ToolUnavailablePayload(_message.Message):
    __slots__ = ("tool_name", "reason")
    TOOL_NAME_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    tool_name: str
    reason: str
    def __init__(self, tool_name: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class ApprovalRequestedPayload(_message.Message):
    __slots__ = ("approval_id", "action", "reason", "timeout_secs")
    APPROVAL_ID_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_SECS_FIELD_NUMBER: _ClassVar[int]
    approval_id: str
    action: str
    reason: str
    timeout_secs: int
    def __init__(self, approval_id: _Optional[str] = ..., action: _Optional[str] = ..., reason: _Optional[str] = ..., timeout_secs: _Optional[int] = ...) -> None: ...

class ApprovalResolvedPayload(_message.Message):
    __slots__ = ("approval_id", "outcome")
    APPROVAL_ID_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    approval_id: str
    outcome: _struct_pb2.Struct
    def __init__(self, approval_id: _Optional[str] = ..., outcome: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class SafePauseEnteredPayload(_message.Message):
    __slots__ = ("reason", "robot_state")
    REASON_FIELD_NUMBER: _ClassVar[int]
    ROBOT_STATE_FIELD_NUMBER: _ClassVar[int]
    reason: str
    robot_state: str
    def __init__(self, reason: _Optional[str] = ..., robot_state: _Optional[str] = ...) -> None: ...

class SafePauseClearedPayload(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: str
    def __init__(self, reason: _Optional[str] = ...) -> None: ...

class ActivityChangedPayload(_message.Message):
    __slots__ = ("state", "reason", "robot_safe", "unblock_event")
    STATE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    ROBOT_SAFE_FIELD_NUMBER: _ClassVar[int]
    UNBLOCK_EVENT_FIELD_NUMBER: _ClassVar[int]
    state: str
    reason: str
    robot_safe: bool
    unblock_event: str
    def __init__(self, state: _Optional[str] = ..., reason: _Optional[str] = ..., robot_safe: _Optional[bool] = ..., unblock_event: _Optional[str] = ...) -> None: ...

class PresenceHintedPayload(_message.Message):
    __slots__ = ("level", "reason")
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    level: str
    reason: str
    def __init__(self, level: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class ContextCompactedPayload(_message.Message):
    __slots__ = ("level", "messages_affected", "tokens_before", "tokens_after")
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_AFFECTED_FIELD_NUMBER: _ClassVar[int]
    TOKENS_BEFORE_FIELD_NUMBER: _ClassVar[int]
    TOKENS_AFTER_FIELD_NUMBER: _ClassVar[int]
    level: str
    messages_affected: int
    tokens_before: int
    tokens_after: int
    def __init__(self, level: _Optional[str] = ..., messages_affected: _Optional[int] = ..., tokens_before: _Optional[int] = ..., tokens_after: _Optional[int] = ...) -> None: ...

class ControllerLoadedPayload(_message.Message):
    __slots__ = ("artifact_id", "source_kind")
    ARTIFACT_ID_FIELD_NUMBER: _ClassVar[int]
    SOURCE_KIND_FIELD_NUMBER: _ClassVar[int]
    artifact_id: str
    source_kind: str
    def __init__(self, artifact_id: _Optional[str] = ..., source_kind: _Optional[str] = ...) -> None: ...

class ControllerShadowStartedPayload(_message.Message):
    __slots__ = ("artifact_id",)
    ARTIFACT_ID_FIELD_NUMBER: _ClassVar[int]
    artifact_id: str
    def __init__(self, artifact_id: _Optional[str] = ...) -> None: ...

class ControllerPromotedPayload(_message.Message):
    __slots__ = ("artifact_id", "replaced_id")
    ARTIFACT_ID_FIELD_NUMBER: _ClassVar[int]
    REPLACED_ID_FIELD_NUMBER: _ClassVar[int]
    artifact_id: str
    replaced_id: str
    def __init__(self, artifact_id: _Optional[str] = ..., replaced_id: _Optional[str] = ...) -> None: ...

class ControllerRolledBackPayload(_message.Message):
    __slots__ = ("artifact_id", "restored_id", "reason")
    ARTIFACT_ID_FIELD_NUMBER: _ClassVar[int]
    RESTORED_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    artifact_id: str
    restored_id: str
    reason: str
    def __init__(self, artifact_id: _Optional[str] = ..., restored_id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class SafetyInterventionPayload(_message.Message):
    __slots__ = ("channel", "raw_value", "clamped_value", "kind", "reason")
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    RAW_VALUE_FIELD_NUMBER: _ClassVar[int]
    CLAMPED_VALUE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    channel: str
    raw_value: float
    clamped_value: float
    kind: str
    reason: str
    def __init__(self, channel: _Optional[str] = ..., raw_value: _Optional[float] = ..., clamped_value: _Optional[float] = ..., kind: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class EdgeTransportDegradedPayload(_message.Message):
    __slots__ = ("transport", "health", "affected_capabilities")
    TRANSPORT_FIELD_NUMBER: _ClassVar[int]
    HEALTH_FIELD_NUMBER: _ClassVar[int]
    AFFECTED_CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    transport: str
    health: _struct_pb2.Struct
    affected_capabilities: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, transport: _Optional[str] = ..., health: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., affected_capabilities: _Optional[_Iterable[str]] = ...) -> None: ...

class VerificationStartedPayload(_message.Message):
    __slots__ = ("target", "verifier_kind")
    TARGET_FIELD_NUMBER: _ClassVar[int]
    VERIFIER_KIND_FIELD_NUMBER: _ClassVar[int]
    target: str
    verifier_kind: str
    def __init__(self, target: _Optional[str] = ..., verifier_kind: _Optional[str] = ...) -> None: ...

class VerificationFinishedPayload(_message.Message):
    __slots__ = ("target", "verdict", "evidence", "verdict_kind", "verifier_status", "verifier_reason", "evidence_bundle_id", "frame_snapshot_id", "execution_mode")
    TARGET_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    VERDICT_KIND_FIELD_NUMBER: _ClassVar[int]
    VERIFIER_STATUS_FIELD_NUMBER: _ClassVar[int]
    VERIFIER_REASON_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_BUNDLE_ID_FIELD_NUMBER: _ClassVar[int]
    FRAME_SNAPSHOT_ID_FIELD_NUMBER: _ClassVar[int]
    EXECUTION_MODE_FIELD_NUMBER: _ClassVar[int]
    target: str
    verdict: _struct_pb2.Struct
    evidence: _struct_pb2.Struct
    verdict_kind: str
    verifier_status: str
    verifier_reason: str
    evidence_bundle_id: str
    frame_snapshot_id: int
    execution_mode: str
    def __init__(self, target: _Optional[str] = ..., verdict: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., evidence: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., verdict_kind: _Optional[str] = ..., verifier_status: _Optional[str] = ..., verifier_reason: _Optional[str] = ..., evidence_bundle_id: _Optional[str] = ..., frame_snapshot_id: _Optional[int] = ..., execution_mode: _Optional[str] = ...) -> None: ...

class ResumeSummaryPayload(_message.Message):
    __slots__ = ("summary",)
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    summary: _struct_pb2.Struct
    def __init__(self, summary: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class TelemetryStatusChangedPayload(_message.Message):
    __slots__ = ("freshness", "degraded_sources")
    FRESHNESS_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_SOURCES_FIELD_NUMBER: _ClassVar[int]
    freshness: str
    degraded_sources: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, freshness: _Optional[str] = ..., degraded_sources: _Optional[_Iterable[str]] = ...) -> None: ...

class TrustPostureChangedPayload(_message.Message):
    __slots__ = ("old", "new", "reason")
    OLD_FIELD_NUMBER: _ClassVar[int]
    NEW_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    old: _struct_pb2.Struct
    new: _struct_pb2.Struct
    reason: str
    def __init__(self, old: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., new: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., reason: _Optional[str] = ...) -> None: ...

class ReasoningTracePayload(_message.Message):
    __slots__ = ("turn_index", "cycle_index", "thinking_summary", "selected_action", "alternatives_considered", "observation_ids")
    TURN_INDEX_FIELD_NUMBER: _ClassVar[int]
    CYCLE_INDEX_FIELD_NUMBER: _ClassVar[int]
    THINKING_SUMMARY_FIELD_NUMBER: _ClassVar[int]
    SELECTED_ACTION_FIELD_NUMBER: _ClassVar[int]
    ALTERNATIVES_CONSIDERED_FIELD_NUMBER: _ClassVar[int]
    OBSERVATION_IDS_FIELD_NUMBER: _ClassVar[int]
    turn_index: int
    cycle_index: int
    thinking_summary: str
    selected_action: str
    alternatives_considered: _containers.RepeatedScalarFieldContainer[str]
    observation_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, turn_index: _Optional[int] = ..., cycle_index: _Optional[int] = ..., thinking_summary: _Optional[str] = ..., selected_action: _Optional[str] = ..., alternatives_considered: _Optional[_Iterable[str]] = ..., observation_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class ModelCallCompletedPayload(_message.Message):
    __slots__ = ("model_id", "provider", "input_tokens", "output_tokens", "latency_ms", "cache_hit_tokens", "stop_reason")
    MODEL_ID_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    LATENCY_MS_FIELD_NUMBER: _ClassVar[int]
    CACHE_HIT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    STOP_REASON_FIELD_NUMBER: _ClassVar[int]
    model_id: str
    provider: str
    input_tokens: int
    output_tokens: int
    latency_ms: int
    cache_hit_tokens: int
    stop_reason: str
    def __init__(self, model_id: _Optional[str] = ..., provider: _Optional[str] = ..., input_tokens: _Optional[int] = ..., output_tokens: _Optional[int] = ..., latency_ms: _Optional[int] = ..., cache_hit_tokens: _Optional[int] = ..., stop_reason: _Optional[str] = ...) -> None: ...

class MemoryReadPayload(_message.Message):
    __slots__ = ("entries_returned", "scope_key", "total_tokens")
    ENTRIES_RETURNED_FIELD_NUMBER: _ClassVar[int]
    SCOPE_KEY_FIELD_NUMBER: _ClassVar[int]
    TOTAL_TOKENS_FIELD_NUMBER: _ClassVar[int]
    entries_returned: int
    scope_key: str
    total_tokens: int
    def __init__(self, entries_returned: _Optional[int] = ..., scope_key: _Optional[str] = ..., total_tokens: _Optional[int] = ...) -> None: ...

class MemoryWritePayload(_message.Message):
    __slots__ = ("memory_id", "scope_key", "source_kind")
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    CLASS_FIELD_NUMBER: _ClassVar[int]
    SCOPE_KEY_FIELD_NUMBER: _ClassVar[int]
    SOURCE_KIND_FIELD_NUMBER: _ClassVar[int]
    memory_id: str
    scope_key: str
    source_kind: str
    def __init__(self, memory_id: _Optional[str] = ..., scope_key: _Optional[str] = ..., source_kind: _Optional[str] = ..., **kwargs) -> None: ...

class SensorRepositionedPayload(_message.Message):
    __slots__ = ("sensor_id", "old_pose", "new_pose", "goal")
    SENSOR_ID_FIELD_NUMBER: _ClassVar[int]
    OLD_POSE_FIELD_NUMBER: _ClassVar[int]
    NEW_POSE_FIELD_NUMBER: _ClassVar[int]
    GOAL_FIELD_NUMBER: _ClassVar[int]
    sensor_id: str
    old_pose: _struct_pb2.Struct
    new_pose: _struct_pb2.Struct
    goal: _struct_pb2.Struct
    def __init__(self, sensor_id: _Optional[str] = ..., old_pose: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., new_pose: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., goal: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class ContactStateChangedPayload(_message.Message):
    __slots__ = ("link", "contact")
    LINK_FIELD_NUMBER: _ClassVar[int]
    CONTACT_FIELD_NUMBER: _ClassVar[int]
    link: str
    contact: _struct_pb2.Struct
    def __init__(self, link: _Optional[str] = ..., contact: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class FeedbackReceivedPayload(_message.Message):
    __slots__ = ("feedback_id", "related_event_id", "outcome", "operator_comment")
    FEEDBACK_ID_FIELD_NUMBER: _ClassVar[int]
    RELATED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_COMMENT_FIELD_NUMBER: _ClassVar[int]
    feedback_id: str
    related_event_id: str
    outcome: _struct_pb2.Struct
    operator_comment: str
    def __init__(self, feedback_id: _Optional[str] = ..., related_event_id: _Optional[str] = ..., outcome: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., operator_comment: _Optional[str] = ...) -> None: ...

class SkillLoadedPayload(_message.Message):
    __slots__ = ("name", "version")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: str
    def __init__(self, name: _Optional[str] = ..., version: _Optional[str] = ...) -> None: ...

class SkillCrystallizedPayload(_message.Message):
    __slots__ = ("name", "version", "source")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: str
    source: str
    def __init__(self, name: _Optional[str] = ..., version: _Optional[str] = ..., source: _Optional[str] = ...) -> None: ...

class WorkerApprovalRequested(_message.Message):
    __slots__ = ("worker_id", "task_id", "approval_id", "tool_name", "reason", "timeout_secs")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    APPROVAL_ID_FIELD_NUMBER: _ClassVar[int]
    TOOL_NAME_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_SECS_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    task_id: str
    approval_id: str
    tool_name: str
    reason: str
    timeout_secs: int
    def __init__(self, worker_id: _Optional[str] = ..., task_id: _Optional[str] = ..., approval_id: _Optional[str] = ..., tool_name: _Optional[str] = ..., reason: _Optional[str] = ..., timeout_secs: _Optional[int] = ...) -> None: ...

class WorkerApprovalResolved(_message.Message):
    __slots__ = ("worker_id", "task_id", "approval_id", "approved", "modifier")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    APPROVAL_ID_FIELD_NUMBER: _ClassVar[int]
    APPROVED_FIELD_NUMBER: _ClassVar[int]
    MODIFIER_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    task_id: str
    approval_id: str
    approved: bool
    modifier: _struct_pb2.Struct
    def __init__(self, worker_id: _Optional[str] = ..., task_id: _Optional[str] = ..., approval_id: _Optional[str] = ..., approved: _Optional[bool] = ..., modifier: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class McpServerDegradedPayload(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
