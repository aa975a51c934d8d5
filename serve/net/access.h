/* Decides who may ask: by key, by the name that the client has for this host, and by the page that
 * asks. */
#pragma once

#include "serve/parse/parse_request.h"
#include "serve/net/http.h"

/* All borrowed, as serve_options has them. */
typedef struct access_rules {
    const char *api_keys, *origins, *host;
    bool is_unix;
} access_rules;

/* May the client ask at all? */
bool access_allows(const access_rules *rules, const http_head *h, bool needs_key, refusal *r);
/* Returns whether it has shown a key; true where none is needed. */
bool access_shows_key(const access_rules *rules, const http_head *h);
/* Returns whether a list, of words between commas, has the word; NULL: an empty one. */
bool access_lists(const char *list, const char *word);
/* Puts out the headers without which browsers keep the answer from pages of another origin. */
void access_put_headers(const access_rules *rules, const http_head *h, text_out *out);
