/* drey runs a language model that is larger than its memory budget, with the help of a small model,
 * and writes exactly the text that the large model alone would have written.
 *
 * How to use it: open a model (header and tokenizer, no weights), turn text into token ids, open an
 * engine (the memory plan: what is pinned, what is streamed), open a session (one timeline with its
 * caches), generate. Every function that can fail returns a drey_status and fills a drey_error,
 * which may be NULL. The library never exits, aborts, prints, or reads the environment, and always
 * computes in the default floating-point environment. One thread at a time may use an object,
 * unless a comment says otherwise.
 *
 * Call the `_init` function of a structure before filling it. The size and the field offsets of
 * structures do not change while the library's soname is the same (libdrey.so.0.MINOR before 1.0,
 * libdrey.so.MAJOR from then on): a new field is taken from `reserved`, which `_init` sets to zero,
 * and zero keeps the earlier behaviour. So a program runs with any later library of its soname
 * without being compiled again. Conversations are in drey/chat.h, functions that measure in
 * drey/tune.h. */
#ifndef DREY_H
#define DREY_H

#include "drey/drey_engine.h"
#include "drey/drey_grammar.h"
#include "drey/drey_model.h"
#include "drey/drey_session.h"

#endif
