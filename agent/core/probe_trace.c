#include "agent/core/probe_trace.h"

#include <stdio.h>
#include <string.h>

struct probe_step *probe_trace_add(struct probe_trace *trace, uint64_t at_ns,
                                   enum probe_step_kind kind)
{
    if (trace == NULL) {
        return NULL;
    }
    if (trace->n_steps == PROBE_TRACE_STEPS) {
        trace->n_left_out++;
        return NULL;
    }
    struct probe_step *step = &trace->steps[trace->n_steps++];
    *step = (struct probe_step){.at_ns = at_ns, .kind = (uint8_t)kind};
    return step;
}

/* How one byte is shown. Returns the number of characters. */
static size_t show(uint8_t byte, char text[5])
{
    if (byte == '\\') {
        return (size_t)snprintf(text, 5, "\\\\");
    }
    if (byte >= ' ' && byte < 127) {
        return (size_t)snprintf(text, 5, "%c", byte);
    }
    return (size_t)snprintf(text, 5, "\\x%02x", byte);
}

static size_t shown_length(const uint8_t bytes[], size_t n_bytes)
{
    size_t sum = 0;
    char one[5];

    for (size_t i = 0; i < n_bytes; i++) {
        sum += show(bytes[i], one);
    }
    return sum;
}

void probe_step_set_bytes(struct probe_step *step, const void *bytes, size_t n_bytes)
{
    const uint8_t *at = bytes;
    const uint8_t *end = n_bytes == 0 ? NULL : memchr(at, '\n', n_bytes);
    size_t n_line = end == NULL ? n_bytes : (size_t)(end - at);
    size_t used = 0;

    if (step == NULL) {
        return;
    }
    step->n_bytes = (uint32_t)n_bytes;
    if (end != NULL && n_line > 0 && at[n_line - 1] == '\r') {
        n_line--;
    }
    bool is_whole = shown_length(at, n_line) < sizeof step->text;
    for (size_t i = 0; i < n_line; i++) {
        char one[5];
        size_t n = show(at[i], one);

        if (!is_whole && used + n > sizeof step->text - sizeof "...") {
            memcpy(step->text + used, "...", sizeof "...");
            return;
        }
        memcpy(step->text + used, one, n);
        used += n;
    }
    step->text[used] = '\0';
}

struct icmp_name {
    uint8_t type;
    uint8_t code;
    const char *text;
};

/* RFC 792, RFC 1122 3.2.2.1, RFC 1812 5.2.7.1; RFC 4443 3. */
static const struct icmp_name ipv4_names[] = {
    {3, 0, "network unreachable"},
    {3, 1, "host unreachable"},
    {3, 2, "protocol unreachable"},
    {3, 3, "port unreachable"},
    {3, 4, "fragmentation needed"},
    {3, 9, "network administratively prohibited"},
    {3, 10, "host administratively prohibited"},
    {3, 13, "communication administratively prohibited"},
    {11, 0, "time to live exceeded"},
};
static const struct icmp_name ipv6_names[] = {
    {1, 0, "no route to destination"},
    {1, 1, "administratively prohibited"},
    {1, 2, "beyond scope of source address"},
    {1, 3, "address unreachable"},
    {1, 4, "port unreachable"},
    {1, 5, "source address failed policy"},
    {1, 6, "route rejected"},
    {2, 0, "packet too big"},
    {3, 0, "hop limit exceeded"},
};

static const char *icmp_text(const struct icmp_name names[], size_t n, uint8_t type, uint8_t code)
{
    for (size_t i = 0; i < n; i++) {
        if (names[i].type == type && names[i].code == code) {
            return names[i].text;
        }
    }
    return "error";
}

void probe_step_set_icmp(struct probe_step *step, bool is_ipv6, uint8_t type, uint8_t code)
{
    const char *text =
        is_ipv6 ? icmp_text(ipv6_names, sizeof ipv6_names / sizeof ipv6_names[0], type, code)
                : icmp_text(ipv4_names, sizeof ipv4_names / sizeof ipv4_names[0], type, code);

    if (step != NULL) {
        snprintf(step->text, sizeof step->text, "%s (type %u, code %u)", text, type, code);
    }
}
