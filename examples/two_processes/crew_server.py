"""An AG-UI server of crewAI, whose packages do not fit beside those of agui-container: uvicorn crew_server:app."""

import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # crewAI asks a public host for prices otherwise

from ag_ui_crewai.endpoint import add_crewai_flow_fastapi_endpoint
from ag_ui_crewai.sdk import CopilotKitState, copilotkit_stream
from crewai.flow.flow import Flow, start
from fastapi import FastAPI
from litellm import acompletion


class Answer(Flow[CopilotKitState]):
    @start()
    async def answer(self) -> None:
        tools = self.state.copilotkit.actions or None  # the client's
        response = await copilotkit_stream(
            await acompletion(model="openai/gpt-5-mini", messages=self.state.messages, tools=tools, stream=True)
        )
        self.state.messages.append(response.choices[0]["message"])


app = FastAPI()
add_crewai_flow_fastapi_endpoint(app, Answer(), "/agent")
