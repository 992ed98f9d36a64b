"""`opentelemetry-instrument python agent.py`: no line of the agent knows of the library."""

import json
import subprocess
import sys
from pathlib import Path

AGENT = """
import asyncio
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

def look(x: int) -> str:
    return "v"

def model(messages, info):
    part = ToolCallPart("look", {"x": 1}) if len(messages) == 1 else TextPart("done")
    return ModelResponse(parts=[part])

asyncio.run(Agent(FunctionModel(model), tools=[look]).run("hi"))
"""


def test_an_agent_that_does_not_know_the_library_is_hooked(tmp_path):
    agent = tmp_path / "agent.py"
    agent.write_text(AGENT)
    program = Path(sys.executable).with_name("opentelemetry-instrument")
    exporters = ["--traces_exporter", "console", "--logs_exporter", "console"]
    ran = subprocess.run(
        [program, *exporters, "--metrics_exporter", "none", sys.executable, agent],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    printed = list(objects(ran.stdout))
    [span] = [one for one in printed if one.get("name") == "execute_tool look"]
    assert span["attributes"]["toolfault.outcome"] == "ok"
    assert span["attributes"]["toolfault.sdk"] is True
    assert "toolfault.tool_declared" in [one.get("event_name") for one in printed]


def objects(text):
    """The JSON objects printed one after the other."""
    decoder, at = json.JSONDecoder(), 0
    while (at := text.find("{", at)) >= 0:
        found, at = decoder.raw_decode(text, at)
        yield found
