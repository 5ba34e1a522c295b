/* The bytes of an http probe: cases A09 (with the modes of spec.md 3) and A10. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "agent/core/http_request.h"
#include "common/base/str.h"
#include "tests/lib/kept_check.h"

static struct target_definition definition_of(const char *to, enum http_host host)
{
    struct target_definition definition = {.check = NULL};
    struct health_check *check = own_check(&definition);

    assert_int_equal(endpoint_parse(to, &definition.to, NULL), 0);
    check->type = CHECK_TYPE_HTTP;
    check->http.method = HTTP_GET;
    check->http.version = HTTP_1_1;
    check->http.host = (uint8_t)host;
    assert_true(str_copy(check->http.path, sizeof check->http.path, "/healthz"));
    return definition;
}

static void build(const struct target_definition *definition, char text[HTTP_REQUEST_BYTES_MAX + 1])
{
    size_t n_bytes = http_request_build(definition, text);

    assert_true(n_bytes <= HTTP_REQUEST_BYTES_MAX);
    text[n_bytes] = '\0';
    assert_int_equal(strlen(text), n_bytes);
}

static unsigned count(const char *text, const char *what)
{
    unsigned n = 0;

    for (const char *at = strstr(text, what); at != NULL; at = strstr(at + 1, what)) {
        n++;
    }
    return n;
}

static void the_whole_request_is_as_documented(void **state)
{
    struct target_definition definition = definition_of("10.0.0.9:8080", HTTP_HOST_ADDRESS_PORT);
    char text[HTTP_REQUEST_BYTES_MAX + 1];

    (void)state;
    build(&definition, text);

    assert_string_equal(text, "GET /healthz HTTP/1.1\r\n"
                              "Host: 10.0.0.9:8080\r\n"
                              "User-Agent: jury-probe/" JURY_VERSION "\r\n"
                              "Connection: close\r\n"
                              "\r\n");
}

static void host_is_what_the_mode_says(void **state)
{
    static const struct {
        const char *to;
        enum http_host host;
        const char *line; /* NULL = no Host at all */
    } table[] = {
        {"[2001:db8::10]:8080", HTTP_HOST_ADDRESS_PORT, "\r\nHost: [2001:db8::10]:8080\r\n"},
        {"[2001:db8::10]:80", HTTP_HOST_ADDRESS_PORT, "\r\nHost: [2001:db8::10]:80\r\n"},
        {"192.0.2.10:8080", HTTP_HOST_ADDRESS_PORT, "\r\nHost: 192.0.2.10:8080\r\n"},
        {"192.0.2.10:80", HTTP_HOST_ADDRESS_PORT, "\r\nHost: 192.0.2.10:80\r\n"}, /* S25 */
        {"[2001:db8::10]:8080", HTTP_HOST_ADDRESS, "\r\nHost: [2001:db8::10]\r\n"},
        {"[2001:db8::10]:80", HTTP_HOST_ADDRESS, "\r\nHost: [2001:db8::10]\r\n"},
        {"192.0.2.10:8080", HTTP_HOST_ADDRESS, "\r\nHost: 192.0.2.10\r\n"},
        {"192.0.2.10:80", HTTP_HOST_ADDRESS, "\r\nHost: 192.0.2.10\r\n"},
        {"192.0.2.10:80", HTTP_HOST_DOMAIN, "\r\nHost: WWW.Example.org:8443\r\n"},
        {"[2001:db8::10]:80", HTTP_HOST_DOMAIN, "\r\nHost: WWW.Example.org:8443\r\n"},
        {"192.0.2.10:80", HTTP_HOST_OMITTED, NULL}, /* S61, S107 */
        {"[2001:db8::10]:80", HTTP_HOST_OMITTED, NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct target_definition definition = definition_of(table[i].to, table[i].host);
        char text[HTTP_REQUEST_BYTES_MAX + 1];

        if (table[i].host == HTTP_HOST_DOMAIN) {
            str_copy(own_check(&definition)->http.domain, LIMIT_DOMAIN_BYTES + 1,
                     "WWW.Example.org:8443");
        }
        build(&definition, text);

        assert_int_equal(count(text, "\r\nHost:"), table[i].line != NULL ? 1 : 0);
        if (table[i].line != NULL) {
            assert_non_null(strstr(text, table[i].line));
        }
    }
}

static void every_form_ends_with_one_empty_line_and_closes(void **state)
{
    (void)state;
    for (int host = HTTP_HOST_DOMAIN; host <= HTTP_HOST_OMITTED; host++) {
        for (int method = HTTP_GET; method <= HTTP_HEAD; method++) {
            for (int version = HTTP_1_0; version <= HTTP_1_1; version++) {
                struct target_definition definition =
                    definition_of("10.0.0.9:80", (enum http_host)host);
                char text[HTTP_REQUEST_BYTES_MAX + 1];
                char first_line[64];

                struct http_check *http = &own_check(&definition)->http;
                http->method = (uint8_t)method;
                http->version = (uint8_t)version;
                str_copy(http->domain, sizeof http->domain, "x");
                build(&definition, text);

                snprintf(first_line, sizeof first_line, "%s /healthz HTTP/%s\r\n",
                         method == HTTP_HEAD ? "HEAD" : "GET", version == HTTP_1_1 ? "1.1" : "1.0");
                assert_memory_equal(text, first_line, strlen(first_line));
                assert_int_equal(count(text, "\r\nConnection: close\r\n"), 1);
                assert_int_equal(count(text, "\r\nUser-Agent: jury-probe/"), 1);
                assert_int_equal(count(text, "\r\n\r\n"), 1);
                assert_string_equal(text + strlen(text) - 4, "\r\n\r\n");
                assert_int_equal(count(text, "\n"), count(text, "\r\n"));
            }
        }
    }
}

/* Case A10. */
static void the_query_of_a_path_is_sent_as_written(void **state)
{
    struct target_definition definition = definition_of("10.0.0.9:80", HTTP_HOST_OMITTED);
    char text[HTTP_REQUEST_BYTES_MAX + 1];
    static const char line[] = "GET /v1/sys/health?sealedcode=200&x=1%20%3F HTTP/1.1\r\n";

    (void)state;
    str_copy(own_check(&definition)->http.path, LIMIT_PATH_BYTES + 1,
             "/v1/sys/health?sealedcode=200&x=1%20%3F");
    build(&definition, text);

    assert_memory_equal(text, line, sizeof line - 1);
}

static void the_longest_request_fits(void **state)
{
    struct target_definition definition = definition_of("10.0.0.9:80", HTTP_HOST_DOMAIN);
    char text[HTTP_REQUEST_BYTES_MAX + 1];

    (void)state;
    struct http_check *http = &own_check(&definition)->http;
    memset(http->path, 'p', LIMIT_PATH_BYTES);
    http->path[0] = '/';
    memset(http->domain, 'd', LIMIT_DOMAIN_BYTES);
    http->method = HTTP_HEAD;
    build(&definition, text);

    assert_int_equal(count(text, "d"), LIMIT_DOMAIN_BYTES);
    assert_int_equal(count(text, "\r\n\r\n"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_whole_request_is_as_documented),
        cmocka_unit_test(host_is_what_the_mode_says),
        cmocka_unit_test(every_form_ends_with_one_empty_line_and_closes),
        cmocka_unit_test(the_query_of_a_path_is_sent_as_written),
        cmocka_unit_test(the_longest_request_fits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
