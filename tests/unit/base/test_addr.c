/* Addresses, endpoints and prefixes in all spellings (case A27, row 1.13). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/addr.h"

static void spellings_of_one_address_are_one_address(void **unused)
{
    static const struct {
        const char *text;
        const char *canonical;
    } rows[] = {
        {"2001:db8::10", "2001:db8::10"},
        {"2001:DB8:0:0:0:0:0:10", "2001:db8::10"},
        {"2001:0db8:0000:0000:0000:0000:0000:0010", "2001:db8::10"},
        {"2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"},
        {"2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"},
        {"::1", "::1"},
        {"::", "::"},
        {"192.0.2.10", "192.0.2.10"},
        {"0.0.0.0", "0.0.0.0"},
        {"64:ff9b::192.0.2.33", "64:ff9b::c000:221"},
    };

    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct addr addr;
        struct addr again;
        char text[ADDR_TEXT_BYTES];

        assert_int_equal(addr_parse(rows[i].text, &addr, NULL), 0);
        assert_string_equal(addr_format(&addr, text), rows[i].canonical);
        assert_int_equal(addr_parse(text, &again, NULL), 0);
        assert_memory_equal(&addr, &again, sizeof addr);
        assert_true(addr_is_valid(&addr));
    }
}

static void what_is_no_address_is_refused(void **unused)
{
    static const struct {
        const char *text;
        const char *why;
    } rows[] = {
        {"", "not an IP address"},
        {"web1.example", "not an IP address"},
        {"192.0.2", "not an IP address"},
        {"192.0.2.1.1", "not an IP address"},
        {"192.0.2.010", "not an IP address"}, /* would be octal for some */
        {"192.0.2.256", "not an IP address"},
        {"0x7f.1", "not an IP address"},
        {"3221225985", "not an IP address"},
        {" 192.0.2.1", "not an IP address"},
        {"[2001:db8::1]", "not an IP address"},
        {"2001:db8::1::2", "not an IP address"},
        {"::ffff:192.0.2.1", "IPv4-mapped"},
        {"::ffff:c000:201", "IPv4-mapped"},
        {"fe80::1", "link-local"},
        {"fe80::1%eth0", "zone"},
        {"192.0.2.1%eth0", "zone"},
    };

    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct addr addr = {.family = 99};
        struct errmsg err;

        assert_int_equal(addr_parse(rows[i].text, &addr, &err), ERR_INVALID);
        assert_int_equal(addr.family, 99);
        assert_non_null(strstr(err.text, rows[i].text));
        assert_non_null(strstr(err.text, rows[i].why));
    }
}

static void endpoints_have_one_output(void **unused)
{
    static const struct {
        const char *text;
        const char *canonical;
    } rows[] = {
        {"[2001:db8::10]:80", "[2001:db8::10]:80"},
        {"[2001:DB8:0::10]:80", "[2001:db8::10]:80"},
        {"192.0.2.10:65535", "192.0.2.10:65535"},
        {"192.0.2.10:1", "192.0.2.10:1"},
    };

    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct endpoint endpoint;
        char text[ENDPOINT_TEXT_BYTES];

        assert_int_equal(endpoint_parse(rows[i].text, &endpoint, NULL), 0);
        assert_string_equal(endpoint_format(&endpoint, text), rows[i].canonical);
    }
}

static void ambiguous_endpoints_are_refused(void **unused)
{
    static const struct {
        const char *text;
        const char *why;
    } rows[] = {
        {"2001:db8::10:80", "ambiguous"}, /* A27 */
        {"[2001:db8::10]", "no port"},    /* A27 */
        {"fe80::1", "ambiguous"},
        {"[fe80::1]:80", "link-local"}, /* A27: zone needed */
        {"[fe80::1%eth0]:80", "zone"},
        {"[2001:db8::10]80", "no port"},
        {"[2001:db8::10:80", "\"]\" is missing"},
        {"[192.0.2.1]:80", "brackets"},
        {"192.0.2.1", "no port"},
        {"192.0.2.1:", "port must be 1..65535"},
        {"192.0.2.1:0", "port must be 1..65535"},
        {"192.0.2.1:65536", "port must be 1..65535"},
        {"192.0.2.1:999999999999", "port must be 1..65535"},
        {"192.0.2.1:+80", "port must be 1..65535"},
        {"192.0.2.1:80 ", "port must be 1..65535"},
        {"192.0.2.1:http", "port must be 1..65535"},
        {"localhost:80", "not an IP address"},
        {":80", "not an IP address"},
        {"", "no port"},
    };

    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct endpoint endpoint = {.port = 7};
        struct errmsg err;

        assert_int_equal(endpoint_parse(rows[i].text, &endpoint, &err), ERR_INVALID);
        assert_int_equal(endpoint.port, 7);
        assert_non_null(strstr(err.text, rows[i].why));
    }
}

static void prefixes_hold_what_they_should(void **unused)
{
    static const struct {
        const char *cidr;
        const char *addr;
        bool holds;
    } rows[] = {
        {"10.0.0.0/8", "10.255.0.1", true},
        {"10.0.0.0/8", "11.0.0.1", false},
        {"100.64.0.0/10", "100.127.255.255", true},
        {"100.64.0.0/10", "100.128.0.0", false},
        {"172.16.0.0/12", "172.31.255.255", true},
        {"172.16.0.0/12", "172.32.0.0", false},
        {"192.168.0.0/16", "192.168.3.4", true},
        {"fc00::/7", "fdff::1", true},
        {"fc00::/7", "fe00::1", false},
        {"0.0.0.0/0", "203.0.113.9", true},
        {"0.0.0.0/0", "2001:db8::1", false},
        {"::/0", "2001:db8::1", true},
        {"::/0", "10.0.0.1", false},
        {"192.0.2.1/32", "192.0.2.1", true},
        {"192.0.2.1/32", "192.0.2.2", false},
        {"2001:db8::1/128", "2001:db8::1", true},
    };

    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct cidr cidr;
        struct addr addr;
        char text[CIDR_TEXT_BYTES];

        assert_int_equal(cidr_parse(rows[i].cidr, &cidr, NULL), 0);
        assert_true(cidr_is_valid(&cidr));
        assert_string_equal(cidr_format(&cidr, text), rows[i].cidr);
        assert_int_equal(addr_parse(rows[i].addr, &addr, NULL), 0);
        assert_int_equal(cidr_contains(&cidr, &addr), rows[i].holds);
    }
}

static void wrong_prefixes_are_refused(void **unused)
{
    static const char *const texts[] = {
        "10.0.0.0", "10.0.0.0/",  "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.1/8",   "10.0.0.0/8 ",
        "/8",       "fc00::/129", "fc00::1/7",   "ten/8",       "10.0.0.0/0x8", "10.0.0.0/0008"};

    (void)unused;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct cidr cidr;
        struct errmsg err;

        assert_int_equal(cidr_parse(texts[i], &cidr, &err), ERR_INVALID);
        assert_non_null(strstr(err.text, texts[i]));
    }
}

static void kinds_of_addresses_are_known(void **unused)
{
    static const struct {
        const char *text;
        bool loopback, link_local, multicast, unspecified;
    } rows[] = {
        {"127.0.0.1", true, false, false, false}, {"127.255.0.9", true, false, false, false},
        {"::1", true, false, false, false},       {"169.254.1.1", false, true, false, false},
        {"224.0.0.1", false, false, true, false}, {"239.255.255.255", false, false, true, false},
        {"ff02::1", false, false, true, false},   {"0.0.0.0", false, false, false, true},
        {"::", false, false, false, true},        {"240.0.0.1", false, false, false, false},
        {"10.0.0.1", false, false, false, false}, {"2001:db8::1", false, false, false, false},
    };

    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct addr addr;

        assert_int_equal(addr_parse(rows[i].text, &addr, NULL), 0);
        assert_int_equal(addr_is_loopback(&addr), rows[i].loopback);
        assert_int_equal(addr_is_link_local(&addr), rows[i].link_local);
        assert_int_equal(addr_is_multicast(&addr), rows[i].multicast);
        assert_int_equal(addr_is_unspecified(&addr), rows[i].unspecified);
    }
}

static void values_that_no_text_makes_are_not_valid(void **unused)
{
    struct addr family = {.family = 5};
    struct addr tail = {.family = ADDR_IPV4, .bytes = {10, 0, 0, 1, 1}};
    struct addr mapped = {.family = ADDR_IPV6, .bytes = {[10] = 0xff, [11] = 0xff, [15] = 1}};
    struct addr link = {.family = ADDR_IPV6, .bytes = {0xfe, 0x80, [15] = 1}};
    struct cidr bits = {.addr = {.family = ADDR_IPV4, .bytes = {10}}, .prefix_bits = 33};
    struct cidr behind = {.addr = {.family = ADDR_IPV4, .bytes = {10, 1}}, .prefix_bits = 8};

    (void)unused;
    assert_false(addr_is_valid(&family));
    assert_false(addr_is_valid(&tail));
    assert_false(addr_is_valid(&mapped));
    assert_false(addr_is_valid(&link));
    assert_false(cidr_is_valid(&bits));
    assert_false(cidr_is_valid(&behind));
}

static void order_is_family_then_bytes_then_port(void **unused)
{
    static const char *const sorted[] = {"9.0.0.1:80", "10.0.0.1:79",      "10.0.0.1:80",
                                         "10.0.0.2:1", "[2001:db8::1]:80", "[2001:db8::2]:1"};

    (void)unused;
    for (size_t i = 0; i < sizeof sorted / sizeof sorted[0]; i++) {
        for (size_t j = 0; j < sizeof sorted / sizeof sorted[0]; j++) {
            struct endpoint a;
            struct endpoint b;

            assert_int_equal(endpoint_parse(sorted[i], &a, NULL), 0);
            assert_int_equal(endpoint_parse(sorted[j], &b, NULL), 0);
            int order = endpoint_compare(&a, &b);
            assert_int_equal((order > 0) - (order < 0), (i > j) - (i < j));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spellings_of_one_address_are_one_address),
        cmocka_unit_test(what_is_no_address_is_refused),
        cmocka_unit_test(endpoints_have_one_output),
        cmocka_unit_test(ambiguous_endpoints_are_refused),
        cmocka_unit_test(prefixes_hold_what_they_should),
        cmocka_unit_test(wrong_prefixes_are_refused),
        cmocka_unit_test(kinds_of_addresses_are_known),
        cmocka_unit_test(values_that_no_text_makes_are_not_valid),
        cmocka_unit_test(order_is_family_then_bytes_then_port),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
