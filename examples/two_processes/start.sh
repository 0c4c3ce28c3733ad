#!/bin/bash
# The two processes of one image: the agent in its own environment, and the server in front of it. A signal goes to both,
# and when one of them ends, so does the other. The agent listens for this container only.
set -u
port=${AGENT_PORT:-9000}

"${AGENT_PYTHON:-/opt/agent/bin/python}" -m uvicorn "${AGENT_APP:-crew_server:app}" --host 127.0.0.1 --port "$port" &
agent=$!
stop() { kill $(jobs -p) 2>/dev/null; }
trap stop TERM INT

# Runs would fail until the agent listens, and crewAI takes many seconds to import.
until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do
  kill -0 "$agent" 2>/dev/null || exit 1
  sleep 0.1
done
AGUI_AGENT="http://127.0.0.1:$port/agent" python -m agui_container serve &

wait -n
status=$?
stop
wait
exit "$status"
