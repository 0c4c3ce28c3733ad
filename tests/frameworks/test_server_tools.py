"""The server's tools as tools of each framework: the policy, approvals, and one execution of each approved call."""

import json
import uuid
from typing import Any

import httpx
import pytest
from ag_ui.core import ToolCallResultEvent

from agui_container import Settings
from agui_container.testing import open_thread
from tests.agents.call_tool_agents import CALLS
from tests.contexts import of_type
from tests.frameworks import langgraph_agents, pydantic_agents
from tests.frameworks.conftest import STRANDS_PYTHON
from tests.sockets.process import ServerProcess, serving
from tests.sse import events_of
from tests.tools.mcp_fixtures import PROCESS

Json = dict[str, Any]

TOOLS = "tests.agents.call_tool_agents:tools"
RULES = '[{"tool_pattern": "spin", "policy": "ask"}, {"tool_pattern": "look_up", "policy": "deny"}]'

AGENTS = [
    pytest.param(langgraph_agents.equipped, id="langgraph"),
    pytest.param(langgraph_agents.remembering, id="langgraph-with-a-checkpointer"),
    pytest.param(pydantic_agents.equipped, id="pydantic-ai"),
]


@pytest.fixture(autouse=True)
def no_calls() -> None:
    CALLS.clear()


@pytest.mark.parametrize("agent", AGENTS)
async def test_a_model_calls_a_tool_of_the_server(agent: object) -> None:
    async with open_thread(agent, Settings(tools=TOOLS)) as thread:
        await thread.send("use spin")
        assert thread.text == "result: spun 6, 1 in all"
        assert [each.content for each in of_type(thread.events, ToolCallResultEvent)] == ["spun 6, 1 in all"]


@pytest.mark.parametrize("agent", AGENTS)
async def test_a_model_calls_a_tool_of_an_mcp_server(agent: object) -> None:
    async with open_thread(agent, Settings(mcp_servers=f"[{PROCESS.model_dump_json()}]")) as thread:
        await thread.send("use demo_nothing")
        assert thread.text == 'result: {"a":1}'


@pytest.mark.parametrize("agent", AGENTS)
async def test_an_approved_call_is_run_once_and_the_model_reads_its_result(agent: object) -> None:
    async with open_thread(agent, Settings(tools=TOOLS, tool_policy=RULES)) as thread:
        await thread.send("use spin")
        (interrupt,) = thread.interrupts
        assert interrupt.reason == "tool_call"
        assert CALLS["spin"] == 0
        await thread.answer({"approved": True})
        assert thread.text == "result: spun 6, 1 in all"
        await thread.send("say bye")
        assert thread.text == "bye"
        assert CALLS["spin"] == 1


@pytest.mark.parametrize("agent", AGENTS)
async def test_the_model_reads_that_a_person_denied_a_call(agent: object) -> None:
    async with open_thread(agent, Settings(tools=TOOLS, tool_policy=RULES)) as thread:
        await thread.send("use spin")
        await thread.answer({"approved": False})
        assert thread.text == "result: Error: the user denied this call."
        assert CALLS["spin"] == 0


@pytest.mark.parametrize("agent", AGENTS)
async def test_the_model_reads_that_the_policy_denies_a_call(agent: object) -> None:
    async with open_thread(agent, Settings(tools=TOOLS, tool_policy=RULES)) as thread:
        await thread.send("use look_up")
        assert "this tool is not allowed" in thread.text


def ask(server: ServerProcess, thread: str, said: list[Json], resume: list[Json] | None = None) -> list[Json]:
    body: Json = {"threadId": thread, "runId": str(uuid.uuid4()), "messages": said}
    body |= {"resume": resume} if resume else {}
    return events_of(httpx.post(f"http://127.0.0.1:{server.port}/invocations", json=body, timeout=120).content)


def test_strands_asks_for_approval_and_runs_the_call_once() -> None:
    agent = "tests.frameworks.equipped_strands_agent:equipped"
    with serving(STRANDS_PYTHON, agent=agent, tools=TOOLS, tool_policy=RULES) as server:
        thread = str(uuid.uuid4())
        asked = ask(server, thread, [{"id": "u1", "role": "user", "content": "use spin"}])
        (interrupt,) = asked[-1]["outcome"]["interrupts"]
        yes = {"interruptId": interrupt["id"], "status": "resolved", "payload": {"approved": True}}
        answered = ask(server, thread, [], [yes])
        text = "".join(event["delta"] for event in answered if event["type"] == "TEXT_MESSAGE_CONTENT")
        assert text == "result: spun 6, 1 in all", json.dumps(answered)
        ended = ask(server, thread, [{"id": "u2", "role": "user", "content": "say bye"}])
        assert ended[-1]["outcome"] == {"type": "success"}
