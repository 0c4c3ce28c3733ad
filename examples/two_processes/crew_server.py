"""An AG-UI server of crewAI, whose packages do not fit beside those of agui-container: uvicorn crew_server:app.

Its tool asks before it runs. The model calls it when you say so:

    call publish {"text": "hello"}
"""

import json
import os
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # crewAI asks a public host for prices otherwise

from ag_ui_crewai import agui_feedback_provider
from ag_ui_crewai.endpoint import add_crewai_flow_fastapi_endpoint
from ag_ui_crewai.sdk import CopilotKitState, copilotkit_emit_tool_result, copilotkit_stream
from crewai.flow import Flow, human_feedback, listen, or_, router, start
from crewai.tools import tool
from crewai.utilities.agent_utils import convert_tools_to_openai_schema
from fastapi import FastAPI
from litellm import acompletion

Json = dict[str, Any]


@tool
def publish(text: str) -> str:
    """Publish a text. The model reads this sentence: say here what your tool does."""
    return f"Done: {text}"


TOOLS = {"publish": publish}
ASKING = {"publish"}


class Answer(Flow[CopilotKitState]):
    @start("ask model")
    async def ask_model(self) -> None:
        for at, call in reversed(self.open_calls()):  # of earlier turns; models demand a result of each
            self.state.messages.insert(at + 1, result_of(call, "This call was not answered."))
        schemas, *_ = convert_tools_to_openai_schema(list(TOOLS.values()))
        tools = [*schemas, *self.state.copilotkit.actions]  # its own, and those of client and server
        response = await copilotkit_stream(
            await acompletion(model="openai/gpt-5-mini", messages=self.state.messages, tools=tools, stream=True)
        )
        self.state.messages.append({"id": response.id, **response.choices[0].message.model_dump()})

    @router(or_(ask_model, "run_tool"))
    def choose(self) -> str:
        if call := self.own_call():
            return "ask person" if call["function"]["name"] in ASKING else "run"
        return "ask model" if self.state.messages[-1]["role"] == "tool" and not self.open_calls() else "end"

    @listen("ask person")
    @human_feedback("Allow this call?", provider=agui_feedback_provider)
    def ask_person(self) -> Json | None:
        return self.own_call()  # the interrupt names it

    @listen(or_("run", ask_person))
    async def run_tool(self) -> None:
        call = self.own_call()
        name, arguments = call["function"]["name"], json.loads(call["function"]["arguments"])
        if name in ASKING and not json.loads(self.last_human_feedback.feedback)["approved"]:
            text = "The user denied this call."
        else:
            text = TOOLS[name].run(**arguments)
        self.state.messages.append(result_of(call, text))
        await copilotkit_emit_tool_result(call["id"], text, message_id=f"result-{call['id']}")

    def open_calls(self) -> list[tuple[int, Json]]:
        """Return the calls without a result, with the places of their messages."""
        messages = self.state.messages
        answered = {message.get("tool_call_id") for message in messages}
        calls = [(at, call) for at, message in enumerate(messages) for call in message.get("tool_calls") or ()]
        return [(at, call) for at, call in calls if call["id"] not in answered]

    def own_call(self) -> Json | None:
        return next((call for _, call in self.open_calls() if call["function"]["name"] in TOOLS), None)


def result_of(call: Json, text: str) -> Json:
    return {"id": f"result-{call['id']}", "role": "tool", "tool_call_id": call["id"], "content": text}


app = FastAPI()
add_crewai_flow_fastapi_endpoint(app, Answer(), "/agent", enable_legacy_on_interrupt_event=False)
