"""Vectors of texts in both forms: the same for a text alone and among others, and while texts are
written; what is refused, and why. serve_embed.py DREY FOLDER: where toy.gguf lies"""
import base64, struct

from serve_client import *

drey, folder = sys.argv[1:]
model = f"{folder}/toy.gguf"
texts = ["The tree is not for the draft", "A text begins", "While the disk reads", "0123456789"]
options = ("-d", "none", "--sessions", "2", "-c", "256")


def length(v):
    return sum(x * x for x in v) ** 0.5


def vectors(s, given, **more):
    status, answer = s.post("/v1/embeddings", dict(input=given, **more))
    check(status == 200, f"vectors: {status} {answer}")
    data = answer["data"]
    check(answer["object"] == "list" and [d["index"] for d in data] == list(range(len(data))) and all(d["object"] == "embedding" for d in data), f"their form: {str(answer)[:200]}")
    check(answer["usage"]["prompt_tokens"] == answer["usage"]["total_tokens"] > 0, f"their usage: {answer['usage']}")
    return [d["embedding"] for d in data]


def native(s, given, **more):
    status, answer = s.post("/embeddings", dict(content=given, **more))
    check(status == 200 and [d["index"] for d in answer] == list(range(len(answer))), f"vectors: {status} {answer}")
    return [d["embedding"] for d in answer]


def same_vectors(s, pooling):
    alone = [vectors(s, t)[0] for t in texts]
    check(len({len(v) for v in alone}) == 1 and all(abs(length(v) - 1) < 1e-5 for v in alone), f"{pooling}: lengths")
    check(len({tuple(v) for v in alone}) == len(texts) or pooling == "cls", f"{pooling}: equal vectors of unlike texts")
    check(vectors(s, texts) == alone, f"{pooling}: a text has another vector among others")
    ids = [s.post("/tokenize", {"content": t, "add_special": True})[1]["tokens"] for t in texts]
    check(vectors(s, ids) == alone and vectors(s, ids[0]) == alone[:1] and vectors(s, [texts[0], ids[1]]) == alone[:2], f"{pooling}: token ids")
    packed = [struct.unpack(f"<{len(alone[0])}f", base64.b64decode(v)) for v in vectors(s, texts, encoding_format="base64", dimensions=len(alone[0]))]
    check([list(struct.unpack(f"<{len(v)}f", struct.pack(f"<{len(v)}f", *v))) for v in alone] == [list(v) for v in packed], f"{pooling}: base64")
    check([v[0] for v in native(s, texts)] == alone, f"{pooling}: llama.cpp's form")
    raw, ones, most = (native(s, texts[0], embd_normalize=n)[0][0] for n in (-1, 1, 0))
    check(abs(sum(map(abs, ones)) - 1) < 1e-4 and abs(max(map(abs, most)) - 32760) < 1 and abs(length(raw) - 1) > 1e-3, f"{pooling}: lengths by choice")
    return alone, raw


def with_texts(s, alone):
    """Checks that while texts are written neither they nor the vectors change."""
    wanted = s.post("/completion", {"prompt": texts[0], "n_predict": 100, "ignore_eos": True})[1]["content"]
    got = []
    writer = threading.Thread(target=lambda: got.append(s.post("/completion", {"prompt": texts[0], "n_predict": 100, "ignore_eos": True, "cache_prompt": False})[1]["content"]))
    writer.start()
    for _ in range(5):
        check(vectors(s, texts) == alone, "other vectors while a text is written")
    writer.join()
    check(got == [wanted], "another text while vectors are made")


def counted(s):
    before = [s.metric(f"llamacpp:{name}_total") for name in ("prompt_tokens", "n_decode", "tokens_predicted")]
    n = s.post("/v1/embeddings", {"input": texts})[1]["usage"]["prompt_tokens"]
    after = [s.metric(f"llamacpp:{name}_total") for name in ("prompt_tokens", "n_decode", "tokens_predicted")]
    check([b - a for a, b in zip(before, after)] == [n, len(texts), 0], f"not counted: {before}, {after}, {n} tokens")


def together(s):
    """Each text may have the whole context, though the request has several times as many tokens."""
    long = ["abcdefghij " * 20 + str(i) for i in range(9)]
    n = [len(s.post("/tokenize", {"content": t, "add_special": True})[1]["tokens"]) for t in long]
    check(max(n) <= 256 < sum(n) / 4, f"lengths of the texts: {n}")
    check(vectors(s, long) == [vectors(s, t)[0] for t in long], "long texts have other vectors together")
    status, answer = s.post("/v1/embeddings", {"input": long * 30})
    check(status == 400 and "send fewer or shorter texts" in answer["error"]["message"], f"too many: {status} {answer}")


def refused(s):
    for body, words in (({}, "'input' is missing"), ({"input": 7}, "takes a text"), ({"input": []}, "takes a text"), ({"input": [[1], 2]}, "takes a text"),
                        ({"input": ["a", {}]}, "takes a text"), ({"input": [[]]}, "is empty"), ({"input": [10 ** 7]}, "a token that the model has not"),
                        ({"input": ["ab" * 400]}, "exceeds the available context"), ({"input": "a", "dimensions": 3}, "'dimensions' takes"),
                        ({"input": "a", "encoding_format": "hex"}, "'encoding_format' takes"), ({"input": "a", "embd_normalize": 3}, "'embd_normalize' takes")):
        status, answer = s.post("/v1/embeddings", body)
        check(status == 400 and words in answer["error"]["message"], f"{body}: {status} {answer}")
    for path in ("/rerank", "/v1/rerank", "/reranking", "/v1/reranking"):
        status, answer = s.post(path, {"query": "a", "documents": ["b"]})
        check(status == 501 and "compares no texts" in answer["error"]["message"], f"{path}: {status} {answer}")
        for documents in (None, [], 3, "b", [1], ["b", None]):
            check(s.post(path, {"query": "a", "documents": documents})[0] == 400, f"{path}: {documents}")
        check(s.post(path, {"query": "a", "texts": ["b"]})[0] == 501 and s.post(path, {"documents": ["b"]})[0] == 400, f"{path}: other members")


known = {}
for pooling in ("mean", "cls", "last", "none", "rank", None):
    s = Server(drey, model, *options, *(("--pooling", pooling) if pooling else ())).wait_ready()
    if pooling == "none":
        rows = native(s, texts[0])[0]
        n = s.post("/tokenize", {"content": texts[0], "add_special": True})[1]["tokens"]
        check(len(rows) == len(n) and rows[0] == known["cls"][1] and rows[-1] == known["last"][1], "a vector for each token")
        mean = [sum(c) / len(rows) for c in zip(*rows)]
        check(max(abs(a - b) for a, b in zip(mean, known["mean"][1])) < 1e-5, "the mean of them")
        status, answer = s.post("/v1/embeddings", {"input": "a"})
        check(status == 400 and "ask /embeddings" in answer["error"]["message"], f"OpenAI's form: {answer}")
        status, answer = s.post("/embeddings", {"input": ["abcdefgh" * 10] * 40})
        check(status == 400, f"too many: {status}")
    elif pooling == "rank":
        status, answer = s.post("/embeddings", {"input": "a"})
        check(status == 501 and "--pooling" in answer["error"]["message"], f"rank: {status} {answer}")
    else:
        known[pooling] = same_vectors(s, pooling)
        if pooling == "mean":
            with_texts(s, known[pooling][0])
            together(s)
            refused(s)
            counted(s)
    check(s.idle(), "sessions are busy at the end")
    check(s.stop() == 0, "the server's end")
check(known[None] == known["last"], "without an option the last token's")
done()
