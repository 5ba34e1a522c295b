#include "agent/core/http_request.h"

#include <assert.h>
#include <stdio.h>

#include "common/base/addr.h"

#define HOST_LINE_BYTES (LIMIT_DOMAIN_BYTES + ENDPOINT_TEXT_BYTES)

/* "Host: x\r\n", or nothing. */
static void write_host(const struct target_definition *definition, char line[HOST_LINE_BYTES])
{
    const struct http_check *http = &definition->check->http;
    char text[ENDPOINT_TEXT_BYTES];

    line[0] = '\0';
    switch ((enum http_host)http->host) {
    case HTTP_HOST_DOMAIN:
        snprintf(line, HOST_LINE_BYTES, "Host: %s\r\n", http->domain);
        return;
    case HTTP_HOST_ADDRESS:
        addr_format(&definition->to.addr, text);
        if (definition->to.addr.family == ADDR_IPV6) {
            snprintf(line, HOST_LINE_BYTES, "Host: [%s]\r\n", text);
        } else {
            snprintf(line, HOST_LINE_BYTES, "Host: %s\r\n", text);
        }
        return;
    case HTTP_HOST_ADDRESS_PORT:
        snprintf(line, HOST_LINE_BYTES, "Host: %s\r\n", endpoint_format(&definition->to, text));
        return;
    case HTTP_HOST_OMITTED:
    case HTTP_HOST_NONE:
        return;
    }
}

size_t http_request_build(const struct target_definition *definition,
                          char ret_request[HTTP_REQUEST_BYTES_MAX])
{
    const struct http_check *http = &definition->check->http;
    char host[HOST_LINE_BYTES];

    assert(check_asks_http(definition->check));
    assert(http->path[0] == '/');
    write_host(definition, host);
    int n_bytes = snprintf(ret_request, HTTP_REQUEST_BYTES_MAX,
                           "%s %s HTTP/%s\r\n"
                           "%s"
                           "User-Agent: " HTTP_USER_AGENT "\r\n"
                           "Connection: close\r\n"
                           "\r\n",
                           http->method == HTTP_HEAD ? "HEAD" : "GET", http->path,
                           http->version == HTTP_1_1 ? "1.1" : "1.0", host);
    assert(n_bytes > 0 && n_bytes < HTTP_REQUEST_BYTES_MAX);
    return (size_t)n_bytes;
}
