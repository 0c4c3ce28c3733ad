"""Agents and tools that block for ever keep no process from its end."""

import asyncio
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SECONDS = 300

BLOCKED = """
import asyncio, threading
from agui_container.agents.as_agent import as_agent
from agui_container.tools.function_tool import FunctionTool
from tests.contexts import collect_items, run_context, run_input

began = threading.Semaphore(0)

def block():
    began.release()
    threading.Event().wait()

def agent(input):
    block()
    yield "never"

async def main():
    tool = FunctionTool("block", "Blocks.", {}, block)
    runs = [collect_items(as_agent(agent, "agent").run(run_input("go"), run_context())), tool.call({}, run_context())]
    tasks = [asyncio.create_task(run) for run in runs]
    for task in tasks:
        await asyncio.to_thread(began.acquire)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)

asyncio.run(main())
"""


async def test_threads_that_block_for_ever_do_not_hold_up_the_exit_of_the_process() -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, "-W", "error", "-c", BLOCKED, cwd=ROOT)
    try:
        assert await asyncio.wait_for(process.wait(), SECONDS) == 0
    finally:
        if process.returncode is None:
            process.kill()
