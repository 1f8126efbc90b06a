"""The Python library's client at a tcpdiag mcp: client.py QUESTIONS COMMAND...

QUESTIONS is a JSON file: {tool: [arguments, ...]}. Every schema is held against every
answer by the jsonschema package. The first thing that is wrong ends it.
"""

import asyncio
import json
import sys

import jsonschema
from mcp import ClientSession, MCPError, StdioServerParameters, stdio_client

EVIDENCE = ("snapshot", "plan", "report")


def check(holds, what):
    if not holds:
        raise SystemExit(f"failed: {what}")


async def tools(session, questions):
    listed = (await session.list_tools()).tools
    check(sorted(t.name for t in listed) == sorted(questions), "the tools are not those of the questions")
    asked = 0
    for tool in listed:
        check(tool.annotations.read_only_hint is True, f"{tool.name} is not annotated as one that reads")
        for schema in (tool.input_schema, tool.output_schema):
            jsonschema.Draft202012Validator.check_schema(schema)
        for arguments in questions[tool.name]:
            jsonschema.validate(arguments, tool.input_schema)
            answer = await session.call_tool(tool.name, arguments)
            check(not answer.is_error, f"{tool.name} {arguments}: {answer.content[0].text}")
            jsonschema.validate(answer.structured_content, tool.output_schema)
            check(len(answer.content) == 3, f"{tool.name}: not fenced")
            check(json.loads(answer.content[1].text) == answer.structured_content, f"{tool.name}: the text is another document")
            check(("evidence" in answer.structured_content) == bool(arguments.get("evidence")), f"{tool.name}: evidence")
            asked += 1
    return asked


async def resources(session):
    listed = (await session.list_resources()).resources
    for resource in listed:
        read = await session.read_resource(resource.uri)
        check(read.contents[0].text.startswith("# " + resource.name), f"{resource.uri} has other contents")
    templates = (await session.list_resource_templates()).resource_templates
    check([t.uri_template for t in templates] == ["tcpdiag://incident/{id}"], "templates")
    answer = await session.call_tool("incidents", {})
    one = answer.structured_content["answer"]["incidents"][0]["id"]
    read = await session.read_resource("tcpdiag://incident/" + one)
    check(json.loads(read.contents[0].text)["schema"] == "tcpdiag.incident/v1", "the report's schema")
    return len(listed) + 1


async def prompts(session):
    listed = (await session.list_prompts()).prompts
    for prompt in listed:
        got = await session.get_prompt(prompt.name, {"port": "8080"})
        check("8080" in got.messages[0].content.text, f"{prompt.name} without its port")
    return len(listed)


async def errors(session):
    async def code(request):
        try:
            await request
        except MCPError as e:
            return e.error.code
        return None

    check(await code(session.call_tool("thread_dump", {})) == -32602, "an unknown tool")
    check(await code(session.get_prompt("nothing", {})) == -32602, "an unknown prompt")
    check(await code(session.read_resource("tcpdiag://runbook/none")) in (-32602, -32002), "an unknown resource")
    for tool, arguments in (("snapshot", {"port": 0}), ("explain", {"cause": "none"}), ("report", {"id": "../x"}), ("plan", {"requests": -1, "service_time_seconds": 1})):
        answer = await session.call_tool(tool, arguments)
        check(answer.is_error and answer.structured_content is None, f"{tool} {arguments} is no error")


async def lasting(session):
    heard = []

    async def progress(done, total, message):
        heard.append((done, total))

    await session.call_tool("snapshot", {"interval_seconds": 2}, progress_callback=progress)
    check(heard and all(0 < done <= total == 2 for done, total in heard), f"progress: {heard}")
    try:
        await session.call_tool("snapshot", {"interval_seconds": 60}, read_timeout_seconds=0.5)
        check(False, "a snapshot of a minute was over in half a second")
    except MCPError:
        pass
    await asyncio.wait_for(session.call_tool("snapshot", {"interval_seconds": 0}), 30)
    return len(heard)


async def main():
    with open(sys.argv[1]) as file:
        questions = json.load(file)
    async with stdio_client(StdioServerParameters(command=sys.argv[2], args=sys.argv[3:])) as (read, write):
        async with ClientSession(read, write) as session:
            hello = await session.initialize()
            asked, read_, prompted = await tools(session, questions), await resources(session), await prompts(session)
            await errors(session)
            heard = await lasting(session)
    print(f"protocol {hello.protocol_version}: {asked} calls, {read_} resources, {prompted} prompts, {heard} messages of progress")


asyncio.run(main())
