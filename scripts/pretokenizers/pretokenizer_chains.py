"""Ways in which published models divide texts before byte-level BPE: the steps of their
tokenizer.json, or where no file is at hand (marked) those of llama.cpp's loader. A step is an
expression whose matches become pieces, as what is between them does, or a pair of an expression and
another behavior.
"""

CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
TAIL = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
CAPITALS, SMALL = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"


def later(digits):
    return CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|" + digits + r"| ?[^\s\p{L}\p{N}]+[\r\n]*" + TAIL


def cased(contraction, digits, but="", after="[\r\n/]*"):
    capitals, small = "[%s%s]" % (CAPITALS, but), "[%s%s]" % (SMALL, but)
    return (r"[^\r\n\p{L}\p{N}]?" + capitals + "*" + small + "+" + contraction + r"|[^\r\n\p{L}\p{N}]?" + capitals +
            "+" + small + "*" + contraction + "|" + digits + r"| ?[^\s\p{L}\p{N}]+" + after + TAIL)


DEEPSEEK3 = (r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
             r"| ?[\p{P}\p{S}]+[\r\n]*" + TAIL)
EASTERN = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
EASTERN_1 = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
# Latin, Greek, Cyrillic, Armenian, Georgian, Cherokee and more, as DeepSeek LLM lists them.
LETTERS = (
    "A-Za-z B5 C0-D6 D8-F6 F8-1BA 1BC-1BF 1C4-293 295-2AF 370-373 376 377 37B-37D 37F 386 388-38A 38C 38E-3A1 3A3-3F5 "
    "3F7-481 48A-52F 531-556 10A0-10C5 13A0-13F5 13F8-13FD 1C90-1CBA 1CBD-1CBF 1D00-1D2B 1D6B-1D77 1D79-1D9A "
    "1E00-1F15 1F18-1F1D 1F20-1F45 1F48-1F4D 1F50-1F57 1F59 1F5B 1F5D 1F5F-1F7D 1F80-1FB4 1FB6-1FBC 1FBE 1FC2-1FC4 "
    "1FC6-1FCC 1FD0-1FD3 1FD6-1FDB 1FE0-1FEC 1FF2-1FF4 1FF6-1FFC 2102 2107 210A-2113 2115 2119-211D 2124 2126 2128 "
    "212A-212D 212F-2134 2139 213C-213F 2145-2149 214E 2183 2184 2C00-2C7B 2C7E-2CE4 2CEB-2CEE 2CF2 2CF3 A640-A66D "
    "A680-A69B A722-A76F A771-A787 A78B-A78E AB70-ABBF FB00-FB06 FB13-FB17 FF21-FF3A FF41-FF5A 10400-1044F 104B0-104D3 "
    "104D8-104FB 10C80-10CB2 10CC0-10CF2 118A0-118DF 1E900-1E943")


def listed(ranges):
    first, *others = ranges.split()
    return first + "".join("-".join(chr(int(end, 16)) for end in r.split("-")) for r in others)


BLOOM = " ?[^(\\s|[.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+"
DEEPSEEK_LLM = ["[\r\n]", r"\s?[" + listed(LETTERS) + "]+",
                "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+", r"\s+$", EASTERN_1]
CHAINS = {
    "gpt-2": [GPT2],
    "smollm": [r"\p{N}", GPT2],
    "qwen2": [later(r"\p{N}")],
    "llama-bpe": [later(r"\p{N}{1,3}")],
    "gpt-4o": [cased(CONTRACTION + "?", r"\p{N}{1,3}")],
    "tekken": [cased("", r"\p{N}")],
    "qwen35": [CONTRACTION + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*" + TAIL],
    "seed-coder": [CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+" + TAIL],
    "bailingmoe": [r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]"
                   r"|\s+(?!\S)|\s+"],
    "exaone-moe": [CONTRACTION + r"|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}"
                   r"| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+"],  # llama.cpp
    "jais-2": [CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+" +
               "".join(r"|\s{%s}(?!\S)" % n for n in (512, 256, 128, 64, 32, 16, 8, 4, "1,2")) + r"|\s{1}"],  # llama.cpp
    "minicpm5": [r"\p{N}{1,3}", later(r"\p{N}+")],
    "laguna": [(r"(?:\r?\n)+(?!\r?\n)", "merged_with_next"), later(r"\p{N}")],
    "kimi-k2": [r"[\p{Han}]+|" + cased(CONTRACTION + "?", r"\p{N}{1,3}", r"&&[^\p{Han}]", r"[\r\n]*")],
    "deepseek-llm": DEEPSEEK_LLM + [r"\p{N}+"],  # the last step is llama.cpp's: no token has two digits
    "deepseek-coder": ["[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", EASTERN_1, r"\p{N}"],
    "deepseek-v3": [r"\p{N}{1,3}", EASTERN, DEEPSEEK3],
    "youtu": ["[\uac00-\ud7a3\u3131-\u318e]+|[\uff01\u2026\u201c\u201d\u2018\u2019\u2014\uff1a\uff1b\uff0c\u3001-\u303f"
              "\ufe30-\ufe4f]+|[\u3105-\u312f]+|" + EASTERN, cased(CONTRACTION + "?", r"\p{N}")],  # llama.cpp
    "falcon": [r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]"],  # llama.cpp
    "bloom": [BLOOM],
    "viking": [BLOOM, r"\p{N}"],  # llama.cpp
    "chameleon": ["<sentinel:[0-9]+>", "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", "([\\t\\n]|    |  )", r"\p{N}",
                  r"[\p{P}!-/:-@\[-`{-~]", GPT2],  # llama.cpp
    "superbpe": [r"\p{N}+", r"(?=(\d{3})+(?!\d))"],  # llama.cpp
    "tiny_aya": [r"\d{1,3}(?=(?:\d{3})*\b)", cased(CONTRACTION + "?", r"\p{N}{1,3}")],
    "afmoe": [r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))",
              "[\u4e00-\u9fff\u3400-\u4dbf\u8c48-\ufaff\u3040-\u309f\u30a0-\u30ff\uff65-\uff9f\u2f00-\u2fdf\u0e40-\u0e7f"
              "\u0e80-\u0eff\u1780-\u17ff\u1000-\u109f\uaa60-\uaa7f\ua9e0-\ua9ff\uac00-\ud7af\u1100-\u11ff]+",
              DEEPSEEK3],  # llama.cpp
}
