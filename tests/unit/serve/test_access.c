/* Names that a server answers to. */
#include "serve/net/access.h"

#include "support/test.h"

static bool allowed(const char *host, const char *origin)
{
    const access_rules rules = {.host = "my.host", .origins = "localhost"};
    http_head h = {.host = {host, strlen(host)}};
    refusal r;
    if (origin)
        h.origin = (http_span){origin, strlen(origin)};
    return access_allows(&rules, &h, false, &r);
}

TEST(hosts_are_addresses_and_local_names)
{
    static const char *const good[] = {"localhost",           "LOCALHOST:8080", "a.localhost",
                                       "127.0.0.1",           "192.168.0.7:1",  "my.host",
                                       "my.host:8080",        "[::1]",          "[::1]:80",
                                       "[fe80::1%25eth0]:80", "[::1%eth0]:",    ""};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(allowed(good[i], NULL));
}

TEST(other_hosts_are_refused)
{
    static const char *const bad[] = {"evil",
                                      "[evil",
                                      "[evil]",
                                      "[",
                                      "[]",
                                      "[%eth0]",
                                      "[::1",
                                      "[::1].evil.com",
                                      "[::1]evil",
                                      "[::1]:80:evil.com",
                                      "[127.0.0.1]",
                                      "localhost:evil",
                                      "localhost:80:80",
                                      "127.0.0.1:evil.com",
                                      "127.0.0.1.evil.com",
                                      "xlocalhost",
                                      "my.host.evil",
                                      "::1",
                                      "\xff\x9b"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(allowed(bad[i], NULL));
    char long_one[300];
    memset(long_one, '1', sizeof long_one);
    long_one[0] = '[';
    long_one[298] = ']';
    long_one[299] = '\0';
    assert_false(allowed(long_one, NULL));
}

TEST(pages_of_this_machine_are_no_names_that_begin_like_it)
{
    assert_true(allowed("localhost", "http://localhost:5000"));
    assert_true(allowed("localhost", "http://[::1]:5000"));
    assert_true(allowed("localhost", "http://127.0.0.2"));
    assert_false(allowed("localhost", "http://[::1].evil.com"));
    assert_false(allowed("localhost", "http://localhost:5000.evil.com"));
    assert_false(allowed("localhost", "http://[::1"));
    assert_false(allowed("localhost", "http://127.evil.com"));
}
