"""Requests in the form in which programs send them, with all their usual fields: each is answered.
serve_shapes.py DREY FOLDER (with toy.gguf)"""
from serve_client import *

drey, folder = sys.argv[1:]
chat, native, text = "/v1/chat/completions", "/completion", "/v1/completions"
hello = [{"role": "system", "content": "You help."}, {"role": "user", "content": "Say hello."}]
blocks = {"type": "text", "text": "Say hello.", "cache_control": {"type": "ephemeral"}}
READ = {"type": "object", "properties": {"path": {"type": "string", "description": "Where", "maxLength": 9}, "mode": {"type": "string", "enum": ["slice", "whole"]}},
        "required": ["path", "mode"], "additionalProperties": False}
function = {"type": "function", "function": {"name": "read_file", "description": "Reads", "parameters": READ, "strict": True}}

# SillyTavern, "Text Completion" with llama.cpp: the defaults of 2024 and of 2026.
TAVERN = {"prompt": "Once", "max_new_tokens": 4, "max_tokens": 4, "temperature": 0.7, "top_p": 0.5, "typical_p": 1, "typical": 1, "min_p": 0,
          "repetition_penalty": 1.2, "frequency_penalty": 0, "presence_penalty": 0, "top_k": 40, "skew": 0, "min_tokens": 0, "add_bos_token": True,
          "smoothing_factor": 0, "smoothing_curve": 1, "dry_allowed_length": 2, "dry_multiplier": 0, "dry_base": 1.75,
          "dry_sequence_breakers": '["\\n", ":", "\\"", "*"]', "dry_penalty_last_n": 0, "max_tokens_second": 0, "stopping_strings": ["\nYou:"],
          "stop": ["\nYou:"], "truncation_length": 4096, "ban_eos_token": False, "skip_special_tokens": True, "top_a": 0, "tfs": 1, "mirostat_mode": 0,
          "mirostat_tau": 5, "mirostat_eta": 0.1, "custom_token_bans": "", "banned_strings": [], "api_type": "llamacpp", "api_server": "http://x/",
          "xtc_threshold": 0.1, "xtc_probability": 0, "rep_pen": 1.2, "rep_pen_range": 0, "repetition_penalty_range": 0, "guidance_scale": 1,
          "negative_prompt": "", "repeat_penalty": 1.2, "repeat_last_n": 0, "n_predict": 4, "num_predict": 4, "num_ctx": 4096, "mirostat": 0,
          "ignore_eos": False, "rep_pen_slope": 1, "logit_bias": [], "grammar": "", "cache_prompt": True}
OLD = {**TAVERN, "samplers": ["top_k", "tfs_z", "typical_p", "top_p", "min_p", "temperature"], "sampler_seed": -1, "seed": -1, "tfs_z": 1,
       "grammar_string": "", "legacy_api": False}
NEW = {**TAVERN, "samplers": ["penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature", "adaptive_p"],
       "include_reasoning": True, "nsigma": 0, "top_n_sigma": 0, "min_keep": 0, "adaptive_target": -0.01, "adaptive_decay": 0.9, "n_probs": 10}
TWICE = {"prompt": "Once", "max_tokens": 4, "guided_decoding_backend": "guidance", "guided_grammar": 'root ::= "yes"',
         "structured_outputs": {"grammar": 'root ::= "yes"'}}  # guidance, to vLLM of any age
GRAMMAR = {**NEW, "grammar": 'root ::= "yes"', "grammar_string": 'root ::= "yes"', "ban_eos_token": False}
BANS = {**NEW, "custom_token_bans": "5,6", "logit_bias": [[5, False], [6, False]], "dry_multiplier": 0.8, "dry_sequence_breakers": ["\n", ":"]}
# Cline 3.0.56: what its own schemas have.
LINE = {"description": "A line", "anyOf": [{"type": "integer", "exclusiveMinimum": 0, "maximum": 9007199254740991}, {"type": "null"}]}
FILES = {"type": "array", "items": {"type": "object", "properties": {"path": {"type": "string", "minLength": 1, "maxLength": 9}, "start_line": LINE, "end_line": LINE},
                                    "required": ["path"], "additionalProperties": False, "description": "A file"}, "minItems": 1, "maxItems": 1}
CLINE = {"type": "function", "function": {"name": "read_files", "description": "Reads", "parameters": {
    "type": "object", "properties": {"files": FILES, "old_text": {"type": ["string", "null"], "maxLength": 9}, "all": {"type": "boolean", "default": True}},
    "required": ["files"], "additionalProperties": False}}}
called = [{"role": "assistant", "content": "", "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "read_files", "arguments": "{}"}}]},
          {"role": "tool", "tool_call_id": "call_1", "content": "[]"}]

ASKED = {
    "SillyTavern, 2024": (native, OLD), "SillyTavern": (native, NEW), "SillyTavern, a grammar": (native, GRAMMAR), "guidance": (text, TWICE), "SillyTavern, bans": (native, BANS),
    "Open WebUI": (chat, {"stream": True, "model": "toy", "messages": hello, "stream_options": {"include_usage": True}, "temperature": None, "max_tokens": 4,
                          "stop": None, "seed": None, "metadata": {"chat_id": "a", "features": {}}}),
    "Roo Code": (chat, {"model": "drey", "temperature": 0, "messages": [hello[0], {"role": "user", "content": [{"type": "text", "text": "<user_message>a</user_message>"}]}],
                        "stream": True, "stream_options": {"include_usage": True}, "tools": [function], "tool_choice": "auto", "parallel_tool_calls": True,
                        "max_completion_tokens": 4}),
    "Roo Code, the system prompt as parts": (chat, {"model": "drey", "messages": [{"role": "system", "content": [blocks]}, {"role": "user", "content": [blocks]}],
                                                    "stream": True, "tools": [function], "max_tokens": 4}),
    "Cline": (chat, {"model": "drey", "messages": hello, "tools": [CLINE], "tool_choice": "auto", "stream": True, "stream_options": {"include_usage": True}}),
    "Cline, a second turn": (chat, {"model": "drey", "messages": [*hello, *called], "tools": [CLINE], "tool_choice": "required", "stream": True,
                                    "stream_options": {"include_usage": True}}),
    "opencode": (chat, {"model": "drey", "max_tokens": 32000, "temperature": 0.55, "top_p": 1, "messages": [{"role": "system", "content": "a"}, *hello],
                        "tools": [function], "tool_choice": "auto", "stream": True, "stream_options": {"include_usage": True}}),
    "opencode, a title": (chat, {"model": "drey", "max_tokens": 32000, "temperature": 0.5, "messages": [hello[0], {"role": "user", "content": "Generate a title for this conversation:\n"},
                                 hello[1]], "stream": True, "stream_options": {"include_usage": True}}),
    "opencode (AI SDK)": (chat, {"model": "drey", "max_tokens": 4, "temperature": 0, "top_p": 1, "messages": [
        *hello, {"role": "assistant", "content": None, "tool_calls": [{"id": "abcdefghi", "type": "function", "function": {
            "name": "read_file", "arguments": '{"path": "a", "mode": "whole"}'}}]},
        {"role": "tool", "tool_call_id": "abcdefghi", "content": "text"}], "tools": [function], "tool_choice": "auto", "stream": True,
        "stream_options": {"include_usage": True}}),
    "Continue": (text, {"model": "drey", "prompt": "<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>", "max_tokens": 4, "temperature": 0.01, "stream": True,
                        "stop": ["<|endoftext|>", "<|fim_prefix|>", "/src/", "```"]}),
    "Continue, a chat": (chat, {"model": "drey", "messages": [hello[0], {"role": "user", "content": [{"type": "text", "text": "Say hello."}]}], "max_tokens": 4,
                                "temperature": 0.5, "stream": True, "stop": ["<|im_end|>"], "tools": [function], "prediction": {"type": "content", "content": "a"}}),
    "Continue, llama.cpp": (native, {"model": "drey", "prompt": "a", "stream": True, "n_predict": 4, "stop": ["<|im_end|>"], "top_k": 40, "top_p": 1, "min_p": 0.05,
                                     "mirostat": 0, "temperature": 0.5}),
    "llama.vscode, an edit": (chat, {"messages": hello, "stream": False, "cache_prompt": True, "samplers": "edkypmxt", "temperature": 0.8, "dynatemp_range": 0,
                                     "dynatemp_exponent": 1, "top_k": 40, "top_p": 0.95, "min_p": 0.05, "typical_p": 1, "xtc_probability": 0,
                                     "xtc_threshold": 0.1, "repeat_last_n": 64, "repeat_penalty": 1, "presence_penalty": 0, "frequency_penalty": 0,
                                     "dry_multiplier": 0, "dry_base": 1.75, "dry_allowed_length": 2, "dry_penalty_last_n": -1, "max_tokens": 4,
                                     "timings_per_token": False}),
    "llama.vim (without its two texts)": (native, {"prompt": "a", "n_predict": 4, "n_indent": 4, "top_k": 40, "top_p": 0.99, "stream": False,
                                                   "samplers": ["top_k", "top_p", "infill"], "cache_prompt": True, "t_max_prompt_ms": 500,
                                                   "t_max_predict_ms": 1000, "response_fields": ["content", "timings/prompt_n", "truncated", "tokens_cached"]}),
    "llama.vim, ahead of time": (native, {"prompt": "a", "n_predict": 0, "temperature": 0.0, "stream": False, "samplers": [], "cache_prompt": True,
                                          "t_max_prompt_ms": 1, "t_max_predict_ms": 1, "response_fields": [""]}),
    "lm-evaluation-harness": (text, {"model": "drey", "prompt": [[1, 2, 3, 4]], "temperature": 0, "max_tokens": 1, "logprobs": 1, "seed": 1234, "echo": True}),
    "Claude Code": ("/v1/messages?beta=true", {
        "model": "drey", "messages": [{"role": "user", "content": [{"type": "text", "text": "<system-reminder>\na</system-reminder>"}, {"type": "text", "text": "Hi"}]},
                                      {"role": "system", "content": [blocks]}],
        "system": [{"type": "text", "text": "x-anthropic-billing-header: a=1;"}, blocks], "tools": [
            {"name": "Read", "description": "Reads", "input_schema": {"$schema": "https://json-schema.org/draft/2020-12/schema", **READ}},
            {"name": "Later", "description": "None", "input_schema": {"type": "object", "properties": {}}, "defer_loading": True}],
        "metadata": {"user_id": "{}"}, "max_tokens": 4, "thinking": {"type": "adaptive", "display": "omitted"},
        "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}, "output_config": {"effort": "high"}, "stream": True}),
    "Codex": ("/v1/responses", {
        "model": "drey", "stream": True, "input": [{"type": "message", "id": "msg_1", "role": "developer", "content": [{"type": "input_text", "text": "a"}]},
                                                   {"type": "message", "id": "msg_2", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]}],
        "tools": [{"type": "function", "name": "exec_command", "description": "Runs", "strict": False, "parameters": READ},
                  {"type": "namespace", "name": "agents", "description": "a", "tools": []}, {"type": "web_search", "external_web_access": True}],
        "tool_choice": "auto", "parallel_tool_calls": True, "reasoning": {"summary": "auto"}, "store": False, "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": "a", "client_metadata": {"session_id": "a"}, "max_output_tokens": 4})}

s = Server(drey, f"{folder}/toy.gguf", "-c", "2048").wait_ready()
for who, (path, body) in ASKED.items():
    status, _, said = s.request("POST", path, body)
    check(status == 200 and b'"error":{' not in said, f"{who}: {status} {said[:300]}")
check(s.post(native, GRAMMAR)[1]["content"] == "yes", "a grammar that has two names")
check(s.stop() == 0, "the server's end")
done()
