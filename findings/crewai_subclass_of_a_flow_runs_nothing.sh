#!/usr/bin/env bash
# crewai 1.15.30: a subclass of a flow runs none of its steps, and succeeds.
#
# The steps of a flow are methods, and a subclass has them: they can be called, and `isinstance` and the type checker
# agree. But crewAI makes the definition of a flow from the class's own namespace, so inherited steps are no steps. A
# subclass without steps of its own has a flow without a start, whose `kickoff()` returns None at once. A subclass that
# adds a step behind an inherited one does the same. Nothing is logged or raised: a flow that is specialised for a test
# or a tenant ends well and has done nothing.
# Seen: the flow returns "charged", and both subclasses return None.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check crewai==1.15.30 2>/dev/null
export HOME=$folder CREWAI_DISABLE_TELEMETRY=true CREWAI_DISABLE_VERSION_CHECK=true OTEL_SDK_DISABLED=true
cd "$folder"
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' | grep -E "^(Charge|Cheap|Receipt|as described)"
from crewai.flow import Flow, listen, start


class Charge(Flow):
    price = 100

    @start()
    def charge(self):
        return f"charged {self.price}"


class Cheap(Charge):
    price = 1


class Receipt(Charge):
    @listen(Charge.charge)
    def print_receipt(self, text):
        return f"{text}, with a receipt"


results = {flow.__name__: flow().kickoff() for flow in (Charge, Cheap, Receipt)}
for name, result in results.items():
    print(f"{name + ':':9}", repr(result))
assert results == {"Charge": "charged 100", "Cheap": None, "Receipt": None}
assert Cheap().charge() == "charged 1"
print("as described")
PYTHON
