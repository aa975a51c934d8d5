/* Tokenizers and streaming detokenising, for other folders. */
#pragma once

#include "text/detokenizer.h"
#include "text/tokenizer.h"
