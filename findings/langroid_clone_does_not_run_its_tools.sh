#!/usr/bin/env bash
# langroid 0.69.16: the clone of an agent knows its tools and does not run them, so a batch of tasks returns the calls themselves.
#
# `enable_message` puts a method for the tool on the agent. `ChatAgent.clone` copies the sets and maps of tools, which say
# that the tool is handled, and not the methods. A clone therefore still parses a call, finds no handler, and answers
# nothing. `Task.clone` and `run_batch_tasks` work with clones alone. No exception and no line of the log says so.
# Seen: agent and task "rolled 6"; clone None, batch '{"request": "roll", "sides": 6}'.
#
# Importing Langroid fetches an encoding from OpenAI; the same file comes with llama-index-core.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
install() { "$folder/venv/bin/pip" install --quiet --disable-pip-version-check "$@" 2>/dev/null; }
install langroid==0.69.16
install --no-deps --target "$folder/encodings" llama-index-core==0.14.25
export TIKTOKEN_CACHE_DIR="$folder/encodings/llama_index/core/_static/tiktoken_cache"
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import json
import logging

from langroid import ChatAgent, ChatAgentConfig, Task, ToolMessage
from langroid.agent.batch import run_batch_tasks
from langroid.language_models.mock_lm import MockLMConfig
from langroid.utils.configuration import settings

logging.disable(logging.CRITICAL)
settings.quiet = True
CALL = json.dumps({"request": "roll", "sides": 6})


class Roll(ToolMessage):
    request: str = "roll"
    purpose: str = "To roll a die."
    sides: int

    def handle(self) -> str:
        return f"rolled {self.sides}"


def answer_of(agent: ChatAgent) -> str | None:
    call = agent.llm_response("Roll a die.")
    assert call.content == CALL
    assert agent.get_tool_messages(call) == [Roll(sides=6)]
    answer = agent.agent_response(call)
    return answer.content if answer else None


agent = ChatAgent(ChatAgentConfig(llm=MockLMConfig(default_response=CALL)))
agent.enable_message(Roll)
by_agent, by_clone = answer_of(agent), answer_of(agent.clone())
assert "roll" in agent.clone().llm_tools_handled
by_task = Task(agent, interactive=False).run("Roll a die.", turns=2).content
by_batch = [result.content for result in run_batch_tasks(Task(agent, interactive=False), ["Roll a die."], turns=2)]
print(f"agent: {by_agent}, clone: {by_clone}, task: {by_task}, batch: {by_batch}")
assert (by_agent, by_task) == ("rolled 6", "rolled 6")
assert (by_clone, by_batch) == (None, [CALL])
PYTHON
echo "as described"
