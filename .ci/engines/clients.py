# Sends requests with the official clients, one after the other, and prints what the
# usage of each answer says. The arguments are the address of a server and a model.
import json
import sys

import anthropic
import openai

url, model = sys.argv[1:]
oai = openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0)
ant = anthropic.Anthropic(base_url=url, api_key="none", max_retries=0)
messages = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "how are you today"}]


def say(endpoint, stream, given, made):
    print(json.dumps({"endpoint": endpoint, "stream": stream, "input": given, "output": made}))


for n in (3, 9):
    u = oai.chat.completions.create(model=model, messages=messages, max_completion_tokens=n).usage
    say("chat", False, u.prompt_tokens, u.completion_tokens)
    last = None
    for chunk in oai.chat.completions.create(model=model, messages=messages, max_completion_tokens=n, stream=True, stream_options={"include_usage": True}):
        last = chunk.usage or last
    say("chat", True, last.prompt_tokens, last.completion_tokens)
    u = oai.completions.create(model=model, prompt=list(range(100, 150 + n)), max_tokens=n).usage
    say("completions", False, u.prompt_tokens, u.completion_tokens)
    for chunk in oai.completions.create(model=model, prompt="the tide rises twice a day", max_tokens=n, stream=True, stream_options={"include_usage": True}):
        last = chunk.usage or last
    say("completions", True, last.prompt_tokens, last.completion_tokens)
    u = oai.responses.create(model=model, instructions="be brief", input="how are you", max_output_tokens=16 + n).usage
    say("responses", False, u.input_tokens, u.output_tokens)
    u = ant.messages.create(model=model, system="be brief", messages=messages[1:], max_tokens=n).usage
    say("messages", False, u.input_tokens, u.output_tokens)
    with ant.messages.stream(model=model, messages=messages[1:], max_tokens=n) as stream:
        u = stream.get_final_message().usage
    say("messages", True, u.input_tokens, u.output_tokens)
    messages += [{"role": "assistant", "content": "fine"}, {"role": "user", "content": "and tomorrow"}]
