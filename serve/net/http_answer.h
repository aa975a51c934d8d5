/* Answers that are known as a whole: of the server's own endpoints, of the router's, and refusals.
 * They are put into the client's memory, and the handler's `answered` says that it is so. */
#pragma once

#include "serve/net/http_server.h"

enum { HTTP_HEAD_BYTES = 4096 }; /* room for the head of an answer */

typedef struct http_answer {
    int status;
    const char *type;    /* NULL: without a body */
    const char *headers; /* further ones; NULL: none */
    const char *body;    /* [n]: copied, or left where it is if it is `constant` */
    size_t n;
    bool constant;
} http_answer;

void http_respond(http_server *h, http_client *c, const http_answer *a);
/* JSON that is a text, or in memory that may have been too small. */
void http_respond_text(http_server *h, http_client *c, const char *text);
void http_respond_json(http_server *h, http_client *c, const text_out *body);
/* A refusal, in the words of the interface that was asked. */
void http_refuse(http_server *h, http_client *c, const refusal *r);
void http_respond_page(http_server *h, http_client *c);

/* Puts out the first lines of a head. */
void http_put_head(const access_rules *rules, const http_head *h, int status,
                   const char *content_type, bool keeps, text_out *out);
