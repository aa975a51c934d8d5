#!/usr/bin/env python3
"""Makes the tokenizer tests' vocabularies and golden files with the reference implementations:
Hugging Face `tokenizers` for BPE over bytes and over characters, `sentencepiece` for SentencePiece
BPE and unigram.

    pip install tokenizers==0.23.3 sentencepiece==0.2.3 protobuf gguf
    scripts/make-token-goldens.py [MODELS_DIR]

writes tests/data/vocab/NAME.gguf (small vocabularies trained on token_corpus.txt, no tensors) and
tests/data/tokens/NAME.txt. With MODELS_DIR, which holds the real models, it writes the golden files
of their vocabularies too. A golden line is FLAGS <tab> TEXT IN HEX <tab> IDS, where flag 1 means
that special tokens written in the text are tokens.

Broken UTF-8, which the references do not take, is defined here: bytes that belong to no character
are one word, and what is between them is one text.
"""
import json
import os
import random
import re
import sys

import gguf
import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "data")
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "token_corpus.txt"), encoding="utf-8") as f:
    CORPUS = f.read()

# Text that tokenizers get wrong, each a case by itself.
AWKWARD = [
    "", " ", "  ", "   ", "a", "\n", "\n\n", "\r\n", "\r\n\r\n", "\t", "\t\t", " \n", "\n ", " \n \n  ", "\n \n",
    "a ", " a", "  a", "   a", "a  ", "a   b", "a\n", "a\n\n", "a \n", "a\n b", "a\n  b", "a\r\nb", "a\t b", "a \tb", "\ta",
    "Hello, world!", "hello world", " hello", "Hello  world   again    and     again",
    "    for (int i = 0; i < n; i++)\n        printf(\"%d\\n\", i);\n", "if x:\n\tif y:\n\t\tpass\n\n\n\nelse:\n    pass",
    "it's I'm we've they'll he'd you're don't", "IT'S I'M WE'VE THEY'LL HE'D YOU'RE DON'T", "It'S We'Ve they'lL 'tis 'Twas '", "'s", "'S",
    "a'sb", "x'll'll", "''s", "it\u2019s", "'\u017f 'long s", " 's 't 'RE", "'r 'e 'l 'v",
    "1", "12", "123", "1234", "12345678901234567890", "1,000,000.50", "3.14e-10", "a1b22c333", " 1", "  1", "   12 ", "1 2  3   4", "x  1", "x \n1",
    "\u0661\u0662\u0663 \u0967\u0968\u0969 \u2160\u2161 \u00bd \u00b2\u00b3 \u4e00\u4e8c\u4e09 \U0001d7d8\U0001d7d9", "\u2460\u2461\u00bc 5\u20ac",
    "!", "!!!", "?!?!", "...", " ...", "--- ---", "#!/bin/sh\n", "a.b.c", "(a)[b]{c}<d>", "$%^&*()_+-=[]{}|;':\",./<>?`~", " !\n\n", "!\r\n", ").\n\n\n", "//\n//\n",
    "\u00e9l\u00e8ve na\u00efve co\u00f6perate fa\u00e7ade", "e\u0301le\u0300ve (combining)", "Z\u0335\u0322a\u0334\u031bl\u0337g\u0338o\u0321\u0334 te\u0336x\u0337t", "\u0301 a lone accent", "n\u0303o",
    "Gro\u00dfe Stra\u00dfe STRASSE \u1e9e", "\u0130stanbul \u0131s\u0131", "\ufb01ne \ufb02ow \ufb06", "\u01c5 \u01c8 titlecase", "\u02b0\u02b1 modifiers", "\u00aa \u00ba",
    "\u0416\u0443\u043a \u0438 \u0401\u043b\u043a\u0430", "\u0395\u03bb\u03bb\u03b7\u03bd\u03b9\u03ba\u03ac \u03c2\u03c3", "\u0540\u0561\u0575\u0565\u0580\u0565\u0576", "\u10e5\u10d0\u10e0\u10d7\u10e3\u10da\u10d8", "\u12a0\u121b\u122d\u129b",
    "\u05e9\u05c1\u05b8\u05dc\u05d5\u05b9\u05dd \u05e2\u05d5\u05dc\u05dd abc \u05e9\u05dc\u05d5\u05dd 123", "\u0645\u064e\u0631\u0652\u062d\u064e\u0628\u064b\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645\u061f", "\u202bRTL \u202aLTR\u202c\u202c \u200f\u200e",
    "\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e\u0964", "\u09ac\u09be\u0982\u09b2\u09be", "\u0a2a\u0a70\u0a1c\u0a3e\u0a2c\u0a40", "\u0a97\u0ac1\u0a9c\u0ab0\u0abe\u0aa4\u0ac0", "\u0ba4\u0bae\u0bbf\u0bb4\u0bcd", "\u0c24\u0c46\u0c32\u0c41\u0c17\u0c41", "\u0c95\u0ca8\u0ccd\u0ca8\u0ca1", "\u0d2e\u0d32\u0d2f\u0d3e\u0d33\u0d02", "\u0dc3\u0dd2\u0d82\u0dc4\u0dbd",
    "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e0a\u0e32\u0e27\u0e42\u0e25\u0e01", "\u0e9e\u0eb2\u0eaa\u0eb2\u0ea5\u0eb2\u0ea7", "\u0f56\u0f7c\u0f51\u0f0b\u0f66\u0f90\u0f51\u0f0b", "\u1019\u103c\u1014\u103a\u1019\u102c\u1018\u102c\u101e\u102c", "\u1797\u17b6\u179f\u17b6\u1781\u17d2\u1798\u17c2\u179a", "\u182e\u1823\u1829\u182d\u1823\u182f\u180e\u182c\u1821\u182f\u1821",
    "\u4f60\u597d\uff0c\u4e16\u754c\uff01", "\u65e5\u672c\u8a9e\u306e\u30c6\u30ad\u30b9\u30c8\u3002\uff8a\uff9d\uff76\uff78", "\ud55c\uad6d\uc5b4 \ud14d\uc2a4\ud2b8", "\u1112\u1161\u11ab\u1100\u116e\u11a8 (jamo)", "\U00020000\U0002a6d6 CJK extension", "\u3000full width\u3000", "\uff21\uff22\uff23\uff11\uff12\uff13",
    "\U00010330\U00010331\U00010332 Gothic", "\U00012000\U00012001 cuneiform", "\U00013000\U00013001", "\U0001d400\U0001d41a math", "\u13a3\u13b3\u13a9", "\u1401\u1402\u1403", "\u16a0\u16a2\u16a6", "\u2800\u2801\u28ff", "\u2c00\u2c30", "\ua000\ua001",
    "\U0001f600\U0001f603\U0001f44d", "\U0001f44d\U0001f3fd\U0001f44b\U0001f3ff", "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 family", "\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7 flags", "\U0001f3f3\ufe0f\u200d\U0001f308", "\u2764\ufe0f\u200d\U0001f525", "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f", "1\ufe0f\u20e3 #\ufe0f\u20e3", "\U0001fae0 \U0001f9d1\u200d\U0001f4bb", "a\U0001f600b", " \U0001f600 ",
    "\x00", "a\x00b", "\x00\x00\x00", "\x01\x02\x03\x04\x05\x06\x07\x08", "\x0b\x0c", "\x0e\x0f\x10\x1b[31mred\x1b[0m", "\x1c\x1d\x1e\x1f", "a\x7fb", "\x80\x85\x9f", "a\u0085b", " \u0085 a", "\u00a0", "a\u00a0b", " \u00a0 a", "\u00ad", "soft\u00adhyphen",
    "\u1680\u2000\u2001\u2009\u200a", "a\u2003b", "\u2028\u2029", "a\u2028b", "\u202f\u205f", "\u200b\u200c\u200d\u2060\ufeff", "\ufeffBOM", "\u180e \u180ea", "a\u180e", "\u2003\n\u2003x",
    "\ufffd", "\ufffe\uffff", "\U0010ffff", "\U000f0000\U00100000", "\ue000\uf8ff", "\U000e0001", "\u0378", "\u0300\u0301\u0302",
    "\u2581", "a\u2581b", " \u2581 ", "\u2581\u2581a", "\u0120hello \u010a",
    "supercalifragilisticexpialidocious", "a" * 300, "ab" * 200, "\u00e9" * 100, "\u4f60" * 80, "x" * 63 + " " + "y" * 65, " " * 100, "\n" * 70, "\t" * 40, "-" * 90, "=" * 31 + "\n" + "=" * 33, "9" * 50, " \n" * 30, "a " * 60,
    "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft", "https://example.org/a/b?c=d&e=%20f#g", "user.name+tag@example.org", "snake_case camelCase PascalCase SCREAMING_CASE kebab-case", "C:\\Users\\name\\file.txt", "0xDEADBEEF 0b1010 1_000", "\\u0041\\n\\t\\\\", "<0x0A> <0xFF>",
]

# Special tokens of every vocabulary below, in text and halfway.
SPECIALS = [
    "<|endoftext|>", "<|im_start|>user\nhi<|im_end|>\n", "<|im_start|><|im_end|>", "a<|im_end|>b", " <|im_end|> ", "<|im_end|", "<|im_end|>|>", "<<|im_end|>>", "<|im_start|>assistant\n",
    "<tool_call>{}</tool_call>", "<tool_call", "<tool_call> <tool_call>", "<tool_call>\n", "x<tool_call>y", "</tool_call", "<|im_end|><tool_call><|im_end|>",
    "<s>", "</s>", "<s>hi</s>", "<s> hi </s> ho", "<unk>", "a<unk>b", "<|begin_of_text|>x<|eot_id|>", "<|eot_id|><|eot_id|>", "<file_sep>a.c\n", "<|im_start|>\u00e9<|im_end|>\u4f60<|endoftext|>", "  <|im_start|>  ", "\n<|im_end|>\n",
]

BROKEN = [
    b"\xff", b"\x80", b"\xc0\x80", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"a\xffb", b"\xff\xfe\xfd", b"\xc3(", b"\xed\xa0\x80", b"\xed\xb0\x80", b"\xf4\x90\x80\x80", b"\xf8\x88\x80\x80\x80", b"\xe0\x80\x80",
    b" \xff ", b"hello \xe2\x82 world", b"\xe4\xbd\xa0\xe5", b"\xe5\xa5\xbd\x80\x80", b"\xf0\x9f\x98\x80\xf0\x9f", b"abc\x80\x81\x82def", b"\xff<|im_end|>\xff", b"\xff<tool_call>", b"  \xc3  a", b"\xc3\xc3\xa9", b"\xfe\xff\x00a\x00b", b"\xa0\xa1 \xa2", b"1\xff2", b"'\xffs", b"\n\xff\n", bytes(range(256)), bytes(range(128, 256)),
]


def texts():
    """All texts, some of them combinations, as (flags, bytes)."""
    everything = [t.encode() for t in AWKWARD + SPECIALS] + BROKEN
    short = [t for t in everything if len(t) <= 40]
    words = re.findall(r"\s*\S+", CORPUS)
    rng = random.Random(20240607)
    for _ in range(60):
        parts = [rng.choice(short) if rng.random() < 0.5 else rng.choice(words).encode() for _ in range(rng.randint(2, 10))]
        everything.append(b"".join(parts))
    everything += [line.encode() for line in CORPUS.splitlines(keepends=True)[::3]]
    for t in everything:
        yield 0, t
        if b"<" in t:
            yield 1, t


def runs(data):
    """Splits bytes into (True, text) and (False, bytes that belong to no character)."""
    for part in re.findall("[\udc80-\udcff]+|[^\udc80-\udcff]+", data.decode("utf-8", "surrogateescape")):
        broken = "\udc80" <= part[0] <= "\udcff"
        yield (False, part.encode("utf-8", "surrogateescape")) if broken else (True, part)


def write_goldens(name, encode):
    path = os.path.join(ROOT, "tokens", name + ".txt")
    with open(path, "w") as f:
        f.write("# made by scripts/make-token-goldens.py: flags, text in hex, ids\n")
        seen = set()
        for flags, data in texts():
            if (flags, data) in seen:
                continue
            seen.add((flags, data))
            f.write("%d\t%s\t%s\n" % (flags, data.hex(), " ".join(map(str, encode(flags, data)))))
    print(path, len(seen), "texts")


# ---- Byte-level BPE ------------------------------------------------------------------------------

LATER = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*"
         r"|\s*[\r\n]+|\s+(?!\S)|\s+")
CAPITALS, SMALL = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
CASED = {"gpt-4o": (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?", r"\p{N}{1,3}"), "tekken": ("", r"\p{N}")}
ALPHABET = {}
for byte in range(256):
    itself = 0x21 <= byte <= 0x7E or 0xA1 <= byte <= 0xAC or 0xAE <= byte
    ALPHABET[byte] = chr(byte if itself else 0x100 + sum(1 for b in range(byte) if not (
        0x21 <= b <= 0x7E or 0xA1 <= b <= 0xAC or 0xAE <= b)))
assert sorted(ALPHABET.values()) == sorted(pre_tokenizers.ByteLevel.alphabet())


def splitter(pre):
    """The pre-tokenizer as the model family's tokenizer.json has it."""
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=pre in ("gpt-2", "smollm"))
    if pre == "gpt-2":
        return level
    if pre == "smollm":
        return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), level])
    if pre in CASED:
        contraction, digits = CASED[pre]
        regex = (r"[^\r\n\p{L}\p{N}]?" + CAPITALS + "*" + SMALL + "+" + contraction +
                 r"|[^\r\n\p{L}\p{N}]?" + CAPITALS + "+" + SMALL + "*" + contraction + "|" + digits +
                 r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
        return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(regex), "isolated"), level])
    regex = LATER % ("" if pre == "qwen2" else "{1,3}")
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(regex), "isolated"), level])


def reference(pre, tokens, types, merges):
    """The reference tokenizer for a GGUF file's vocabulary."""
    vocab = {t: i for i, t in enumerate(tokens) if types[i] == NORMAL}
    pairs = [tuple(m.split(" ")) for m in merges]
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=pairs, ignore_merges=pre in ("llama-bpe", "tekken")))
    tokenizer.pre_tokenizer = splitter(pre)
    # Ids of added tokens follow the vocabulary's here, whatever they are in the file.
    ids = {i: i for i in vocab.values()}
    for i, t in enumerate(tokens):
        if types[i] in (CONTROL, USER_DEFINED, UNKNOWN):
            added = AddedToken(t, normalized=False, special=types[i] != USER_DEFINED)
            (tokenizer.add_tokens if types[i] == USER_DEFINED else tokenizer.add_special_tokens)([added])
            ids[tokenizer.token_to_id(t)] = i

    def encode(flags, data):
        tokenizer.encode_special_tokens = not flags & 1
        out = []
        for whole, run in runs(data):
            if whole:
                out += [ids[i] for i in tokenizer.encode(run, add_special_tokens=False).ids]
            else:
                out += [ids[t.id] for t in tokenizer.model.tokenize("".join(ALPHABET[b] for b in run))]
        return out
    return encode


def write_vocab(name, model, tokens, types, pre=None, merges=None, scores=None, charmap=None, **ids):
    path = os.path.join(ROOT, "vocab", name + ".gguf")
    w = gguf.GGUFWriter(path, "llama")
    w.add_name("vocabulary " + name)
    w.add_tokenizer_model(model)
    if pre:
        w.add_tokenizer_pre(pre)
    w.add_token_list(tokens)
    w.add_token_types(types)
    if merges is not None:
        w.add_token_merges(merges)
    if scores is not None:
        w.add_token_scores(scores)
    if charmap is not None:
        w.add_precompiled_charsmap(charmap)
        w.add_add_space_prefix(True)
        w.add_remove_extra_whitespaces(True)
    for key, value in ids.items():
        w.add_uint32("tokenizer.ggml.%s_token_id" % key, value)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.close()
    print(path, os.path.getsize(path), "bytes,", len(tokens), "tokens")


def train(pre, size, whole_alphabet=True):
    """Tokens and merges, trained on the corpus."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = splitter(pre)
    trainer = trainers.BpeTrainer(
        vocab_size=size, show_progress=False, special_tokens=[],
        initial_alphabet=sorted(ALPHABET.values()) if whole_alphabet else [])
    tokenizer.train_from_iterator([CORPUS], trainer)
    model = json.loads(tokenizer.to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    return tokens, [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]


def make_bpe(name, pre, size, specials, whole_alphabet=True, whole_words=(), **ids):
    tokens, merges = train(pre, size, whole_alphabet)
    # Words that no merge leads to: only a tokenizer that looks whole words up finds them.
    tokens += ["".join(ALPHABET[b] for b in w.encode()) for w in whole_words]
    types = [NORMAL] * len(tokens)
    for text, kind in specials:
        tokens.append(text)
        types.append(kind)
    named = {k: tokens.index(v) for k, v in ids.items()}
    write_vocab(name, "gpt2", tokens, types, pre=pre, merges=merges, **named)
    write_goldens(name, reference(pre, tokens, types, merges))


# ---- BPE over characters -------------------------------------------------------------------------

def make_characters(name, size):
    """Makes a vocabulary like Gemma 4's: words are no borders, and unknown characters are bytes."""
    byte_tokens = ["<0x%02X>" % b for b in range(256)]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.Replace(" ", "\u2581")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("\n+"), "isolated")
    # a character of the text is left out: it is encoded as bytes, though merges could have it
    text = [line.replace("\u4f60", "") for line in CORPUS.splitlines(keepends=True)] + ["\n\n\n\n"] * 50
    tokenizer.train_from_iterator(text, trainers.BpeTrainer(vocab_size=size, show_progress=False))
    model = json.loads(tokenizer.to_str())["model"]
    pieces = sorted(model["vocab"], key=model["vocab"].get)
    merges = [tuple(m) for m in model["merges"]]
    named = ["<pad>", "<eos>", "<bos>", "<unk>"]
    tokens = named + byte_tokens + pieces + ["<|im_end|>", "<|tool_call>", "<tool_call>", "<tool"]
    types = ([CONTROL] * 3 + [UNKNOWN] + [BYTE] * 256 + [NORMAL] * len(pieces) +
             [CONTROL, USER_DEFINED, USER_DEFINED, USER_DEFINED])
    write_vocab(name, "gemma4", tokens, types, merges=[" ".join(m) for m in merges], bos=2, eos=1)

    vocab = {t: i for i, t in enumerate(tokens)}
    judge = Tokenizer(models.BPE(vocab=vocab, merges=merges, byte_fallback=True, fuse_unk=True, unk_token="<unk>"))
    judge.normalizer = tokenizer.normalizer
    judge.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    for i, t in enumerate(tokens):
        if types[i] in (CONTROL, USER_DEFINED, UNKNOWN):
            added = AddedToken(t, normalized=False, special=types[i] != USER_DEFINED)
            (judge.add_tokens if types[i] == USER_DEFINED else judge.add_special_tokens)([added])

    def encode(flags, data):
        judge.encode_special_tokens = not flags & 1
        out = []
        for whole, run in runs(data):
            out += (judge.encode(run, add_special_tokens=False).ids if whole
                    else [tokens.index("<0x00>") + b for b in run])
        return out
    write_goldens(name, encode)


# ---- SentencePiece -------------------------------------------------------------------------------

def make_sentencepiece(name):
    import io
    from sentencepiece import sentencepiece_model_pb2 as pb
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS.splitlines()), model_writer=model, model_type="bpe", vocab_size=1100,
        byte_fallback=True, normalization_rule_name="identity", remove_extra_whitespaces=False,
        split_digits=True, allow_whitespace_only_pieces=True, character_coverage=0.98, num_threads=1,
        user_defined_symbols=["<tool_call>", "<tool"], minloglevel=2)
    proto = pb.ModelProto()
    proto.ParseFromString(model.getvalue())
    tokens = [p.piece for p in proto.pieces]
    types = [p.type for p in proto.pieces]
    write_vocab(name, "llama", tokens, types, scores=[p.score for p in proto.pieces], bos=1, eos=2, unknown=0)

    first = sentencepiece.SentencePieceProcessor(model_proto=proto.SerializeToString())
    proto.normalizer_spec.add_dummy_prefix = False
    later = sentencepiece.SentencePieceProcessor(model_proto=proto.SerializeToString())
    control = {t: i for i, t in enumerate(tokens) if types[i] in (CONTROL, UNKNOWN)}
    blank, byte = tokens.index("\u2581"), tokens.index("<0x00>")

    def encode(flags, data):
        out = []
        text = data.decode("utf-8", "surrogateescape")
        parts = re.split("(" + "|".join(map(re.escape, control)) + ")", text) if flags & 1 else [text]
        for part in parts:  # the blank in front comes again after every control token
            if flags & 1 and part in control:
                out.append(control[part])
                continue
            begins = True
            for whole, run in runs(part.encode("utf-8", "surrogateescape")):
                if whole:
                    out += (first if begins else later).encode(run)
                else:
                    out += [blank] * begins + [byte + b for b in run]
                begins = False
        return out
    write_goldens(name, encode)


def charmap_rules():
    """A part of NFKC that all kinds of characters occur in, as SentencePiece's trainer reads it."""
    import unicodedata
    ranges = [(0xA0, 0x100), (0x132, 0x134), (0x2000, 0x2030), (0x2150, 0x2190), (0x2460, 0x2480),
              (0x3000, 0x3001), (0xFB00, 0xFB07), (0xFF01, 0xFF60), (0xFF66, 0xFFA0)]
    rules = {}
    for low, high in ranges:
        for code in range(low, high):
            mapped = unicodedata.normalize("NFKC", chr(code))
            if mapped != chr(code):
                rules[chr(code)] = mapped
    for letter in "AEIOUaeioun":  # composition: two characters become one
        for accent in "\u0300\u0301\u0303\u0308":
            rules[letter + accent] = unicodedata.normalize("NFC", letter + accent)
    for blank in "\t\n\r\u00a0\u1680\u2028\u2029":
        rules[blank] = " "
    for nothing in "\u00ad\u200b\ufeff\x7f":
        rules[nothing] = ""
    return "".join("%s\t%s\n" % tuple(" ".join("%X" % ord(c) for c in text) for text in rule)
                   for rule in sorted(rules.items()) if rule[0] != rule[1])


def make_t5(name):
    import io
    import tempfile
    from sentencepiece import sentencepiece_model_pb2 as pb
    model = io.BytesIO()
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as rules:
        rules.write(charmap_rules())
        rules.flush()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(CORPUS.splitlines()), model_writer=model, model_type="unigram",
            vocab_size=540, normalization_rule_tsv=rules.name, character_coverage=0.99,
            num_threads=1, pad_id=0, eos_id=1, unk_id=2, bos_id=-1, minloglevel=2)
    proto = pb.ModelProto()
    proto.ParseFromString(model.getvalue())
    tokens, types = [p.piece for p in proto.pieces], [p.type for p in proto.pieces]
    scores = [p.score for p in proto.pieces]
    extra = ["<extra_id_0>", "<extra_id_1>", "<tool_call>"]  # what T5 adds to its vocabulary
    write_vocab(name, "t5", tokens + extra, types + [USER_DEFINED] * len(extra),
                scores=scores + [-1000.0] * len(extra),
                charmap=proto.normalizer_spec.precompiled_charsmap, eos=1, unknown=2, padding=0)
    processor = sentencepiece.SentencePieceProcessor(model_proto=proto.SerializeToString())
    added = {t: len(tokens) + i for i, t in enumerate(extra)}
    control = {t: i for i, t in enumerate(tokens) if types[i] in (CONTROL, UNKNOWN)}

    def encode(flags, data):
        special = {**added, **control} if flags & 1 else added
        out = []
        for part in re.split(b"(" + b"|".join(re.escape(s.encode()) for s in special) + b")", data):
            name = part.decode("utf-8", "replace")
            out += [special[name]] if name in special else processor.encode(part)
        return out
    write_goldens(name, encode)


# ---- Real vocabularies ---------------------------------------------------------------------------

def make_real(directory, name, file):
    path = os.path.join(directory, file)
    if not os.path.exists(path):
        print(path, "is missing: left out")
        return
    fields = gguf.GGUFReader(path).fields
    tokens, types, merges = (fields["tokenizer.ggml." + k].contents() for k in ("tokens", "token_type", "merges"))
    write_goldens(name, reference(fields["tokenizer.ggml.pre"].contents(), tokens, types, merges))


def main():
    make_bpe("gpt-2", "gpt-2", 1200, [("<|endoftext|>", CONTROL)], bos="<|endoftext|>", eos="<|endoftext|>")
    make_bpe("qwen2", "qwen2", 1300, [
        ("<|endoftext|>", CONTROL), ("<|im_start|>", CONTROL), ("<|im_end|>", CONTROL), ("<tool_call>", USER_DEFINED),
        ("<tool", USER_DEFINED), ("</tool_call>", USER_DEFINED), ("[PAD0]", UNUSED), ("[PAD1]", UNUSED)],
        eos="<|im_end|>", bos="<|endoftext|>")
    # Like its model, this one lacks the bytes that its training text lacks.
    make_bpe("smollm", "smollm", 1000, [
        ("<|endoftext|>", CONTROL), ("<|im_start|>", CONTROL), ("<|im_end|>", CONTROL), ("<file_sep>", CONTROL)],
        whole_alphabet=False, bos="<|im_start|>", eos="<|im_end|>")
    make_bpe("llama-bpe", "llama-bpe", 1200, [
        ("<|begin_of_text|>", CONTROL), ("<|end_of_text|>", CONTROL), ("<|eot_id|>", CONTROL)],
        whole_words=(" squirrels", "supercalifragilisticexpialidocious", "1234", " \n\n", "123"),
        bos="<|begin_of_text|>", eos="<|end_of_text|>", eot="<|eot_id|>")
    make_bpe("gpt-4o", "gpt-4o", 700, [("<|endoftext|>", CONTROL)], bos="<|endoftext|>", eos="<|endoftext|>")
    make_bpe("tekken", "tekken", 700, [("<s>", CONTROL), ("</s>", CONTROL)],
             whole_words=(" squirrels", "snakeCase"), bos="<s>", eos="</s>")
    make_characters("gemma4", 900)
    make_sentencepiece("sentencepiece")
    make_t5("t5")
    if len(sys.argv) > 1:
        make_real(sys.argv[1], "real-qwen2", "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf")
        make_real(sys.argv[1], "real-smollm", "SmolLM2-135M-Instruct.Q4_1.gguf")


main()
