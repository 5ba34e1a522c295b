/* Stands in for jury-agent in tests of data planes: makes a forwarding table from lines of text and
 * reads the status files. One command a line on standard input, one answer a line: `ok ...` or
 * `error ...`.
 *
 *   open DIR EPOCH [NODE]                    a new agent
 *   clear                                    describe anew; rows are remembered
 *   group NAME SCHEDULER IDLE_MS             5-tuple, source, rr or wrr
 *   backend ADDRESS:PORT WEIGHT              of the newest group
 *   listener NAME ADDRESS:PORT GROUP [IDLE_MS]
 *   publish REVISION                         words and layout; answers the generation
 *   set GROUP ADDRESS:PORT CLASS POLICY MS   one word at once: healthy, none, fail-open, ...; keep,
 *                                            close-at, ...; deadline in MS from now, or 0
 *   beat                                     heartbeat
 *   close                                    the agent is gone, the table stays
 *   planes DIR                               data planes of a status folder, as JSON
 *   row DIR GROUP ADDRESS:PORT               its numbers, as JSON (GROUP alone: of the group)
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/drain.h"
#include "agent/table/status_reader.h"
#include "agent/table/table_rescue.h"
#include "common/base/clock.h"
#include "common/model/group.h"
#include "common/model/names.h"
#include "tests/lib/row_words.h"
#include "tests/lib/sketch.h"

#define WORDS_MAX 8

struct feed {
    char dir[512];
    struct sketch *sketch;
    struct table_writer *writer;
    uint64_t revision;
};

static void answer_error(const char *text)
{
    printf("error %s\n", text);
}

static unsigned class_of(const char *word)
{
    for (unsigned i = ROW_REMOVED; i <= ROW_SCOPE_WARMING; i++) {
        if (strcmp(row_class_word(i), word) == 0) {
            return i;
        }
    }
    return ROW_NONE;
}

static unsigned policy_of(const char *word)
{
    for (unsigned i = FLOW_KEEP; i <= FLOW_HOLD_IDLE; i++) {
        if (strcmp(flow_policy_word(i), word) == 0) {
            return i;
        }
    }
    return FLOW_KEEP;
}

static void feed_open(struct feed *feed, char *words[], int n_words)
{
    struct errmsg err = {{0}};

    table_writer_close(feed->writer);
    feed->writer = NULL;
    snprintf(feed->dir, sizeof feed->dir, "%s", words[1]);
    if (n_words < 3 ||
        sketch_writer(feed->dir, strtoull(words[2], NULL, 10), &feed->writer, &err) != 0) {
        answer_error(err.text);
        return;
    }
    printf("ok %" PRIu64 "\n", table_writer_old_revision(feed->writer));
}

static void feed_publish(struct feed *feed, const char *revision)
{
    struct errmsg err = {{0}};

    feed->revision = strtoull(revision, NULL, 10);
    if (feed->writer == NULL ||
        sketch_publish(feed->sketch, feed->writer, feed->dir, feed->revision, &err) != 0) {
        answer_error(err.text);
        return;
    }
    table_writer_heartbeat(feed->writer, clock_boottime_ns());
    printf("ok %" PRIu64 "\n", table_writer_generation(feed->writer));
}

static void feed_set(struct feed *feed, char *words[], int n_words)
{
    struct errmsg err = {{0}};
    struct row_word *word = n_words < 6 ? NULL : sketch_word(feed->sketch, words[1], words[2]);

    if (word == NULL || feed->writer == NULL) {
        answer_error("no such backend");
        return;
    }
    uint32_t timeout_ms = (uint32_t)strtoul(words[5], NULL, 10);
    word->row_class = (uint8_t)class_of(words[3]);
    word->weight_percent = n_words > 6 ? (uint8_t)strtoul(words[6], NULL, 10) : 100;
    word->flow_policy = (uint8_t)policy_of(words[4]);
    word->deadline_boot_ns = timeout_ms == 0 ? 0 : drain_deadline(clock_boottime_ns(), timeout_ms);
    word->deadline_cause = timeout_ms == 0 ? DEADLINE_NONE : DEADLINE_DRAIN;
    if (table_writer_apply(feed->writer, word, 1, feed->revision, &err) != 0) {
        answer_error(err.text);
        return;
    }
    printf("ok %" PRIu64 "\n", table_writer_generation(feed->writer));
}

static void feed_describe(struct feed *feed, char *words[], int n_words)
{
    bool is_done = false;

    if (strcmp(words[0], "group") == 0 && n_words == 4) {
        unsigned scheduler = names_value(&names_scheduler, words[2]);
        struct jury_scope *scope = sketch_group(feed->sketch, words[1], scheduler);

        scope->idle_timeout_ms = (uint32_t)strtoul(words[3], NULL, 10);
        is_done = scheduler != SCHEDULER_NONE;
    } else if (strcmp(words[0], "backend") == 0 && n_words == 3) {
        is_done =
            sketch_backend(feed->sketch, words[1], (uint8_t)strtoul(words[2], NULL, 10)) != NULL;
    } else if (strcmp(words[0], "listener") == 0 && n_words >= 4) {
        struct jury_listener *listener =
            sketch_listener(feed->sketch, words[1], words[2], words[3]);

        if (listener != NULL && n_words > 4) {
            listener->idle_timeout_ms = (uint32_t)strtoul(words[4], NULL, 10);
        }
        is_done = listener != NULL;
    }
    if (is_done) {
        printf("ok\n");
    } else {
        answer_error("not understood");
    }
}

static void print_totals(const struct jury_status_worker *totals)
{
    printf(
        "\"flows\":%" PRIu64 ",\"accepted\":%" PRIu64 ",\"refused_closed\":%" PRIu64
        ",\"refused_limit\":%" PRIu64 ",\"connect_failures\":%" PRIu64 ",\"retried\":%" PRIu64
        ",\"unreached\":%" PRIu64 ",\"ended\":%" PRIu64 ",\"reset\":%" PRIu64 ",\"idled\":%" PRIu64
        ",\"closed\":%" PRIu64 ",\"bytes_to_backend\":%" PRIu64 ",\"bytes_to_client\":%" PRIu64,
        totals->flows, totals->accepted, totals->refused_closed, totals->refused_limit,
        totals->connect_failures, totals->retried, totals->unreached, totals->ended, totals->reset,
        totals->idled, totals->closed, totals->bytes_to_backend, totals->bytes_to_client);
}

static struct status_reader *scan(const char *dir)
{
    struct boot_id boot_id;
    struct errmsg err;

    if (boot_id_read(&boot_id, &err) != 0) {
        return NULL;
    }
    struct status_reader *reader = status_reader_new(dir, &boot_id);
    status_reader_scan(reader, clock_boottime_ns(), NULL);
    return reader;
}

static void feed_planes(const char *dir)
{
    struct status_reader *reader = scan(dir);

    printf("ok [");
    for (size_t i = 0; i < status_reader_n_planes(reader); i++) {
        const struct plane_view *view = status_reader_plane(reader, i);

        printf("%s{\"name\":\"%s\",\"state\":\"%s\",\"pid\":%" PRIu64 ",\"workers\":%u,"
               "\"heartbeat_age_ms\":%" PRIu64 ",\"generation\":%" PRIu64 ",",
               i > 0 ? "," : "", view->name, plane_state_word(view->plane_state), view->pid,
               view->n_workers, view->heartbeat_age_ns / 1000000, view->adopted_generation);
        print_totals(&view->totals);
        printf("}");
    }
    printf("]\n");
    status_reader_free(reader);
}

static void feed_row(struct feed *feed, char *words[], int n_words)
{
    struct row_word *word =
        n_words < 3 ? NULL : sketch_word(feed->sketch, words[2], n_words > 3 ? words[3] : "");

    if (word == NULL || feed->writer == NULL) {
        answer_error("no such backend");
        return;
    }
    struct status_reader *reader = scan(words[1]);
    struct data_plane_row row = {.row = word->row, .birth = word->birth};
    struct jury_status_row sum;
    bool is_counting = status_reader_answer(reader, feed->writer, &row, 1);
    bool is_known = status_reader_row(reader, row.row, row.birth, &sum);

    printf("ok {\"counting\":%d,\"known\":%d,\"adopted\":%d,\"flows\":%" PRIu64
           ",\"new_flows\":%" PRIu64 ",\"refused\":%" PRIu64 ",\"connect_failures\":%" PRIu64
           ",\"closed\":%" PRIu64 ",\"bytes_to_backend\":%" PRIu64 ",\"bytes_to_client\":%" PRIu64
           "}\n",
           is_counting, is_known, row.is_adopted, sum.flows, sum.new_flows, sum.refused,
           sum.connect_failures, sum.closed, sum.bytes_to_backend, sum.bytes_to_client);
    status_reader_free(reader);
}

static void run_line(struct feed *feed, char *words[], int n_words)
{
    if (strcmp(words[0], "open") == 0 && n_words > 1) {
        feed_open(feed, words, n_words);
    } else if (strcmp(words[0], "clear") == 0) {
        sketch_clear(feed->sketch);
        printf("ok\n");
    } else if (strcmp(words[0], "publish") == 0 && n_words == 2) {
        feed_publish(feed, words[1]);
    } else if (strcmp(words[0], "set") == 0) {
        feed_set(feed, words, n_words);
    } else if (strcmp(words[0], "beat") == 0 && feed->writer != NULL) {
        table_writer_heartbeat(feed->writer, clock_boottime_ns());
        printf("ok\n");
    } else if (strcmp(words[0], "close") == 0) {
        table_writer_close(feed->writer);
        feed->writer = NULL;
        printf("ok\n");
    } else if (strcmp(words[0], "planes") == 0 && n_words == 2) {
        feed_planes(words[1]);
    } else if (strcmp(words[0], "row") == 0) {
        feed_row(feed, words, n_words);
    } else {
        feed_describe(feed, words, n_words);
    }
}

int main(void)
{
    struct feed feed = {.sketch = sketch_new()};
    char line[2048];

    table_rescue_install();
    while (fgets(line, sizeof line, stdin) != NULL) {
        char *words[WORDS_MAX];
        int n_words = 0;

        for (char *word = strtok(line, " \n"); word != NULL && n_words < WORDS_MAX;
             word = strtok(NULL, " \n")) {
            words[n_words++] = word;
        }
        if (n_words > 0) {
            run_line(&feed, words, n_words);
            fflush(stdout);
        }
    }
    table_writer_close(feed.writer);
    sketch_free(feed.sketch);
    return 0;
}
