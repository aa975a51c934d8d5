"""The official openai client against drey serve: chats, streams, usage, log-probabilities,
completions, models, errors. serve_openai.py DREY MODEL.gguf [OPTIONS of drey serve]; says so
where the client is not installed."""
try:
    import openai
except ImportError:
    print("not run: the openai client is not installed (pip install openai)")
    raise SystemExit
from serve_client import *

s = Server(sys.argv[1], sys.argv[2], "--sessions", "2", "-c", "512", "--api-key", "secret", *sys.argv[3:])
s.wait_ready()
client = openai.OpenAI(base_url=f"{s.address}/v1", api_key="secret", max_retries=0)
model = client.models.list().data[0].id
messages = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Say something about disks."}]

whole = client.chat.completions.create(model=model, messages=messages, max_tokens=24, temperature=0)
text = whole.choices[0].message.content
check(text and whole.choices[0].finish_reason in ("length", "stop") and whole.usage.total_tokens > whole.usage.prompt_tokens > 0, f"chat: {whole}")
check(whole.choices[0].message.role == "assistant" and whole.usage.prompt_tokens_details.cached_tokens >= 0, f"chat: {whole}")

parts, usage, role, finish = [], None, None, None
for chunk in client.chat.completions.create(model=model, messages=messages, max_tokens=24, temperature=0, stream=True, stream_options={"include_usage": True}):
    for choice in chunk.choices:
        role = role or choice.delta.role
        parts.append(choice.delta.content or "")
        finish = choice.finish_reason or finish
    usage = chunk.usage or usage
check("".join(parts) == text and role == "assistant" and finish == whole.choices[0].finish_reason, f"stream: {parts}")
check(usage and usage.completion_tokens == whole.usage.completion_tokens, f"usage of a stream: {usage}")

with client.chat.completions.stream(model=model, messages=messages, max_tokens=24, temperature=0) as stream:
    pieces = [event.delta for event in stream if event.type == "content.delta"]
check("".join(pieces) == text, f"the stream helper: {pieces}")

logs = client.chat.completions.create(model=model, messages=messages, max_tokens=8, temperature=0, logprobs=True, top_logprobs=3).choices[0].logprobs.content
check(logs and all(t.logprob <= 0 and len(t.top_logprobs) == 3 and t.top_logprobs[0].token == t.token for t in logs), f"logprobs: {logs}")
old = client.completions.create(model=model, prompt="The sky is", max_tokens=8, temperature=0, logprobs=2)
check(len(old.choices[0].logprobs.tokens) == old.usage.completion_tokens and old.choices[0].text, f"completion: {old}")
streamed = "".join(c.choices[0].text for c in client.completions.create(model=model, prompt="The sky is", max_tokens=8, temperature=0, stream=True) if c.choices)
check(streamed == old.choices[0].text, f"completion in a stream: {streamed!r}")
two = client.chat.completions.create(model=model, messages=messages, max_tokens=8, temperature=1.2, seed=3, n=2)
check(len(two.choices) == 2 and two.choices[0].message.content != two.choices[1].message.content, f"n: {two}")
banned = client.completions.create(model=model, prompt="The sky is", max_tokens=8, temperature=0, logit_bias={"5": -100}, stop=["\n", "zzz"])
check(banned.choices[0].text is not None, f"logit_bias: {banned}")


def raises(kind, what, call):
    try:
        call()
        wrong(f"{what}: no error")
    except kind as e:
        check(e.body and e.body.get("message"), f"{what}: {e!r}")
    except Exception as e:
        wrong(f"{what}: {e!r}")


create = client.chat.completions.create
raises(openai.BadRequestError, "a bad temperature", lambda: create(model=model, messages=messages, temperature=-2))
raises(openai.BadRequestError, "too long", lambda: create(model=model, messages=[{"role": "user", "content": "a b " * 2000}]))
raises(openai.BadRequestError, "tools", lambda: create(model=model, messages=messages, tools=[{"type": "function", "function": {"parameters": {}}}]))
# Programs have names of their own in their settings: a server with one model answers to each.
check(create(model="gpt-4o", messages=messages, max_tokens=24, temperature=0).choices[0].message.content == text, "another model's name")
raises(openai.AuthenticationError, "a wrong key", lambda: openai.OpenAI(base_url=f"{s.address}/v1", api_key="no", max_retries=0).models.list())
stream = create(model=model, messages=messages, max_tokens=400, stream=True)
next(iter(stream))
stream.close()
check(s.metric.__self__ is s and client.models.retrieve(model).id == model, "models.retrieve")
check(s.stop() == 0, "the server's end")
done()
