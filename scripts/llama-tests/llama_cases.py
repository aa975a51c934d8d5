"""Changes that llama_tests.py makes in llama.cpp's tests before a case counts as passed in
substance or as by design, and why the others fail that are known to."""
import os
import re

# The models of a folder, for the tests with several (the hub's names have a slash).
SEVERAL = ["tinygemma3", "stories260K", "infill"]
# Tokens that stand for prefix, suffix and middle: bytes that no text of the tests has.
FILL_TOKENS = (3 + 0x1C, 3 + 0x1D, 3 + 0x1E)

# Added to what all tests use, in the changed copy.
UTILS = '''
def local(name):
    names = {"ggml-org/tinygemma3-GGUF:Q8_0": "tinygemma3", "ggml-org/test-model-stories260K:F32": "stories260K",
             "ggml-org/test-model-stories260K-infill:F32": "infill"}
    return names.get(name, name)

def own_text(_regex, text):
    """Whether it is the text that drey writes by this case's seed; with DREY_TEST_RECORD_TEXTS it is
    recorded in that file."""
    case = os.environ["PYTEST_CURRENT_TEST"].rsplit(" (", 1)[0].removeprefix("unit/")
    if os.environ.get("DREY_TEST_RECORD_TEXTS"):
        with open(os.environ["DREY_TEST_RECORD_TEXTS"], "a") as out:
            print(json.dumps([case, text]), file=out)
        return len(text) > 0
    with open(os.environ["DREY_TEST_TEXTS"]) as f:
        return text in json.load(f).get(case, [])

def tokens_of(server, *texts):
    return sum(len(server.make_request("POST", "/tokenize", data={"content": t, "add_special": True}).body["tokens"])
               for t in texts)
'''

# Why a test is changed.
OTHER_NOISE = "a sampled text: drey's noise is another function of the seed"
OTHER_MODEL = "a text of a model that is not here"
OTHER_TOKENS = "another tokenizer has another number of tokens"
HUB_NAME = "models of a folder have their files' names"
NAME = "the program's own name"

# (file, functions, pattern, replacement, why). Without functions: in the whole file. First what
# belongs to another program or model: a case that passes with these passes in substance.
CHANGES = [
    ("test_basic", ["test_load_split_model"], r"match_regex\(", "own_text(", OTHER_MODEL),
    ("test_chat_completion", None, r'(system_fingerprint\S*\.startswith\()"b"', r'\1"drey"', NAME),
    ("test_chat_completion", ["test_chat_completion", "test_chat_completion_stream",
                              "test_chat_completion_with_openai_library"], r"match_regex\(", "own_text(", OTHER_NOISE),
    ("test_completion", None, r'(system_fingerprint\S*\.startswith\()"b"', r'\1"drey"', NAME),
    ("test_completion", ["test_completion", "test_completion_stream", "test_completion_with_openai_library",
                         "test_completion_stream_with_openai_library"], r"match_regex\(", "own_text(", OTHER_NOISE),
    ("test_completion", None, r"^@pytest\.mark\.skip\(reason=.This test fails on linux[^\n]*\n", "",
     "llama.cpp skips it; drey passes it"),
    ("test_speculative", ["test_multi_requests_parallel"], r"match_regex\(", "own_text(", OTHER_MODEL),
    ("test_speculative", ["test_slot_ctx_not_exceeded"], r'"Hello " \* 248', '"Hello " * 82', OTHER_TOKENS),
    ("test_infill", ["test_infill_without_input_extra", "test_infill_with_input_extra"], r"match_regex\(",
     "own_text(", OTHER_MODEL),
    ("test_embedding", ["test_embedding_usage_single"], r"== n_tokens", "== tokens_of(server, content)", OTHER_TOKENS),
    ("test_embedding", ["test_embedding_usage_multiple"], r"== 2 \* 9",
     '== 2 * tokens_of(server, "I believe the meaning of life is")', OTHER_TOKENS),
    ("test_embedding", ["test_embedding_pooling_none"], r"== 5 #", '== tokens_of(server, "hello hello hello") #',
     OTHER_TOKENS),
    ("test_compat_oai_responses", None, r"match_regex\(", "own_text(", OTHER_NOISE),
    ("test_router", None, r'(?<!\()"(ggml-org/[^"]*:[^"]*)"', r'local("\1")', HUB_NAME),
    ("test_router", ["test_router_chat_completion_stream"], r'"model": model,', '"model": local(model),', HUB_NAME),
    ("test_stream", None, r'(?<!\()"(ggml-org/[^"]*:[^"]*)"', r'local("\1")', HUB_NAME),
]

# What drey does differently on purpose: a case that passes with these as well is by design.
DIFFERENCES = [
    ("test_security", ["test_cors_options", "test_cors_origins_localhost_reflects"], r"status_code == 200",
     "status_code == 204", "the answer to a preflight request has no body, and says so"),
    ("test_security", ["test_cors_options"], r"== cors_header_value", '== cors_header_value.replace("*", "Authorization")',
     "the headers that the page asks for are named, as * does not stand for Authorization"),
    ("test_security", ["test_cors_origins_localhost_rejects"], r"status_code == 200", "status_code == 403",
     "a page that may not ask is refused, not answered without the header"),
    ("test_chat_completion", ["test_chat_template", "test_chat_template_assistant_prefill",
                              "test_chat_template_continue_final_message_vllm_compat"],
     r'("max_tokens": 8,)', r'\1 "verbose": True,', "a request asks for __verbose, not the server's options"),
    ("test_chat_completion", ["test_chat_template_assistant_prefill"], r'\{re_prefill\}"\)',
     r'{re_prefill}".replace("Wh\\n\\n", "Wh\\n"))',
     "parts of a message are put together with one line feed, as they are elsewhere"),
    ("test_metrics", ["test_metrics_generation_rate_excludes_first_token"], r"< 1e-6", "< 1e-6 * expected",
     "numbers are written with nine digits"),
    ("test_embedding", ["test_embedding_error_prompt_too_long"], r'"too large"', '"exceeds the available context"',
     "the sentence is the same for all endpoints"),
    ("test_compat_anthropic", ["test_anthropic_tool_result_with_image", "test_anthropic_vision_format_accepted"],
     r"== 500", "== 400", "images that are not read are the request's fault"),
    ("test_slot_save", ["test_slot_save_restore"], r"== 84", "== 85",
     "the token that was written last is counted as well"),
    ("test_slot_save", ["test_slot_save_restore"], r'prompt_n"\] == 6', 'prompt_n"] <= 6',
     "what another session knows is copied, and not computed"),
]

# For the cases that call tools, with a model of the runner's: what stands for time.
TOOL_CHANGES = [
    ("test_tool_call", None, r"^TIMEOUT_HTTP_REQUEST = 60$", "TIMEOUT_HTTP_REQUEST = 3600", "slow machines"),
    ("test_tool_call", None, r"^    server\.server_port = 8081\n", "", "the port that the runner chose"),
]

NO_IMAGES = "drey reads no images"
NO_SHIFT = "nothing is ever cut: a context that is full ends the text"
NO_TOOLS = "tools of the server itself"
NO_PROXY = "a proxy for the page"
NO_HUB = "a hub"
NO_PRESETS = "files that say which models there are"

# (class, file, why, cases), of cases that fail also when they are changed. Each is a test, with all
# its parameters, or one case of it: what else breaks in a file deviates.
KNOWN = [
    ("by design", "test_basic",
     "each name is an entry of the list, so that a program finds the one that it looks for", [
        "test_server_model_aliases_and_tags"]),
    ("missing", "test_compat_anthropic", NO_IMAGES, ["test_anthropic_vision_base64_with_multimodal_model"]),
    ("missing", "test_security", NO_IMAGES, [
        "test_local_media_file[../../../tools-file://mtmd/test-1.jpeg-True]",
        "test_local_media_file[../../../tools-file:////mtmd//test-1.jpeg-True]"]),
    ("missing", "test_slot_save", NO_IMAGES, [
        "test_slot_save_restore_with_image", "test_slot_save_restore_with_two_images",
        "test_slot_save_restore_with_image_across_restart",
        "test_slot_save_restore_image_payload_larger_than_context", "test_slot_restore_media_file_without_mmproj"]),
    ("missing", "test_vision_api", NO_IMAGES, [
        "test_models_supports_multimodal_capability", "test_v1_models_supports_multimodal_capability",
        "test_vision_chat_completion[What is this:\\n-IMG_URL_0-True-(cat)+]",
        "test_vision_chat_completion[What is this:\\n-IMG_BASE64_URI_0-True-(cat)+]",
        "test_vision_chat_completion[What is this:\\n-IMG_URL_1-True-(frog)+]",
        "test_vision_chat_completion[Test test\\n-IMG_URL_1-True-(frog)+]", "test_vision_chat_completion_token_count",
        "test_vision_completion[What is this: <__media__>\\n-IMG_BASE64_0-True-(cat)+]",
        "test_vision_completion[What is this: <__media__>\\n-IMG_BASE64_1-True-(frog)+]",
        "test_vision_embeddings[What is this: <__media__>\\n-IMG_BASE64_0-True]",
        "test_vision_embeddings[What is this: <__media__>\\n-IMG_BASE64_1-True]"]),
    ("by design", "test_compat_anthropic", "a chat without messages is refused", ["test_anthropic_empty_messages"]),
    ("missing", "test_compat_gcp", "Google's form of requests", [
        "test_gcp_predict_camel_case", "test_gcp_predict_multiple_instances"]),
    ("by design", "test_ctx_shift", NO_SHIFT, ["test_ctx_shift_enabled"]),
    ("by design", "test_speculative", NO_SHIFT, ["test_with_ctx_shift"]),
    ("by design", "test_ignore_eos",
     "the end of a text is passed over, not forbidden, so that the text is the model's", [
        "test_ignore_eos_populates_logit_bias"]),
    ("other model", "test_infill", "marked as slow: it wants a model of a gigabyte", ["test_with_qwen_model"]),
    ("other model", "test_kv_keep_only_active", "llama-server's log", ["test_clear_and_restore"]),
    ("missing", "test_lora", "LoRA: refused with a sentence", [
        "test_lora", "test_lora_per_request", "test_with_big_model"]),
    ("missing", "test_mcp_servers", "MCP in the server", [
        "test_mcp_tools_listed_in_tools_endpoint", "test_mcp_tool_invocation", "test_mcp_bad_command_does_not_crash",
        "test_mcp_multiple_servers", "test_mcp_tools_not_listed_when_not_configured",
        "test_mcp_fail_once_tool_eventual_success", "test_mcp_tools_via_json_config_file",
        "test_mcp_tools_slot_independent", "test_mcp_concurrent_tool_calls", "test_mcp_tool_timeout",
        "test_mcp_warmup_partial_failure", "test_mcp_notification_during_request",
        "test_mcp_instance_respawn_after_crash", "test_mcp_fail_once_eventual_success_verified",
        "test_mcp_empty_tool_list", "test_mcp_rapid_succession_calls", "test_mcp_notification_burst",
        "test_mcp_tool_definition_shape_via_chat_completions", "test_mcp_slow_tool_call_slot_release",
        "test_mcp_grandchild_holding_pipes_does_not_deadlock"]),
    ("missing", "test_proxy", NO_PROXY, [
        "test_mcp_no_proxy", "test_mcp_proxy", "test_mcp_proxy_custom_port", "test_mcp_proxy_no_content"]),
    ("missing", "test_security", NO_PROXY, ["test_cors_proxy_only_forwards_explicit_proxy_headers"]),
    ("missing", "test_rerank", "models with a head for comparing texts: refused with a sentence", [
        "test_rerank", "test_rerank_tei_format", "test_rerank_usage", "test_rerank_top_n", "test_rerank_tei_top_n"]),
    ("other model", "test_router", "llama-server's own properties", ["test_router_props"]),
    ("by design", "test_router", "a request loads the model that it names", ["test_router_no_models_autoload"]),
    ("other model", "test_router", "llama-server's own delay of answers, for tests", [
        "test_router_queue_client_disconnect_keeps_model"]),
    ("missing", "test_stream", "a stream is known, and can be stopped or resumed, once its model is loaded", [
        "test_stream_stop_during_model_load", "test_stream_resumes_after_reload_during_model_load"]),
    ("missing", "test_router", NO_PRESETS, [
        "test_router_reload_models", "test_router_dedup_cache_models"]),
    ("missing", "test_router", NO_HUB, [
        "test_router_remote_preset", "test_router_download_model", "test_router_delete_model"]),
    ("other model", "test_security", "files of llama-server's own page", [
        "test_access_static_assets_without_api_key"]),
    ("by design", "test_security", "pages send a key in a header, and no cookies", [
        "test_cors_options[origin-Access-Control-Allow-Credentials-true]"]),
    ("missing", "test_security", NO_TOOLS, ["test_cors_origins_defaults_to_localhost_with_tools_enabled"]),
    ("missing", "test_tools_builtin", NO_TOOLS, [
        "test_tools_builtin_grep_search", "test_tools_builtin_read_file", "test_tools_builtin_write_then_edit_file",
        "test_tools_builtin_edit_file_rejects_non_unique_old_text", "test_tools_builtin_exec_shell_command_stream",
        "test_tools_builtin_cwd_header", "test_tools_builtin_runtime_header",
        "test_tools_builtin_runtime_header_unknown_scheme",
        "test_tools_builtin_runtime_header_rejects_ssh_option_injection",
        "test_tools_builtin_runtime_header_rejects_container_option_injection",
        "test_tools_builtin_docker_runtime_cleans_up_spawned_container",
        "test_tools_builtin_edit_file_rejects_overlapping_edits", "test_tools_builtin_file_glob_search_type_dir",
        "test_tools_builtin_file_glob_search_max_depth_and_limit", "test_tools_builtin_file_glob_search_junk_dirs",
        "test_tools_builtin_file_glob_search_rejects_invalid_type",
        "test_tools_builtin_cwd_header_overrides_model_param", "test_tools_builtin_cwd_relative_paths"]),
    ("missing", "test_sleep", "giving memory back after some time; with several models it is given to others", [
        "test_server_sleep", "test_server_sleep_read_only_endpoints", "test_server_sleep_metrics_buckets"]),
    ("other model", "test_slot_save", "a file of an older llama-server", ["test_slot_restore_legacy_token_list"]),
]


def known(node):
    """(class, why) of a case that is known to fail; None: it is not."""
    file, case = node.removeprefix("unit/").split("::", 1)
    for kind, of, why, cases in KNOWN:
        if of + ".py" == file and (case in cases or case.split("[")[0] in cases):
            return kind, why
    return None


def unknown_names(nodes):
    """Names of known cases that are not there."""
    there = {name for node in nodes for name in (node.removeprefix("unit/"), node.removeprefix("unit/").split("[")[0])}
    files = {name.split("::")[0] for name in there}
    return [f"{of}.py::{case}" for _, of, _, cases in KNOWN for case in cases
            if of + ".py" in files and f"{of}.py::{case}" not in there]


def difference(node):
    """Reason why a case that passes if changed is by design; None: it passes in substance."""
    file, case = node.removeprefix("unit/").split("::", 1)
    return next((why for of, functions, _, _, why in DIFFERENCES
                 if of + ".py" == file and case.split("[")[0] in functions), None)


def function_spans(text):
    """{name: (begin, end)} of the functions of a file, with what is in front of them."""
    starts = [(m.start(), m.group(1)) for m in re.finditer(r"^(?:@pytest[^\n]*(?:\n[^\n]*)*?\n)?def (\w+)\(", text, re.M)]
    ends = [start for start, _ in starts[1:]] + [len(text)]
    return {name: (start, end) for (start, name), end in zip(starts, ends)}


def change(folder, changes):
    for file, functions, pattern, replacement, _ in changes:
        path = os.path.join(folder, file + ".py")
        text = open(path).read()
        spans = sorted(function_spans(text)[name] for name in functions) if functions else [(0, len(text))]
        for begin, end in reversed(spans):
            changed, n = re.subn(pattern, replacement, text[begin:end], flags=re.M)
            assert n, f"llama_cases.py: nothing in {file} is like {pattern}"
            text = text[:begin] + changed + text[end:]
        with open(path, "w") as out:
            out.write(text)
