/* Keys, names and origins: see access.h. */
#include "serve/net/access.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

/* Compares in a time that does not depend on where they differ. */
static bool same_key(const char *key, size_t n_key, http_span given)
{
    unsigned char differs = n_key != given.n;
    for (size_t i = 0; i < given.n; i++)
        differs |= (unsigned char)(given.text[i] ^ key[n_key ? i % n_key : 0]);
    return !differs;
}

/* One of the words between commas. All are looked at. */
static bool in_list(const char *list, http_span part, bool secret)
{
    bool found = false;
    while (*list) {
        size_t n = strcspn(list, ",");
        if (secret ? n > 0 && same_key(list, n, part)
                   : n == part.n && strncasecmp(list, part.text, n) == 0)
            found = true;
        list += n + (list[n] == ',');
    }
    return found;
}

bool access_lists(const char *list, const char *word)
{
    return list && in_list(list, (http_span){word, strlen(word)}, false);
}

static bool has_key(const access_rules *rules, const http_head *h)
{
    static const char bearer[] = "Bearer ";
    http_span given = h->authorization;
    if (given.text && given.n >= sizeof bearer - 1 &&
        strncasecmp(given.text, bearer, sizeof bearer - 1) == 0)
        given = (http_span){given.text + sizeof bearer - 1, given.n - (sizeof bearer - 1)};
    else
        given = h->api_key;
    return given.text && in_list(rules->api_keys, given, true);
}

bool access_shows_key(const access_rules *rules, const http_head *h)
{
    return !rules->api_keys || has_key(rules, h);
}

/* Returns the name without the port. All of it if what follows the name is no port: then it is no
 * name of ours. */
static http_span host_name(http_span host)
{
    bool brackets = host.n && host.text[0] == '[';
    const char *end = host.n ? memchr(host.text, brackets ? ']' : ':', host.n) : NULL;
    if (!end)
        return host;
    size_t n = (size_t)(end - host.text) + brackets;
    for (size_t i = n; i < host.n; i++)
        if (i == n ? host.text[i] != ':' : host.text[i] < '0' || host.text[i] > '9')
            return host;
    return (http_span){host.text, n};
}

static bool is_local_name(http_span name)
{
    static const char local[] = "localhost";
    size_t n = sizeof local - 1;
    return (name.n == n && strncasecmp(name.text, local, n) == 0) ||
           (name.n > n && name.text[name.n - n - 1] == '.' &&
            strncasecmp(name.text + name.n - n, local, n) == 0);
}

/* Four numbers between dots; or, in brackets, an address of IPv6, with a zone after a "%". */
static bool is_address(http_span name)
{
    char text[64];
    struct in6_addr address;
    bool brackets = name.n > 2 && name.text[0] == '[' && name.text[name.n - 1] == ']';
    size_t n = brackets ? name.n - 2 : name.n;
    if (n >= sizeof text)
        return false;
    memcpy(text, name.text + brackets, n);
    text[n] = '\0';
    if (brackets)
        text[strcspn(text, "%")] = '\0';
    return inet_pton(brackets ? AF_INET6 : AF_INET, text, &address) == 1;
}

/* A page from elsewhere can have its own name point to this machine; it cannot make its name
 * an address. */
static bool is_our_name(const access_rules *rules, http_span host)
{
    http_span name = host_name(host);
    return name.n == 0 || is_local_name(name) || http_span_is(name, rules->host) ||
           is_address(name);
}

/* A page that this server itself has sent. */
static bool is_own_page(const http_head *h)
{
    http_span origin = h->origin, host = h->host;
    size_t n = strlen("http://");
    return host.text && origin.n == n + host.n && strncasecmp(origin.text, "http://", n) == 0 &&
           strncasecmp(origin.text + n, host.text, host.n) == 0;
}

/* A page of this machine, by its name or by an address. */
static bool is_local_page(http_span name)
{
    static const char v4[] = "127.";
    return is_local_name(name) || http_span_is(name, "[::1]") ||
           (name.n >= sizeof v4 - 1 && memcmp(name.text, v4, sizeof v4 - 1) == 0 &&
            is_address(name));
}

static bool is_foreign_page_allowed(const access_rules *rules, const http_head *h)
{
    const char *list = rules->origins;
    http_span origin = h->origin, star = {"*", 1}, local = {"localhost", 9};
    if (!list)
        return false;
    const char *slashes = origin.n > 7 ? memmem(origin.text, origin.n, "://", 3) : NULL;
    http_span host = slashes
                         ? (http_span){slashes + 3, origin.n - (size_t)(slashes + 3 - origin.text)}
                         : (http_span){"", 0};
    return in_list(list, star, false) || in_list(list, origin, false) ||
           (in_list(list, local, false) && host.n && is_local_page(host_name(host)));
}

bool access_allows(const access_rules *rules, const http_head *h, bool needs_key, refusal *r)
{
    if (!rules->api_keys && !rules->is_unix && h->host.text && !is_our_name(rules, h->host))
        return refuse_with(r, 403,
                           "This server answers to its address and to \"localhost\", not to "
                           "\"%.*s\": start it with an API key to let it have other names.",
                           (int)(h->host.n < 100 ? h->host.n : 100), h->host.text);
    if (h->origin.text && !is_own_page(h) && !is_foreign_page_allowed(rules, h))
        return refuse_with(r, 403,
                           "Pages of \"%.*s\" may not ask this server: name them when it is "
                           "started.",
                           (int)(h->origin.n < 100 ? h->origin.n : 100), h->origin.text);
    if (needs_key && !access_shows_key(rules, h))
        return refuse_fixed(r, 401,
                            h->authorization.text || h->api_key.text
                                ? "Invalid API Key: send one of this server's keys as "
                                  "Authorization: Bearer KEY."
                                : "This server needs a key: send Authorization: Bearer KEY.");
    return true;
}

void access_put_headers(const access_rules *rules, const http_head *h, text_out *out)
{
    if (!h->origin.text || is_own_page(h) || !is_foreign_page_allowed(rules, h))
        return;
    out_text(out, "Access-Control-Allow-Origin: ");
    out_bytes(out, h->origin.text, h->origin.n);
    out_text(out, "\r\nVary: Origin\r\n");
    if (h->method != HTTP_OPTIONS)
        return;
    out_text(out, "Access-Control-Allow-Methods: GET, POST, DELETE, OPTIONS\r\n"
                  "Access-Control-Allow-Headers: ");
    if (h->asked_headers.text)
        out_bytes(out, h->asked_headers.text, h->asked_headers.n);
    out_text(out, "\r\nAccess-Control-Max-Age: 600\r\n");
}
