/* The page of `nodectl explain verdict` for tests: as it is printed, its lines and its columns. */
#ifndef JURY_TEST_NODECTL_PAGE_H
#define JURY_TEST_NODECTL_PAGE_H

#include "golden.h"

#include <ctype.h>

#define WORDS 16

static char *page; /* as the command prints it */
static char *flat; /* the same with one blank for blanks and line ends */

static inline int read_page(void **state)
{
    (void)state;
    struct golden_run run = run_nodectl("explain verdict");

    size_t n = 0;

    page = run.out;
    free(run.err);
    flat = calloc(1, strlen(page) + 1);
    for (const char *at = page; flat != NULL && *at != '\0'; at++) {
        if (!isspace((unsigned char)*at)) {
            flat[n++] = *at;
        } else if (n > 0 && flat[n - 1] != ' ') {
            flat[n++] = ' ';
        }
    }
    return flat == NULL ? -1 : run.status;
}

static inline int free_page(void **state)
{
    (void)state;
    free(page);
    free(flat);
    return 0;
}

static inline const char *next_line(const char *line)
{
    const char *end = strchr(line, '\n');

    return end == NULL ? "" : end + 1;
}

/* The line that begins with these words; the test fails if there is none. */
static inline const char *line_of(const char *words)
{
    for (const char *line = page; *line != '\0'; line = next_line(line)) {
        if (strncmp(line, words, strlen(words)) == 0) {
            return line;
        }
    }
    fail_msg("the page has no line \"%s...\"", words);
    return page;
}

static inline bool is_row(const char *line)
{
    return strncmp(line, "  ", 2) == 0;
}

/* Columns first..last of a line, counted from 0, without blanks at the ends. */
static inline char *cell(const char *line, size_t first, size_t last, char text[128])
{
    size_t n = strcspn(line, "\n");

    last = last < n ? last : n;
    while (first < last && line[first] == ' ') {
        first++;
    }
    while (last > first && line[last - 1] == ' ') {
        last--;
    }
    snprintf(text, 128, "%.*s", first < last ? (int)(last - first) : 0, line + first);
    return text;
}

static inline size_t column_of(const char *head, const char *title)
{
    const char *at = strstr(head, title);

    assert_non_null(at);
    assert_true(at < next_line(head));
    return (size_t)(at - head);
}

static inline size_t split(const char *text, char words[WORDS][32])
{
    size_t n = 0;

    while (*(text += strspn(text, " ")) != '\0' && n < WORDS) {
        size_t bytes = strcspn(text, " ");

        snprintf(words[n++], 32, "%.*s", (int)bytes, text);
        text += bytes;
    }
    return n;
}

#endif
