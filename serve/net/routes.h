/* Endpoints (serve/api/routes.c). */
#pragma once

#include "serve/answer/answer.h"
#include "serve/net/http.h"

/* The form of an endpoint's answers and refusals; NULL: OpenAI's, or no such endpoint. */
const serializer *route_serializer(http_span path);
/* Returns whether anybody may ask, without a key. */
bool route_is_open(http_span path);
/* Returns whether the path asks for the health of the server. */
bool route_is_health(http_span path);
/* False: there is no such endpoint, it is one of `closed` (serve_options), or it takes another
 * method. */
bool route_exists(const http_head *h, const char *closed, refusal *r);
