"""Bad input and bad clients of drey serve: one clear answer to each, and everybody else is served
on. serve_bad.py DREY FOLDER"""
import resource, select, threading

from serve_client import *

drey, folder = sys.argv[1:]
model = f"{folder}/toy.gguf"
usual = ("-d", "none", "--sessions", "2", "-c", "2000")
long_text = {"prompt": "The tree", "max_tokens": 1500, "ignore_eos": True}


def refused(s, path, body, status, *parts, headers=None):
    """The answer is an error in OpenAI's shape, with these words in it."""
    got, _, text = s.request("POST", path, body, headers)
    try:
        error = json.loads(text)["error"]
        good = got == error["code"] == status and all(p in error["message"] + error["type"] for p in parts) and len(error["message"]) > 8
    except (ValueError, KeyError):
        good = False
    check(good, f"{path} {str(body)[:80]}: {got} {text[:300]}")


def bad_bodies(s):
    chat, text = "/v1/chat/completions", "/v1/completions"
    for body, part in (("", "too early"), ("{", "key"), ("[1]", "object"), ('{"prompt": "a"} x', "follows"), ('{"prompt": "\\x"}', "\\"),
                       (b'{"prompt": "\xff\xfe"}', "UTF-8"), ("[" * 100000, "too deep"), ('{"prompt": "a', "no end"), ("{'a': 1}", "key"),
                       ('{"prompt": 1e999}', "too large"), ('{"a": [' + "0," * 200000 + "0]}", "more values")):
        refused(s, text, body, 400, "no JSON" if body not in ("[1]",) else "object", part)
    refused(s, text, {}, 400, "prompt")
    refused(s, text, {"prompt": {}}, 400, "prompt")
    refused(s, text, {"prompt": ""}, 400, "empty")
    refused(s, text, {"prompt": [1, -1]}, 400, "ids are 0 to")
    refused(s, text, {"prompt": [1.5]}, 400, "ids are 0 to")
    refused(s, "/completion", {"prompt": "a " * 3000}, 400, "exceed_context_size_error", "exceeds the available context size of 2000")
    for path, body in ((text, {"prompt": "a " * 3000}), (chat, {"messages": [{"role": "user", "content": "a " * 3000}]})):
        status, error = s.post(path, body)[0], s.post(path, body)[1]["error"]
        check((status, error["code"], error["type"], error["n_ctx"]) == (400, "context_length_exceeded", "exceed_context_size_error", 2000)
              and error["n_prompt_tokens"] > 2000 and "prompt is too long" in error["message"] and "exceeds the available context size" in error["message"],
              f"too long (litellm and LangChain look for these words): {error}")
    for key, value in (("temperature", -1), ("temperature", "hot"), ("top_p", 2), ("n", 0), ("n", 100), ("max_tokens", "x"), ("max_tokens", 1.5),
                       ("seed", "x"), ("stream", 1), ("stop", 5), ("speculative", {"n_max": 3}), ("stop", ["x"] * 17), ("stop", "x" * 5000), ("logit_bias", 1), ("logit_bias", {"999999": 1}),
                       ("logit_bias", [[1]]), ("logprobs", 50), ("id_slot", 7), ("min_p", 3), ("model", 3)):
        refused(s, text, {"prompt": "a", key: value}, 400, key)
    for key, value in (("repeat_penalty", 200), ("repeat_last_n", -2), ("dry_multiplier", -1), ("dry_base", "x"), ("mirostat", 2), ("grammar", "root ::= x"),
                       ("json_schema", {"contains": 3}), ("response_format", {"type": "json_schema"}), ("response_format", {"type": "json_object", "json_schema": {"type": "object"}}), ("guided_regex", "(a"),
                       ("guided_choice", [1]), ("guided_json", "{"), ("guided_json", False), ("guided_grammar", 5), ("structured_outputs", {"structural_tag": "x"}),
                       ("structured_outputs", 1), ("json_schema", {"enum": ["x" * 70000]}), ("grammar", "root ::= root \"a\" | \"b\""), ("best_of", 2), ("echo", 5),
                       ("typical_p", 0.5), ("tool_choice", "required"), ("tools", [{}]), ("presence_penalty", -101), ("frequency_penalty", True),
                       ("repeat_penalty", -1), ("presence_penalty", "x"), ("top_n_sigma", 1), ("t_max_predict_ms", "x"), ("n_indent", -1),
                       ("function_call", {"name": "f"}), ("function_call", "f"), ("modalities", ["audio"]), ("modalities", ["text", "audio"]),
                       ("modalities", "text"), ("reasoning_effort", "high"), ("reasoning_format", "deepseek"), ("web_search_options", {}),
                       ("guided_grammar", "x"),
                       ("format", "json"), ("options", {"num_ctx": 5}), ("repetition_penalty", -1), ("samplers", [1]), ("samplers", 5),
                       ("min_tokens", 5), ("length_penalty", 2), ("top_a", 0.1), ("smoothing_factor", 1), ("bad_words", ["a"]), ("enable_thinking", False),
                       ("thinking", {"type": "enabled"}), ("stop_token_ids", [1]), ("use_beam_search", True), ("chat_template", "x"),
                       ("adaptive_target", 0.5), ("n_cmpl", 2), ("grammar_lazy", True), ("reasoning_budget_tokens", 0),
                       ("thinking_budget_tokens", 5), ("image_data", [{}]), ("skip_special_tokens", False), ("logits_processors", ["x"]),
                       ("return_token_ids", True), ("return_tokens_as_token_ids", True), ("prompt_embeds", "x"), ("include_reasoning", False),
                       ("thinking_token_budget", 5), ("watermark", True), ("details", True), ("decoder_input_details", True), ("return_full_text", True),
                       ("top_n_tokens", 2), ("adapter_id", "a"), ("num_beams", 4), ("penalty_alpha", 0.5), ("min_new_tokens", 1), ("plugins", [{"id": "web"}]),
                       ("typical", 0.5), ("mirostat_mode", 2), ("dynamic_temperature", True), ("rep_pen", -1), ("add_bos_token", False), ("ban_eos_token", True),
                       ("banned_strings", ["a"]), ("custom_token_bans", "5"), ("grammar_string", "x"), ("reasoning", {"effort": "low"}), ("reasoning", {}),
                       ("do_sample", 1), ("max_new_tokens", "x"), ("stopping_strings", 5),
                       ("truncate_prompt_tokens", 5), ("verbosity", "low"), ("stream_options", 5), ("response_format", "x"), ("response_format", {"type": 1})):
        refused(s, text, {"prompt": "a", key: value}, 400, f"'{key}'")
    refused(s, text, {"prompt": "a", "guided_regex": "a", "guided_choice": ["a"]}, 400, "send one")
    refused(s, text, {"prompt": "a", "suffix": "x"}, 501, "fill in the middle")
    refused(s, "/infill", {"input_prefix": "a"}, 400, "'input_suffix'")
    refused(s, "/infill", {"input_prefix": "a", "input_suffix": "b"}, 501, "fill in the middle")
    refused(s, text, {"prompt": ["a"] * 9}, 400, "9 prompts")
    refused(s, text, {"prompt": ["a", ""]}, 400, "empty")
    refused(s, text, {"prompt": {"prompt_string": "a", "multimodal_data": "x"}}, 400, "multimodal_data")
    refused(s, "/completion", {"prompt": "a", "response_fields": [5]}, 400, "'response_fields'")
    refused(s, "/completion", {"prompt": "a", "response_fields": ["x"] * 40}, 400, "'response_fields'")
    refused(s, text, {"prompt": "a", "guided_regex": "a", "ignore_eos": True}, 400, "ignore_eos")
    for key, value in (("presence_penalty", 0), ("frequency_penalty", 0.0), ("repeat_penalty", 1), ("tools", []), ("best_of", 1), ("stop", None),
                       ("response_format", {"type": "text"}), ("grammar", ""), ("guided_regex", None), ("logit_bias", {}), ("user", "me"), ("max_tokens", None), ("suffix", ""), ("top_k", -1),
                       ("top_n_sigma", -1), ("t_max_predict_ms", -1), ("function_call", "auto"), ("modalities", ["text"]), ("reasoning_format", "auto"),
                       ("stream_options", {}), ("reasoning_effort", None), ("repetition_penalty", 1.0), ("min_tokens", 0), ("guided_json", None),
                       ("adaptive_target", -1), ("n_cmpl", 1), ("grammar_lazy", False), ("reasoning_budget_tokens", -1), ("skip_special_tokens", True), ("include_reasoning", True),
                       ("add_bos_token", True), ("ban_eos_token", False), ("num_beams", 1), ("plugins", []), ("rep_pen", 1), ("max_new_tokens", 5), ("do_sample", True),
                       ("custom_token_bans", ""), ("reasoning", None), ("stop_token_ids", []), ("use_beam_search", False), ("smoothing_factor", 0), ("model", "gpt-9")):
        status, answer = s.post(text, {"prompt": "a", "max_tokens": 1, key: value})
        check(status == 200, f"{key} {value}: {answer}")
    hello = [{"role": "user", "content": "a"}]
    refused(s, chat, {}, 400, "messages")
    refused(s, chat, {"messages": [{"role": "user", "content": "a"}], "continue_final_message": True}, 400, "assistant")
    refused(s, chat, {"messages": hello, "chat_template_kwargs": 1}, 400, "chat_template_kwargs")
    refused(s, chat, {"messages": hello, "reasoning_effort": 1}, 400, "reasoning_effort")
    refused(s, "/completion", {"prompt": "a", "n": 2}, 400, "one text")
    for messages in ([], "x", [1], [{}], [{"role": 1}], [{"role": "user", "content": 5}], [{"role": "user", "content": [{"type": "image_url"}]}]):
        refused(s, chat, {"messages": messages}, 400)
    refused(s, chat, {"messages": hello, "top_logprobs": 2}, 400, "top_logprobs")
    for path in (chat, "/apply-template"):
        for key, value in (("add_generation_prompt", "no"), ("continue_final_message", 1), ("tools", [{}]), ("chat_template_kwargs", "x")):
            refused(s, path, {"messages": hello, key: value}, 400, f"'{key}'")
    refused(s, chat, {"messages": [{"role": "user", "content": "a\0b"}]}, 400, "NUL")
    refused(s, "/tokenize", {"content": 1}, 400, "content")
    for key in ("add_special", "parse_special", "with_pieces"):
        for value in ("x", 5):
            refused(s, "/tokenize", {"content": "a", key: value}, 400, f"'{key}'")
        check(s.post("/tokenize", {"content": "a", key: None})[0] == 200, f"{key} null")
    refused(s, "/detokenize", {"tokens": [1, "x"]}, 400, "tokens")
    refused(s, "/detokenize", {"tokens": [99999999]}, 400)
    refused(s, "/apply-template", {"messages": 1}, 400, "messages")


def bad_http(s):
    def status(data):
        answer = s.raw(data)
        return int(answer.split()[1]) if answer.startswith(b"HTTP/1.1 ") else answer
    host = b"Host: localhost\r\n"
    post = b"POST /v1/completions HTTP/1.1\r\n" + host
    for data, wanted in ((b"x\r\n\r\n", 400), (b"GET / HTTP/2.0\r\n\r\n", 505), (b"GET / HTTP/1.1\r\n\r\n", 400), (b"GET /health HTTP/1.1\n\n", 400),
                         (b"GET /health HTTP/1.1\r\n" + host + b"A : b\r\n\r\n", 400), (post + b"Content-Length: x\r\n\r\n", 400),
                         (post + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", 400), (post + b"Transfer-Encoding: gzip\r\n\r\n", 501),
                         (post + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n", 400), (post + b"Content-Length: 99999999999\r\n\r\n", 413),
                         (post + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400), (b"GET /" + b"a" * 20000, 431), (b"GET /health HTTP/1.1\r\n" + host + b"A: b\r\n" * 99 + b"\r\n", 400),
                         (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 50 + b"\r\n", 400), (b"PUT /health HTTP/1.1\r\nConnection: close\r\n" + host + b"\r\n", 405),
                         (b"GET /v1/completions HTTP/1.1\r\nConnection: close\r\n" + host + b"\r\n", 405), (b"GET /none HTTP/1.1\r\nConnection: close\r\n" + host + b"\r\n", 404),
                         (b"GET /health HTTP/1.1\r\nConnection: close\r\nHost: evil.example\r\n\r\n", 403),
                         (b"POST /v1/completions HTTP/1.1\r\nConnection: close\r\nOrigin: http://evil.example\r\n" + host + b"\r\n", 403),
                         (b"GET /health HTTP/1.0\r\n\r\n", 200), (b"GET http://localhost/health HTTP/1.1\r\nConnection: close\r\n" + host + b"\r\n", 200),
                         (b"GET HTTPS://127.0.0.1:80 HTTP/1.1\r\nConnection: close\r\n" + host + b"\r\n", 200),
                         (b"GET http://localhost?a=/b HTTP/1.1\r\nConnection: close\r\nHost: evil.example\r\n\r\n", 200),
                         (b"GET http://evil.example/health HTTP/1.1\r\nConnection: close\r\n" + host + b"\r\n", 403),
                         (b"GET http://localhost/health HTTP/1.1\r\n\r\n", 400), (b"GET http:///health HTTP/1.1\r\n" + host + b"\r\n", 400),
                         (b"GET http://me@localhost/health HTTP/1.1\r\n" + host + b"\r\n", 400), (b"GET ftp://localhost/ HTTP/1.1\r\n" + host + b"\r\n", 400),
                         (b"OPTIONS * HTTP/1.1\r\nConnection: close\r\n" + host + b"\r\n", 204), (b"GET * HTTP/1.1\r\n" + host + b"\r\n", 400),
                         (b"GET /%68ealth HTTP/1.1\r\nConnection: close\r\n" + host + b"\r\n", 200),
                         (b"GET /%6 HTTP/1.1\r\nConnection: close\r\n" + host + b"\r\n", 404), (b"GET /v1/models/ HTTP/1.1\r\nConnection: close\r\n" + host + b"\r\n", 404)):
        got = status(data)
        check(got == wanted, f"{data[:60]}: {got} instead of {wanted}")
    body = b'{"prompt": "a", "max_tokens": 2}'
    chunked = post + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n" + b"".join(b"%x\r\n%c\r\n" % (1, c) for c in body) + b"0\r\n\r\n"
    check(b" 200 " in s.raw(chunked)[:20], "a body in chunks")
    # An answer that does not wait for the body ends the connection, and says so.
    unread = s.raw(b"POST /none HTTP/1.1\r\n" + host + b"Content-Length: 2\r\n\r\n{}")
    check(b" 404 " in unread[:20] and b"Connection: close\r\n" in unread, f"an answer in front of the body: {unread[:200]}")
    check(s.post("/v1/completions", b"\xef\xbb\xbf" + body)[0] == 200, "a body after a byte order mark")
    large = b"{" + b" " * 100000 + body[1:]
    check(b" 200 " in s.raw(post + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(large) + large)[:20], "a large body")
    refused(s, "/v1/completions", b" " * (2 << 20), 413, "larger")
    expects = post + b"Connection: close\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body)
    c = s.connect()
    c.sendall(expects)
    lines = c.makefile("rb")
    check(lines.readline().startswith(b"HTTP/1.1 100") and lines.readline() == b"\r\n", "100-continue")
    c.sendall(body)
    check(b" 200 " in lines.readline(), "after 100-continue")
    c.close()
    # Byte by byte, with the usual time for that.
    c = s.connect()
    for byte in b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n":
        c.sendall(bytes([byte]))
    check(b" 200 " in c.makefile("rb").readline(), "a request byte by byte")
    c.close()
    # Several requests at once on a connection: an answer to each, in their order.
    get = b"GET /v1/models HTTP/1.1\r\n" + host
    answers = s.raw((get + b"\r\n") * 5 + get + b"Connection: close\r\n\r\n")
    check(answers.count(b"HTTP/1.1 200 OK") == 6, f"requests at once: {answers[:200]}")
    old = s.raw(b"POST /v1/completions HTTP/1.0\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    check(b"chunked" not in old and json.loads(old.split(b"\r\n\r\n", 1)[1])["choices"], f"HTTP/1.0: {old[:200]}")


def hang_ups(s):
    """Frees a client's session wherever the client goes."""
    for where in ("queue", "prompt", "writing"):
        before = s.get("/metrics")[1].decode()
        clients = []
        for _ in range(5 if where == "queue" else 1):
            c = s.connect()
            body = json.dumps(dict(long_text, stream=True)).encode()
            c.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            clients.append(c)
        if where == "writing":
            clients[0].recv(100)
        for c in clients:
            c.close()
        check(s.idle(), f"hang-up in {where}: the session stays busy")
    check(s.post("/v1/completions", {"prompt": "a", "max_tokens": 2})[0] == 200, "no request is served after hang-ups")


def silent_clients(s):
    """Clients that send no more still read; one that has gone as well frees the session."""
    short, path = dict(long_text, max_tokens=8), b" /v1/completions "
    for stream in False, True:
        for version in b"HTTP/1.1", b"HTTP/1.0":
            body = json.dumps(dict(short, stream=stream)).encode()
            c = s.connect()
            c.sendall(b"POST" + path + version + b"\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            if version == b"HTTP/1.1" or stream:
                c.shutdown(socket.SHUT_WR)
            answer = b"".join(iter(lambda: c.recv(65536), b""))
            check(b" 200 OK" in answer and b'"finish_reason":"length"' in answer, f"a client that sends no more ({version}, {stream}): {answer[:300]}")
            c.close()
    body = json.dumps(long_text).encode()
    c = s.connect()
    c.sendall(b"POST" + path + b"HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    c.shutdown(socket.SHUT_WR)
    c.recv(10)
    c.close()
    check(s.idle(), "a client that sent no more, and left, keeps its session")


def keys():
    with open(f"{folder}/keys", "w") as f:
        f.write("\r\n beta\r\n")
    s = Server(drey, model, *usual, "--api-key", "alpha", "--api-key-file", f.name, "--cors-origin", "https://a.example,localhost").wait_ready()
    asks = {"prompt": "a", "max_tokens": 1}
    for headers, status in (({}, 401), ({"Authorization": "Bearer alph"}, 401), ({"Authorization": "Bearer alpha,beta"}, 401), ({"Authorization": "alpha"}, 401),
                            ({"Authorization": "Bearer alpha"}, 200), ({"X-Api-Key": "beta"}, 200), ({"X-Api-Key": ""}, 401),
                            ({"X-Api-Key": "beta", "Origin": "https://b.example"}, 403), ({"X-Api-Key": "beta", "Origin": "null"}, 403),
                            ({"X-Api-Key": "beta", "Origin": "https://a.example"}, 200), ({"X-Api-Key": "beta", "Origin": "http://localhost:3000"}, 200),
                            ({"X-Api-Key": "beta", "Origin": "http://127.0.0.1:3000"}, 200), ({"X-Api-Key": "beta", "Origin": "http://[::1]:3000"}, 200),
                            ({"X-Api-Key": "beta", "Origin": "http://127.evil.example"}, 403), ({"X-Api-Key": "beta", "Origin": "http://10.0.0.1"}, 403)):
        got, answer_headers, text = s.request("POST", "/v1/completions", asks, headers)
        check(got == status, f"{headers}: {got} {text[:100]}")
        origin = headers.get("Origin") if got == 200 else None
        check(answer_headers["Access-Control-Allow-Origin"] == origin, f"{headers}: {answer_headers}")
    check(s.get("/health")[0] == 200 and s.get("/metrics")[0] == 401, "keys of GET")
    got, headers, _ = s.request("OPTIONS", "/v1/completions", None, {"Origin": "https://a.example", "Access-Control-Request-Headers": "authorization"})
    check(got == 204 and headers["Access-Control-Allow-Headers"] == "authorization" and headers["Content-Length"] is None, f"preflight: {got} {headers}")
    check(s.request("OPTIONS", "/v1/completions", None, {"Origin": "https://b.example"})[0] == 403, "a foreign preflight")
    taken = subprocess.run([drey, "serve", "-m", model, "--port", str(s.port), "-d", "none"], capture_output=True, text=True)
    check(taken.returncode == 1 and "cannot listen" in taken.stderr and str(s.port) in taken.stderr and "or take another one with --port" in taken.stderr, f"a port in use: {taken}")
    check(s.stop() == 0, "the end of the server with keys")
    check(re.search(r" 401 POST /v1/completions  [^:]*: This server needs a key: send Authorization: Bearer KEY\.\n", s.errors())
          and re.search(r" 401 POST /v1/completions  [^:]*: Invalid API Key: send one of this server's keys as Authorization: Bearer KEY\.\n", s.errors()), f"why a request was refused: {s.errors()}")


def wrong_keys():
    """Keys that no client can send are refused before a model is looked at."""
    for options, lines, variable, said in (((), "", "", "DREY_API_KEY has an empty key"), ((), "", "a b", "DREY_API_KEY has a key with a blank"),
                                           (("--api-key", ""), "", "a", "--api-key has an empty key"), (("--api-key-file",), "\n \n", "a", "has no key"),
                                           (("--api-key-file",), "a,b\n", "a", "has a comma"), (("--api-key-file",), "a b\n", "a", "--api-key-file has a key with")):
        with open(f"{folder}/keys", "w") as f:
            f.write(lines)
        options = (*options, f.name) if options == ("--api-key-file",) else options
        ran = subprocess.run([drey, "serve", "-m", "none", *options], capture_output=True, text=True, env=dict(os.environ, DREY_API_KEY=variable))
        check(ran.returncode == 2 and said in ran.stderr, f"{options}, {lines!r}, {variable!r}: {ran}")


def slow_clients(s):
    """A byte now and then: they get an answer when their time is over, and meanwhile the others are
    served."""
    def drip(front, answers):
        c = s.connect()
        c.sendall(front)
        while not select.select([c], [], [], 0.1)[0]:
            c.sendall(b"b")
        answers.append(c.recv(1000))
        c.close()
    answers = []
    fronts = (b"", b"GET /health HTTP/1.1\r\nA: ", b"POST /completion HTTP/1.1\r\nHost: x\r\nContent-Length: 9000\r\n\r\n",
              b"POST /completion HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2000\r\n")
    threads = [threading.Thread(target=drip, args=(front, answers)) for front in fronts]
    for t in threads:
        t.start()
    n_served = 0
    while any(t.is_alive() for t in threads):
        n_served += s.post("/completion", {"prompt": "a", "n_predict": 2})[0] == 200
    check(n_served > 0, "no request is served next to slow clients")
    check(len(answers) == 4 and all(b" 408 " in a[:20] for a in answers), f"slow clients: {answers}")


def pings(path, more, *marks):
    """A client that waits while others write hears that the server is there: after as many texts as
    take so long on this machine."""
    s = Server(drey, model, "-d", "none", "--sessions", "1", "-c", "4000", "--queue", "512", "--connections", "514").wait_ready()
    write = json.dumps({"prompt": "a", "max_tokens": 3900, "ignore_eos": True, "stream": True}).encode()
    wait = json.dumps({"max_tokens": 9, "stream": True, **more}).encode()
    heard, n_texts = b"", 1  # before its own text begins
    while not all(m in heard for m in marks) and n_texts <= 512:
        clients = [s.connect() for _ in range(n_texts + 1)]
        for c, at, body in [(c, b"/v1/completions", write) for c in clients[:-1]] + [(clients[-1], path.encode(), wait)]:
            c.sendall(b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % (at, len(body)) + body)
        answer, piece = b"", b"more"
        while not all(m in answer for m in marks) and b"delta" not in answer and b"choices" not in answer and piece:
            piece = clients[-1].recv(1000)
            answer += piece
        heard = answer.split(b"delta")[0].split(b"choices")[0]
        for c in clients:
            c.close()
        check(s.idle(), "clients that went are still written for")
        n_texts *= 2
    check(b" 200 " in heard[:20] and b"text/event-stream" in heard and all(m in heard for m in marks), f"{path}: a client that waits gets {answer[:900]}")
    check(s.stop() == 0, "the end after pings")


def full_disk():
    """Beginnings that cannot be written are kept in memory alone; it is said once, and nothing else
    happens."""
    s = Server(drey, model, "-d", "none", "-c", "512", "--sessions", "2", "--prefix-memory", "2M", "--prefix-folder", f"{folder}/full").wait_ready()
    resource.prlimit(s.process.pid, resource.RLIMIT_FSIZE, (16384, 16384))  # once it runs: a sanitizer also writes files when it begins
    texts = set()
    prompt = "".join(chr(97 + i * i % 26) for i in range(200))
    for i in range(600):
        status, answer = s.post("/v1/completions", {"prompt": prompt, "max_tokens": 20, "ignore_eos": True, "id_slot": i % 2})
        texts.add(answer["choices"][0]["text"] if status == 200 else str(answer))
        if i and s.metric("drey:prefix_disk_failed"):
            break
    check(s.metric("drey:prefix_disk_failed") == 1 and s.metric("drey:prefix_disk_bytes") == 0, "a full disk is not reported")
    check(texts == {run(drey, model, prompt, 20, "--ignore-eos")}, f"texts with a full disk: {texts}")
    check(answer["usage"]["prompt_tokens_details"]["cached_tokens"] >= 128, f"memory with a full disk: {answer['usage']}")
    check(s.stop() == 0, "the end with a full disk")
    check(s.errors().count("make room") == 1, f"a full disk: {s.errors()[-400:]}")


def limits():
    path = f"{folder}/d.sock"
    s = Server(drey, model, "-d", "none", "--sessions", "1", "--queue", "1", "-c", "2000", "--host", path, "--connections", "6", "--timeout", "1").wait_ready()
    check(s.address == f"unix:{path}" and os.stat(path).st_mode & 0o77 == 0, f"the socket: {s.address}")
    # A head, and a body, that never arrive.
    for data in (b"GET /health HT", b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{"):
        answer = s.raw(data)
        check(b" 408 " in answer[:20], f"{data}: {answer[:50]}")
    slow_clients(s)
    check(s.post("/v1/completions", {"prompt": "a", "max_tokens": 2})[0] == 200, "no request is served after slow clients")
    # A client that never reads is left; its text does not hold up anybody.
    c = s.connect()
    body = json.dumps(dict(long_text, stream=True, logprobs=20)).encode()
    c.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    check(s.idle(), "a client that never reads keeps its session")
    for _ in range(2400):
        if s.metric("drey:slow_clients_total"):
            break
        time.sleep(0.05)
    check(s.metric("drey:slow_clients_total") == 1, "a client that never reads is not left")
    unread = len(c.recv(1 << 20, socket.MSG_WAITALL))
    check(0 < unread < 100000, f"{unread} bytes wait in the socket of a client that never read")
    c.close()
    check(s.idle(), "the text of a client that was left is still written")
    # One writes, one waits, the third hears when to come again.
    asked = []

    together(lambda _: asked.append(s.request("POST", "/v1/completions", long_text)), range(5))
    statuses = sorted(a[0] for a in asked)
    check(set(statuses) <= {200, 503} and statuses.count(200) >= 2, f"a full queue: {statuses}")
    for status, headers, text in asked:
        if status == 503:
            check(int(headers["Retry-After"]) >= 1 and b"MiB" in text and b"seconds" in text, f"a full queue: {text}")
    check(s.stop() == 0 and not os.path.exists(path), "the end of the server on a socket")


def idle_house():
    """All connections are open: new clients take the places of those that are idle longest."""
    s = Server(drey, model, "-d", "none", "--sessions", "1", "-c", "64", "--connections", "4", "--timeout", "600").wait_ready()
    idle = [s.connection() for _ in range(4)]
    for c in idle:
        c.request("GET", "/health")
        check(c.getresponse().read() == b'{"status":"ok"}', "the health of one of four")
    lets_in(s)
    idle[3].request("GET", "/health")
    check(idle[3].getresponse().status == 200, "not the connection that was idle longest had to go")
    for c in idle:
        c.close()
    return s


def no_queue():
    """A client that comes too late where nobody may wait hears how many may write, and that memory
    is not what is short."""
    s = Server(drey, model, "-d", "none", "--sessions", "2", "--queue", "0", "-c", "4000").wait_ready()
    body = json.dumps(dict(long_text, max_tokens=3900)).encode()
    refusals = []
    for _ in range(50):
        s.process.send_signal(signal.SIGSTOP)  # so that they all are there when it looks
        clients = [s.connect() for _ in range(6)]
        for c in clients:
            c.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        s.process.send_signal(signal.SIGCONT)
        answers = [b"".join(iter(lambda: c.recv(65536), b"")) for c in clients]
        refusals = [json.loads(a.split(b"\r\n\r\n", 1)[1])["error"]["message"] for a in answers if b" 503 " in a[:20]]
        if refusals:
            break
    check(refusals and all(re.match(r"2 texts are here: this server writes 2 at a time and lets 0 wait, and the request asks for 1\. One session more "
                                r"would take [0-9.]+ MiB, and memory is not limited: the server could be started with more\. .* seconds\.$", t)
                       for t in refusals), f"no queue: {refusals}")
    check(s.idle() and s.stop() == 0, "the end without a queue")


def the_end():
    """Text that is being written ends with a reason, and the server with 0."""
    s = Server(drey, model, "-d", "none", "--sessions", "1", "-c", "30000", "--grace", "0").wait_ready()
    c = s.connection()
    c.request("POST", "/v1/completions", json.dumps(dict(long_text, max_tokens=29000, stream=True)))
    r = c.getresponse()
    r.read(10)
    rest = []
    reads = threading.Thread(target=lambda: rest.append(r.read().decode()))
    reads.start()
    waits = s.connect()
    body = json.dumps(long_text).encode()
    waits.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    time.sleep(0.3)
    code = s.stop()
    reads.join()
    rest = "".join(rest)
    check(code == 0, f"SIGTERM in a text: {code}")
    check(re.search(r", 29000 written, | 503 POST /v1/completions  .*: The server is being stopped", s.errors()), f"why what waits is refused: {s.errors()}")
    check(re.search(r", 29000 written, |, cut: stopping, ", s.errors()), f"the text's line: {s.errors()}")
    check("[DONE]" in rest and ('"finish_reason":"length"' in rest), f"the text's end: {rest[-300:]}")
    s = Server(drey, model, *usual)
    check(s.stop() == 0, "SIGTERM at the beginning")
    # A client that does not read does not hold it up for longer than its grace; who comes then is
    # refused at once.
    s = Server(drey, model, *usual, "--grace", "3").wait_ready()
    c = s.connect()
    body = json.dumps(dict(long_text, stream=True, logprobs=20)).encode()
    c.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    check(b" 200 " in c.recv(20), "a text before the end")
    s.process.send_signal(signal.SIGTERM)
    since, refused_s = time.monotonic(), None
    while s.process.poll() is None and time.monotonic() < since + 60:
        try:
            with s.connect() as late:
                late.settimeout(60)
                late.recv(1)  # let in just before, or reset
        except ConnectionRefusedError:
            refused_s = refused_s or time.monotonic() - since
        except OSError:
            pass
        time.sleep(0.05)
    check(refused_s is not None and refused_s < 2.5, f"a client after SIGTERM is refused after {refused_s} s")
    check(2.9 < time.monotonic() - since < 20 and s.process.wait() == 0, f"a client that does not read: {time.monotonic() - since} s instead of 3")
    s.process.stdout.close()


def main():
    s = Server(drey, model, *usual, "--max-body", "1M").wait_ready()
    bad_bodies(s)
    bad_http(s)
    hang_ups(s)
    silent_clients(s)
    check(s.stop() == 0, f"the server's end: {s.errors()[-500:]}")
    keys()
    wrong_keys()
    limits()
    full_house(idle_house())
    no_queue()
    pings("/v1/completions", {"prompt": "a"}, b":\n\n\r\n000003\r\n:\n\n")
    hello = {"messages": [{"role": "user", "content": "a"}]}
    pings("/v1/messages", hello, b"event: message_start\n", b"event: ping\n")
    pings("/v1/responses", {"input": "a"}, b"event: response.created\n", b"event: keepalive\ndata: {\"type\":\"keepalive\",\"sequence_number\":2}\n\n")
    full_disk()
    the_end()


main()
done()
