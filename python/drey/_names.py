"""Names of options that people bring from other programs, and what drey calls the same thing."""
import difflib
from typing import Any, Collection, Mapping

from ._errors import UsageError

# Options of Model() and of texts, as their signatures have them.
OPENING = ("target", "draft", "memory", "context", "threads", "sessions", "policy", "kv", "cpu", "fallback", "ahead",
           "alpha", "fallback_step", "bld_fallback", "bld_rollback", "progress", "verbose")
WRITING = ("max_tokens", "temperature", "top_p", "top_k", "min_p", "seed", "repeat_penalty", "frequency_penalty",
           "presence_penalty", "penalty_last_n", "dry_multiplier", "dry_base", "dry_allowed_length",
           "dry_penalty_last_n", "stop", "logit_bias", "json_schema", "regex", "choices", "gbnf", "grammar",
           "response_format", "ignore_eos", "sampling")

# {a name elsewhere: the name here}. Names of llama-cpp-python, vLLM, transformers, ollama, OpenAI.
_SAME = {
    "model_path": "target", "model": "target", "path": "target", "model_file": "target", "filename": "target",
    "n_ctx": "context", "num_ctx": "context", "ctx_size": "context", "n_context": "context",
    "max_seq_len": "context", "max_model_len": "context", "context_length": "context",
    "n_threads": "threads", "num_threads": "threads", "num_thread": "threads", "n_threads_batch": "threads",
    "n_sessions": "sessions", "n_seq_max": "sessions", "n_parallel": "sessions", "max_num_seqs": "sessions",
    "draft_model": "draft", "model_draft": "draft", "speculative_model": "draft",
    "memory_bytes": "memory", "budget": "memory", "max_memory": "memory",
    "type_k": "kv", "type_v": "kv", "kv_cache_dtype": "kv", "cache_type": "kv",
    "on_progress": "progress", "progress_callback": "progress",
    "n_predict": "max_tokens", "num_predict": "max_tokens", "max_new_tokens": "max_tokens",
    "max_completion_tokens": "max_tokens", "max_length": "max_tokens", "n_tokens": "max_tokens",
    "temp": "temperature", "topp": "top_p", "topk": "top_k", "minp": "min_p", "random_seed": "seed",
    "repetition_penalty": "repeat_penalty", "rep_pen": "repeat_penalty", "repeat_last_n": "penalty_last_n",
    "stops": "stop", "stop_sequences": "stop", "stop_strings": "stop", "stop_words": "stop",
    "schema": "json_schema", "guided_json": "json_schema", "guided_regex": "regex", "guided_choice": "choices",
    "guided_grammar": "gbnf", "format": "response_format", "sampling_params": "sampling",
    "generation_config": "sampling",
}

# {a name elsewhere: what to do instead}
_OTHERWISE = {
    "repo_id": "drey.Model.from_pretrained(repo_id, filename) fetches a model and opens it",
    "n_gpu_layers": "leave it out: memory= decides how much of the model is kept",
    "n_batch": "leave it out: the plan decides how much of a prompt is read at a time",
    "n_ubatch": "leave it out: the plan decides how much of a prompt is read at a time",
    "use_mmap": "leave it out: weights are read past the page cache, within memory=",
    "use_mlock": "leave it out: what is pinned within memory= stays in memory",
    "offload_kqv": "leave it out", "flash_attn": "leave it out: attention always works in blocks",
    "chat_format": "leave it out: the model's own template is used",
    "chat_handler": "leave it out: the model's own template is used",
    "embedding": "leave it out: model.embed() works with every model",
    "logits_all": "leave it out: logprobs= works without it",
    "stream": "generate and chat always yield pieces; complete waits for all of a text",
    "lora_path": "adapters are not computed here: merge it into the model's file",
    "rope_freq_base": "leave it out: the model's file says it",
    "rope_freq_scale": "leave it out: the model's file says it",
    "suffix": "texts in the middle of others are written by drey serve (/infill)",
    "n": "one call writes one text: take model.session() for each", "best_of": "one call writes one text",
    "tfs_z": "it is not computed here", "typical_p": "it is not computed here",
    "mirostat_mode": "it is not computed here", "logits_processor": "take logit_bias= or grammar=",
    "stopping_criteria": "leave the loop of generate() to end a text",
    "logprobs": "take create_completion(..., logprobs=3) or create_chat_completion(..., logprobs=True)",
    "top_logprobs": "take create_chat_completion(..., logprobs=True, top_logprobs=3)",
    "tools": "take create_chat_completion(..., tools=[...])",
    "tool_choice": "take create_chat_completion(..., tools=[...], tool_choice=...)",
    "functions": "it is the older form: give tools=", "function_call": "it is the older form: give tool_choice=",
}

# {an attribute of llama-cpp-python's model: the member here}
ATTRIBUTES = {
    "save_state": "save(path)", "load_state": "load(path)", "n_ctx": "plan.n_context", "n_vocab": "info.n_vocab",
    "n_embd": "info.n_embd", "eval": "generate(prompt)", "sample": "generate(prompt)", "n_tokens": "tokens",
    "tokenizer": "tokenize(text) and model.detokenize(ids)", "metadata": "info", "model_path": "info.path",
}


def refuse_unknown(given: Mapping[str, Any], accepted: Collection[str], of: str) -> None:
    """UsageError for the first name that `of` ("drey.Model()") does not accept, with the one that was
    probably meant."""
    for name in given:
        if name not in accepted:
            raise UsageError("%s takes no %s=: %s" % (of, name, _advice(name, accepted)))


def _advice(name: str, accepted: Collection[str]) -> str:
    meant = _SAME.get(name, name)
    if meant in accepted:
        return "did you mean %s=?" % meant
    if meant in OPENING and meant != "target":
        return "%s= is given when the model opens, drey.Model(..., %s=...)" % (meant, meant)
    if meant in WRITING:
        return "%s= is given with each text, model.generate(..., %s=...)" % (meant, meant)
    if name in _OTHERWISE:
        return _OTHERWISE[name]
    near = difflib.get_close_matches(name.lower(), accepted, 1, 0.6)
    return "did you mean %s=?" % near[0] if near else "it takes %s" % ", ".join(accepted)
