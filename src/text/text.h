/* Tokenizers and streaming detokenising, for other folders. */
#ifndef DREY_TEXT_TEXT_H
#define DREY_TEXT_TEXT_H

#include "text/detokenizer.h"
#include "text/tokenizer.h"

#endif
