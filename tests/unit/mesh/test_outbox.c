#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "agent/mesh/outbox.h"

/* Frames of one letter, so that an outbox reads as a word. */
static struct frame *letter(char text)
{
    uint8_t *data = malloc(1);

    data[0] = (uint8_t)text;
    return frame_new(data, 1);
}

static void put(struct outbox *outbox, char text)
{
    struct frame *frame = letter(text);

    outbox_put(outbox, frame);
    frame_unref(frame);
}

static void put_vector(struct outbox *outbox, const char *text)
{
    struct frame_set *set = frame_set_new();

    for (; *text != '\0'; text++) {
        set->frames[set->n_frames++] = letter(*text);
    }
    outbox_put_vector(outbox, set);
    frame_set_unref(set);
}

static void put_hello(struct outbox *outbox, char text)
{
    struct frame *frame = letter(text);

    outbox_put_hello(outbox, frame);
    frame_unref(frame);
}

static void put_report(struct outbox *outbox, char text)
{
    struct frame *frame = letter(text);

    outbox_put_report(outbox, frame);
    frame_unref(frame);
}

/* Send at most n frames; what was sent as a word. */
static const char *sent(struct outbox *outbox, size_t n)
{
    static char word[2 * OUTBOX_ENTRIES];
    size_t i = 0;

    for (struct frame *frame; i < n && (frame = outbox_next(outbox)) != NULL;) {
        word[i++] = (char)frame->data[0];
        outbox_sent(outbox);
    }
    word[i] = '\0';
    return word;
}

static void order_is_hello_then_as_put_then_report(void **state)
{
    struct outbox outbox = {.n_entries = 0};

    (void)state;
    put_report(&outbox, 'R');
    put(&outbox, 'a');
    put_vector(&outbox, "VW");
    put(&outbox, 'b');
    put_hello(&outbox, 'H');
    assert_string_equal(sent(&outbox, 99), "HaVWbR");
    assert_null(outbox_next(&outbox));
    outbox_close(&outbox);
}

static void a_newer_vector_replaces_the_unsent_one_and_stands_where_it_came(void **state)
{
    struct outbox outbox = {.n_entries = 0};

    (void)state;
    put_vector(&outbox, "VW");
    put(&outbox, 'a');
    put_vector(&outbox, "XY");
    put(&outbox, 'b');
    assert_int_equal(outbox.n_replaced_vectors, 1);
    assert_string_equal(sent(&outbox, 99), "aXYb");
    outbox_close(&outbox);
}

static void a_vector_sent_in_part_starts_anew_with_the_newer_one(void **state)
{
    struct outbox outbox = {.n_entries = 0};

    (void)state;
    put_vector(&outbox, "VWX");
    assert_string_equal(sent(&outbox, 2), "VW");
    put_vector(&outbox, "ABC");
    assert_string_equal(sent(&outbox, 99), "ABC");
    outbox_close(&outbox);
}

static void a_full_outbox_drops_the_oldest_changes_and_never_the_vector(void **state)
{
    struct outbox outbox = {.n_entries = 0};

    (void)state;
    put(&outbox, 'a');
    put_vector(&outbox, "V");
    for (size_t i = 0; i < OUTBOX_ENTRIES + 9; i++) {
        put(&outbox, 'c');
    }
    assert_int_equal(outbox.n_dropped, 10);
    const char *word = sent(&outbox, SIZE_MAX);
    assert_int_equal(strlen(word), OUTBOX_ENTRIES + 1);
    assert_int_equal(word[0], 'V');
    outbox_close(&outbox);
}

static void a_new_connection_gets_what_holds_now_and_no_backlog(void **state)
{
    struct outbox outbox = {.n_entries = 0};

    (void)state;
    put_hello(&outbox, 'H');
    put_vector(&outbox, "VW");
    put_report(&outbox, 'R');
    assert_string_equal(sent(&outbox, 99), "HVWR");
    put(&outbox, 'a');
    outbox_restart(&outbox);
    assert_string_equal(sent(&outbox, 99), "HVWR");
    assert_int_equal(outbox.n_dropped, 1);
    outbox_close(&outbox);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_is_hello_then_as_put_then_report),
        cmocka_unit_test(a_newer_vector_replaces_the_unsent_one_and_stands_where_it_came),
        cmocka_unit_test(a_vector_sent_in_part_starts_anew_with_the_newer_one),
        cmocka_unit_test(a_full_outbox_drops_the_oldest_changes_and_never_the_vector),
        cmocka_unit_test(a_new_connection_gets_what_holds_now_and_no_backlog),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
