#!/usr/bin/env bash
# ag-ui-crewai 1.0.0 with crewai 1.15.30: a cancelled question is an approval, also under the id of another interrupt.
#
# A flow asks a person with `@human_feedback(..., emit=["approved", "rejected"])`, as crewAI's documentation shows it. Over
# AG-UI the run ends with an interrupt. AG-UI answers it with `resume`, whose status `cancelled` says that the person has
# abandoned the question. The package passes that on as an empty text, and crewAI takes the first outcome for an empty
# text if the flow names no `default_outcome`: approved. The package reads no `interruptId` either: the answer below names
# an interrupt that nobody has asked. No model is called, and nothing is logged.
# Seen: the person cancels, and the flow pays.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check ag-ui-crewai==1.0.0 crewai==1.15.30 2>/dev/null
export HOME=$folder CREWAI_DISABLE_TELEMETRY=true CREWAI_DISABLE_VERSION_CHECK=true OTEL_SDK_DISABLED=true
export LITELLM_LOCAL_MODEL_COST_MAP=True OPENAI_API_KEY=none OPENAI_BASE_URL=http://127.0.0.1:9
cd "$folder"
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' | grep --line-buffered -E "^(asked|answer|flow|as described)"
import json

from ag_ui_crewai import CopilotKitState, add_crewai_flow_fastapi_endpoint, agui_feedback_provider
from crewai.flow import Flow, human_feedback, listen, start
from fastapi import FastAPI
from fastapi.testclient import TestClient

done: list[str] = []


class Pay(Flow[CopilotKitState]):
    @start()
    @human_feedback("Pay 100?", emit=["approved", "rejected"], llm="openai/gpt-5-mini", provider=agui_feedback_provider)
    def ask(self):
        return 100

    @listen("approved")
    def pay(self):
        done.append("paid")

    @listen("rejected")
    def leave(self):
        done.append("left")


app = FastAPI()
add_crewai_flow_fastapi_endpoint(app, Pay(), "/agent", emit_interrupt_outcome=True)
client = TestClient(app)


def run(**fields):
    message = {"id": "m", "role": "user", "content": "pay"}
    body = {"threadId": "t", "runId": "r", "state": {}, "messages": [message], "tools": [], "context": []}
    answer = client.post("/agent", json={**body, "forwardedProps": {}, **fields})
    return [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]


(interrupt,) = run()[-1]["outcome"]["interrupts"]
print("asked: ", interrupt["message"], interrupt["responseSchema"])
resume = [{"interruptId": "of-another-question", "status": "cancelled"}]
print("answer:", resume)
assert run(resume=resume)[-1]["type"] == "RUN_FINISHED"
print("flow:  ", done)
assert done == ["paid"]
print("as described")
PYTHON
