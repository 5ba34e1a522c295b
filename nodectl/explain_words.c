/* What `explain` says of a word that answers show: headings of tables, lines of `status`, states
 * and marks. Of the latter it is the paragraph of `explain verdict`. */
#include "nodectl/explain.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "nodectl/render.h"

/* Words that the page does not begin a paragraph with. */
static const struct {
    const char *word;
    const char *text;
} words[] = {
    {"standing",
     "A column of `why`: what the asked node does with that node's vote. counts: it is put to the "
     "rule. lost, only blocks: its sender fell silent or has no new result; it is remembered for a "
     "while, and only keeps the verdict from changing. suspect, not used: its sender doubts its "
     "own probes. not counted yet: the node was added just now. does not probe it: others do, as "
     "long as all is well. no vote: it has no opinion yet, or was never heard."},
    {"marks",
     "A column of `backend list`: what is to be known beside the state, such as held, pending, "
     "flapping, gray, suspect, warming, degraded or unreachable. Each is explained by its name: "
     "nodectl explain held."},
    {"epoch",
     "A column of `cluster members`: how often that node was started on its data directory. It "
     "tells messages of this start from older ones, and is no fault when it grows by one."},
    {"behind",
     "A column of the data planes: how many generations of the forwarding table the data plane has "
     "not taken over yet. 0 is usual; one that stays above 0 forwards by an old table. `another "
     "start`: its table is of an earlier start of the agent; `has none`: it has taken none yet."},
    {"state hash",
     "A line of `status`: a sum over the whole configuration in use. Nodes at the same revision "
     "have the same one; if not, cluster members says that the catalog differs, and their votes "
     "are refused."},
    {"streak",
     "A column of `why`: how many results of the same kind that node has had in a row. At the "
     "unhealthy threshold its opinion becomes fail, at the healthy threshold pass; one opposite "
     "result starts the count anew."},
    {"opinion",
     "What one node thinks of a target by its own probes: pass, fail, or none while it does not "
     "know. Told to the others it is that node's vote; the votes together make the verdict."},
    {"vote",
     "A node's opinion as the others hear it: at once when it changes, and all again each vote "
     "interval. It counts for three vote intervals."},
    {"verdict",
     "What a node concludes for a backend from the votes that it holds, by the group's rule. Each "
     "node reaches its own."},
    {"reachable",
     "A backend that is healthy by the votes and that this node's own probes reach as well; no "
     "opinion, or a suspect one, counts as reachable. Its opposite is unreachable from here: new "
     "flows of this node then go to others first."},
    {"unhealthy",
     "A state: by the group's rule the votes say that it is down. It gets no new flows, but in "
     "fail-open, and is probed as before."},
    {"unused", "A state: the backend is in maintenance. It gets no flows and is not probed."},
    {"revision",
     "The number of the committed configuration: it grows by one with each change. A node that is "
     "behind has not heard of the newest change yet."},
    {"term", "Of Raft: the number of the leader's election. It grows when another one is elected."},
};

/* "  held         too few votes", "  unreachable from here   healthy" */
static bool begins_paragraph(const char *line, const char *word)
{
    size_t n = strlen(word);

    if (strncmp(line, "  ", 2) != 0 || strncasecmp(line + 2, word, n) != 0) {
        return false;
    }
    const char *behind = line + 2 + n;
    return strncmp(behind, "  ", 2) == 0 || *behind == ',' ||
           strncmp(behind, " from here ", 11) == 0;
}

/* Each paragraph of the page that begins with the word, below the heading that it stands under. */
static bool put_paragraphs(FILE *out, const char *word)
{
    const char *heading = "";
    bool is_found = false;

    for (size_t i = 0; verdict_page[i] != NULL; i++) {
        if (isdigit((unsigned char)verdict_page[i][0])) {
            heading = verdict_page[i];
        }
        if (!begins_paragraph(verdict_page[i], word)) {
            continue;
        }
        fprintf(out, "%s%s\n%s\n", is_found ? "\n" : "", heading, verdict_page[i]);
        while (verdict_page[i + 1] != NULL && strncmp(verdict_page[i + 1], "   ", 3) == 0) {
            fprintf(out, "%s\n", verdict_page[++i]);
        }
        is_found = true;
    }
    return is_found;
}

bool explain_shown_word(struct ctl *ctl, const char *word)
{
    bool is_found = false;

    for (size_t i = 0; i < sizeof words / sizeof words[0] && !is_found; i++) {
        if (strcasecmp(words[i].word, word) == 0) {
            fprintf(ctl->out, "%s\n\n", word);
            render_wrapped(ctl->out, 0, 0, words[i].text);
            is_found = true;
        }
    }
    if (!is_found) {
        is_found = put_paragraphs(ctl->out, word);
    }
    if (is_found) {
        const char *topic = explain_topic(word);

        fprintf(ctl->out, "\nMore: nodectl explain %s\n", topic == NULL ? "verdict" : topic);
    }
    return is_found;
}
