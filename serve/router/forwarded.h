/* Reads a request's model, and writes its head for a process. Pure functions over bytes that
 * clients send. */
#pragma once

#include "serve/text_out.h"
#include "serve/net/http.h"

typedef enum asked_model {
    ASKED_NONE,   /* it names no model, or null */
    ASKED_NAME,   /* *name is its text */
    ASKED_OTHER,  /* its member "model" is no text, or is longer than any name */
    ASKED_BROKEN, /* the body is no JSON: *why, *at as json_reader has them */
} asked_model;

/* The member "model" of a body; the last one counts. name: [n_name], with a NUL. */
asked_model forwarded_model(const char *body, size_t n, char *name, size_t n_name, const char **why,
                            size_t *at);

/* The head that a model's process gets of the request bytes[0..n_head), whose body has n_body
 * bytes: it asks for the end of the connection after the answer. It is shorter than
 * FORWARDED_MORE + n_head. */
enum { FORWARDED_MORE = 200 };
void forwarded_head(const http_head *h, const char *bytes, size_t n_body, text_out *out);
