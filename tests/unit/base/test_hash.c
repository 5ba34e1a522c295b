/* SipHash-2-4 and CRC-32C against published vectors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/hash.h"
#include "common/base/str.h"

/* The reference vectors: key 00 01 .. 0f, message 00 01 .. of the given length, results as bytes.
 */
static const struct {
    size_t n_bytes;
    const char *hash_64;
    const char *hash_128;
} vectors[] = {
    {0, "310e0edd47db6f72", "a3817f04ba25a8e66df67214c7550293"},
    {1, "fd67dc93c539f874", "da87c1d86b99af44347659119b22fc45"},
    {2, "5a4fa9d909806c0d", "8177228da4a45dc7fca38bdef60affe4"},
    {3, "2d7efbd796666785", "9c70b60c5267a94e5f33b6b02985ed51"},
    {8, "6224939a79f5f593", "3b62a9ba6258f5610f83e264f31497b4"},
    {15, "e545be4961ca29a1", "5493e99933b0a8117e08ec0f97cfc3d9"},
    {63, "724506eb4c328a95", "5150d1772f50834a503e069a973fbd7c"},
};

static void little_endian(uint64_t value, uint8_t bytes[8])
{
    for (unsigned i = 0; i < 8; i++) {
        bytes[i] = (uint8_t)(value >> (8 * i));
    }
}

static void siphash_gives_the_published_results(void **unused)
{
    const struct hash_key key = {UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)};
    uint8_t message[64];

    (void)unused;
    for (unsigned i = 0; i < sizeof message; i++) {
        message[i] = (uint8_t)i;
    }
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        struct hash128 hash = hash_128(&key, message, vectors[i].n_bytes);
        uint8_t bytes[16];
        char text[33];

        little_endian(hash_64(&key, message, vectors[i].n_bytes), bytes);
        str_hex(bytes, 8, text);
        assert_string_equal(text, vectors[i].hash_64);
        little_endian(hash.low, bytes);
        little_endian(hash.high, bytes + 8);
        str_hex(bytes, 16, text);
        assert_string_equal(text, vectors[i].hash_128);
    }
}

static void crc32c_gives_the_published_results(void **unused)
{
    uint8_t block[32] = {0};

    (void)unused;
    /* RFC 3720, appendix B.4. */
    assert_int_equal(hash_crc32c(0, "123456789", 9), 0xe3069283);
    assert_int_equal(hash_crc32c(0, block, sizeof block), 0x8a9136aa);
    memset(block, 0xff, sizeof block);
    assert_int_equal(hash_crc32c(0, block, sizeof block), 0x62a8ab43);
    for (unsigned i = 0; i < sizeof block; i++) {
        block[i] = (uint8_t)i;
    }
    assert_int_equal(hash_crc32c(0, block, sizeof block), 0x46dd794e);
}

static void crc32c_goes_on_where_it_stopped(void **unused)
{
    const char *text = "123456789";

    (void)unused;
    for (size_t cut = 0; cut <= 9; cut++) {
        uint32_t crc = hash_crc32c(0, text, cut);

        assert_int_equal(hash_crc32c(crc, text + cut, 9 - cut), 0xe3069283);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(siphash_gives_the_published_results),
        cmocka_unit_test(crc32c_gives_the_published_results),
        cmocka_unit_test(crc32c_goes_on_where_it_stopped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
