#!/usr/bin/env python3
"""Checks that the runner of llama.cpp's server tests names what it expects case by case, so that
whatever else breaks deviates; options that drey has are passed on."""
import json
import os
import sys

HERE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, f"{HERE}/scripts/llama-tests")
import as_llama_server  # noqa: E402
import llama_cases  # noqa: E402
import llama_tests  # noqa: E402


def expectations():
    for kind, file, why, cases in llama_cases.KNOWN:
        assert kind in llama_tests.CLASSES and why and cases, (kind, file)
        for case in cases:
            assert case.startswith("test_") and "*" not in case.split("[")[0], case
    one = "unit/test_vision_api.py::test_vision_completion[What is this: <__media__>\\n-IMG_BASE64_0-True]"
    assert llama_cases.known("unit/test_rerank.py::test_rerank_top_n[2-2]")[0] == "missing"
    assert llama_cases.known("unit/test_rerank.py::test_rerank_is_new") is None
    assert llama_cases.known(one.replace("-True", "-False")) is None
    assert llama_cases.unknown_names(["unit/test_sleep.py::test_server_sleep"]) == [
        "test_sleep.py::test_server_sleep_read_only_endpoints", "test_sleep.py::test_server_sleep_metrics_buckets"]


def classes():
    """Checks each class: as is, in substance, by design, of another model, and a case that nobody
    expected to fail."""
    passes, fails = ("passed", ""), ("failed", "assert a\nb")
    case = lambda file, name: f"unit/test_{file}.py::{name}"
    slashes = case("router", "test_router_chat_completion_stream[ggml-org/tinygemma3-GGUF:Q8_0-True]")
    preflight, call = case("security", "test_cors_options[a/b]"), case("tool_call", "test_hello_world[x]")
    for node, plain, changed, tools, wanted in (
            (preflight, passes, None, None, "as is"), (preflight, fails, passes, None, "by design"),
            (slashes, fails, passes, None, "substance"), (slashes, fails, fails, None, "deviates"),
            (call, None, None, passes, "substance"), (call, None, None, fails, "other model"),
            (call, None, None, None, "other model"), (case("stream", "test_stream_resume_and_stop_with_slashed_model_name"),
                                                      fails, fails, None, "deviates")):
        of = lambda result: {node: result} if result else {}
        got = llama_tests.classify(node, {call}, of(plain), of(changed), of(tools))
        assert got[0] == wanted, (node, got)


def options():
    os.environ["DREY_TEST_MODELS"] = "/models"
    words = lambda *given: as_llama_server.translate(list(given))[0]
    several = words("--models-max", "2", "--port", "1")
    assert several[several.index("--models-max") + 1] == "2" and "/models/several" in several
    hub = ("--hf-repo", "bartowski/Qwen2.5-7B-Instruct-GGUF:Q4_K_M")
    assert "/models/stories260K.gguf" in words(*hub) and "chatml" in words(*hub)
    os.environ.update(DREY_TEST_TOOL_MODEL="/tools.gguf", DREY_TEST_TOOL_DRAFT="/draft.gguf")
    assert words(*hub)[:7] == ["serve", "--memory", "unlimited", "-m", "/tools.gguf", "-d", "/draft.gguf"]
    assert "--chat-template" not in words(*hub) and "chatml" in words(*hub, "--chat-template", "chatml")
    assert "/models/stories260K.gguf" in words("--hf-repo", "ggml-org/test-model-stories260K")


def main():
    expectations()
    classes()
    options()
    with open(llama_tests.OWN_TEXTS) as f:
        assert all(case.startswith("test_") and texts and all(texts) for case, texts in json.load(f).items())


if __name__ == "__main__":
    main()
