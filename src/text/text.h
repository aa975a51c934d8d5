/* Text, for other folders: bytes to token ids (tokenizer.h), ids one by one to whole characters
 * (detokenizer.h), and the names of pre-tokenizers (pretokenizer_rules.h). Ids are int32_t,
 * 0 .. n_vocab - 1; text is any bytes, with a length. A tokenizer belongs to a model and borrows
 * its gguf; a detokenizer belongs to one text. */
#pragma once

#include "text/detokenizer.h"
#include "text/pretokenizer_rules.h"
#include "text/tokenizer.h"
