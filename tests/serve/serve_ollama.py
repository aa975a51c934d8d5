#!/usr/bin/env python3
"""ollama's interface on a toy: the answers are those of the same chat at /v1/chat/completions, in
their own form; lines as they come, models, refusals.
   serve_ollama.py DREY FOLDER (with toy.gguf)"""
import json, re, sys

from serve_client import Server, check, done

drey, folder = sys.argv[1:3]
N = 12
options = {"num_predict": N, "num_ctx": 4096}
hello = {"role": "user", "content": "Hello"}


def chat(s, messages, **more):
    status, answer = s.post("/v1/chat/completions", {"messages": messages, "max_tokens": N, **more})
    check(status == 200, f"the chat: {answer}")
    return answer["choices"][0]["message"]["content"], answer["usage"]["prompt_tokens"]


def text_of(answer, path):
    return answer["response"] if path == "/api/generate" else answer["message"]["content"]


def check_end(last, n_prompt, what):
    check(last["done"] is True and last["done_reason"] == "length" and last["prompt_eval_count"] == n_prompt and last["eval_count"] == N and
          all(isinstance(last[k], int) and last[k] >= 0 for k in ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration")),
          f"the end of {what}: {last}")
    check(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", last["created_at"]) and last["model"] == "toy", f"{what}: {last}")


def same(s, path, body, messages, what):
    """The body is the chat of these messages, at once and in lines."""
    text, n = chat(s, messages)
    status, answer = s.post(path, {"model": "any", "options": options, "stream": False, **body})
    if not check(status == 200, f"{what}: {answer}"):
        return
    check(text_of(answer, path) == text, f"{what}: {answer} instead of {text!r}")
    check_end(answer, n, what)
    status, headers, lines = s.request("POST", path, {"model": "any", "options": options, **body})
    check(status == 200 and headers["Content-Type"] == "application/x-ndjson" and lines.endswith(b"\n"), f"{what} in lines: {status} {headers}")
    lines = [json.loads(line) for line in lines.decode().splitlines()]
    check("".join(text_of(line, path) for line in lines) == text and not any(line["done"] for line in lines[:-1]), f"{what} in lines: {lines}")
    check_end(lines[-1], n, what)


def requests(s):
    same(s, "/api/chat", {"messages": [hello]}, [hello], "a chat")
    turns = [{"role": "system", "content": "Be \"brief\"."}, hello, {"role": "assistant", "content": "Hi"}, {"role": "user", "content": "More"}]
    same(s, "/api/chat", {"messages": turns, "keep_alive": "5m", "think": False, "tools": []}, turns, "turns")
    calls = [hello, {"role": "assistant", "content": "", "thinking": "Look.", "tool_calls": [{"function": {"name": "see", "arguments": {"at": "a\"b"}}}]},
             {"role": "tool", "tool_name": "see", "content": "sun"}]
    same(s, "/api/chat", {"messages": calls}, [hello, {"role": "assistant", "content": "", "reasoning_content": "Look.", "tool_calls": [
        {"id": "call_0", "type": "function", "function": {"name": "see", "arguments": "{\"at\":\"a\\\"b\"}"}}]},
        {"role": "tool", "name": "see", "content": "sun"}], "calls")
    same(s, "/api/generate", {"prompt": "Hello"}, [hello], "a prompt")
    same(s, "/api/generate", {"prompt": "Hello", "system": "Be brief.", "context": [], "suffix": ""},
         [{"role": "system", "content": "Be brief."}, hello], "a prompt with a system text")
    status, answer = s.post("/v1/completions", {"prompt": "Hello", "max_tokens": N})
    text = answer["choices"][0]["text"]
    same_raw = s.post("/api/generate", {"prompt": "Hello", "raw": True, "stream": False, "options": options})
    check(same_raw[0] == 200 and same_raw[1]["response"] == text, f"raw: {same_raw} instead of {text!r}")


def fields(s):
    schema = {"type": "object", "properties": {"a": {"enum": [1]}}, "required": ["a"], "additionalProperties": False}
    status, answer = s.post("/api/chat", {"messages": [hello], "stream": False, "format": schema})
    check(status == 200 and json.loads(answer["message"]["content"]) == {"a": 1} and answer["done_reason"] == "stop", f"a schema: {answer}")
    text, _ = chat(s, [hello], temperature=1, seed=7, top_k=5)
    status, answer = s.post("/api/chat", {"messages": [hello], "stream": False, "options": {**options, "temperature": 1, "seed": 7, "top_k": 5}})
    check(status == 200 and answer["message"]["content"] == text, f"sampling: {answer} instead of {text!r}")
    for path, body in (("/api/chat", {"messages": []}), ("/api/generate", {"model": "a"})):
        status, answer = s.post(path, body)
        check(status == 200 and answer["done_reason"] == "load" and text_of(answer, path) == "", f"{path} to load: {answer}")


def tools(s):
    """The model is held to a call, whatever it is; a stream brings the same call in one line."""
    function = {"name": "see", "parameters": {"type": "object", "properties": {"unit": {"enum": ["C", "F"]}}, "required": ["unit"]}}
    body = {"messages": [hello], "tools": [{"type": "function", "function": function}], "tool_choice": "required", "parallel_tool_calls": False}
    status, answer = s.post("/api/chat", {**body, "stream": False})
    calls = answer["message"].get("tool_calls", [])
    check(status == 200 and len(calls) == 1 and calls[0]["function"]["name"] == "see" and calls[0]["function"]["arguments"]["unit"] in ("C", "F") and
          answer["message"]["content"] == "" and answer["done_reason"] == "stop", f"a call: {answer}")
    lines = [json.loads(line) for line in s.request("POST", "/api/chat", body)[2].decode().splitlines()]
    check([m for m in (line["message"].get("tool_calls") for line in lines) if m] == [calls] and lines[-1]["done"], f"a call in lines: {lines}")
    lines = [json.loads(line) for line in s.request("POST", "/api/chat", {**body, "options": {"num_predict": 4}})[2].decode().splitlines()]
    check(not any("tool_calls" in line["message"] for line in lines) and lines[-1]["done_reason"] == "length", f"a call that is broken off: {lines}")


def models(s):
    for path in ("/api/tags", "/api/ps"):
        found = json.loads(s.get(path)[1])["models"]
        check(found[0]["name"] == "toy" and found[0]["size"] > 0 and found[0]["details"]["family"] == "llama" and
              re.fullmatch(r"[\d.]+[MB]", found[0]["details"]["parameter_size"]), f"{path}: {found}")
    status, shown = s.post("/api/show", {"model": "toy"})
    check(status == 200 and shown["model_info"]["llama.context_length"] == 1024 and "completion" in shown["capabilities"], f"/api/show: {shown}")
    check(re.fullmatch(r"\d+\.\d+\.\d+.*", json.loads(s.get("/api/version")[1])["version"]), "/api/version")


def vectors(s):
    texts = ["The tree", "is not for the draft", "a"]
    wanted = [d["embedding"] for d in s.post("/v1/embeddings", {"input": texts})[1]["data"]]
    status, answer = s.post("/api/embed", {"model": "any", "input": texts, "truncate": True, "keep_alive": "5m"})
    check(status == 200 and answer["embeddings"] == wanted and answer["model"] == "toy" and answer["prompt_eval_count"] > 3 and answer["total_duration"] > 0, f"vectors: {answer}")
    check(s.post("/api/embed", {"input": texts[1]})[1]["embeddings"] == [wanted[1]], "a vector of one text")
    check(s.post("/api/embeddings", {"model": "any", "prompt": texts[2]}) == (200, {"embedding": wanted[2]}), "the older form")


def refusals(s):
    status, answer = s.post("/api/generate", {"prompt": "a", "suffix": "b"})
    check(status == 501 and "fill in the middle" in answer["error"], f"a suffix, by a model that has no tokens for it: {answer}")
    for path, body, word in (("/api/chat", {"messages": [{"role": "user", "content": "a", "images": ["AA=="]}]}, "image input"),
                             ("/api/chat", {"messages": [3]}, "message"), ("/api/chat", {"messages": [hello], "format": "xml"}, "format"),
                             ("/api/chat", {"messages": [hello], "options": 3}, "options"), ("/api/chat", {"messages": [hello], "think": 3}, "think"),
                             ("/api/chat", {"messages": [hello], "options": {"mirostat": 2}}, "mirostat"),
                             ("/api/chat", {"messages": [hello, {"role": "assistant", "content": "", "tool_calls": [{}]}]}, "tool_calls"),
                             ("/api/generate", {"prompt": "a", "template": "b"}, "template"), ("/api/embed", {}, "'input'"), ("/api/embeddings", {}, "'prompt'"),
                             ("/api/embed", {"input": ["a", ""]}, "empty"), ("/api/embeddings", {"prompt": ""}, "empty"),
                             ("/api/generate", {"prompt": "a", "images": ["AA=="]}, "image input"), ("/api/generate", {"prompt": "long " * 2000}, "context")):
        status, answer = s.post(path, body)
        check(status == 400 and list(answer) == ["error"] and word in answer["error"], f"{path} of {str(body)[:80]}: {status} {answer}")


def main():
    s = Server(drey, f"{folder}/toy.gguf", "-c", "1024", "--sessions", "2").wait_ready()
    requests(s)
    fields(s)
    tools(s)
    models(s)
    vectors(s)
    refusals(s)
    check(s.stop() == 0, "the end of the server")


main()
done()
