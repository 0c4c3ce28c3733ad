"""Session ids that AgentCore refuses are refused when a session is made, over both transports."""

import pytest

from agui_client import Session, new_session_id

ARN = "arn:aws:bedrock-agentcore:us-east-1:111122223333:runtime/agent-1"


@pytest.mark.parametrize("url", ["http://localhost:8080", "ws://localhost:8080", ARN])
def test_a_session_id_that_agentcore_refuses_is_refused(url: str) -> None:
    for length in (0, 1, 32, 257):
        with pytest.raises(ValueError, match=rf"^session_id has {length} characters\. AgentCore takes 33 to 256"):
            Session(url, session_id="s" * length)
    for session_id in ("s" * 33, "s" * 256, new_session_id()):
        Session(url, session_id=session_id)
