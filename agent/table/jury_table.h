/* The forwarding table and the status file: the public format between jury-agent and a data plane.
 *
 * One header, no library: any program that forwards packets on a node may read the table and report
 * how it is used. All files are mapped or read as they are: fixed-width little-endian fields, no
 * pointers. Two directories, each with one kind of writer:
 *
 *   tables/root               64-bit words, each stored atomically: which files are current
 *   tables/layout.<16 hex>    immutable: listeners, scopes, members, policies, selection arrays
 *   tables/state.<decimal>    64-bit words of each row: class, flow policy, deadline
 *   status/<name>.status      of one data plane: heartbeat, what it adopted, flows of each row
 *
 * How to read. Map `root`; load `generation` first, then `layout`, then `state`; map those two
 * files; a missing file means: load the root again. Each 200 ms look at the root's path: another
 * inode is another agent, so map that one. A scope's rows are read between two loads of its
 * sequence that are equal and even; after 1000 tries go on with the last copy if it is not older
 * than the generation you adopted, else take the rows one by one: any mixture of two updates is
 * legal. A row whose word carries other birth
 * bits than the layout's is to be taken as removed. The agent never cuts or writes over a mapped
 * file, so what is mapped stays good when it stops: go on with it.
 *
 * Somebody else who may write in the folder can cut a file that is mapped. A page that is gone is
 * SIGBUS at its first touch, the rest of a page reads as zeros. A reader that shall outlive that
 * reads the layout into memory of its own, puts a page of zeros over the missing one in its handler
 * of SIGBUS (mmap with MAP_FIXED), and knows a cut file by what never happens else: a root whose
 * layout or state is 0, a sequence or generation that went back. Then the last copy is what counts,
 * until the root's path shows another inode: the agent ends and starts anew within seconds.
 *
 * How to report. Write your own status file, one block of words for each thread, each word with one
 * writer. Each thread publishes the generation it has adopted before it takes an event, and counts
 * a flow before it contacts the backend; so `flows` = 0 with an adopted generation that is not
 * older than a drain means: the drain is done.
 *
 * Versions. An unknown major number: refuse the file by name and go on with what is mapped. A minor
 * number grows by fields at the end of a record or header; the sizes of records stand in the files,
 * so step by them and not by sizeof. */
#ifndef JURY_TABLE_H
#define JURY_TABLE_H

#include <stddef.h>
#include <stdint.h>

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the fields are little-endian: read them through a byte swap on this machine"
#endif

#define JURY_TABLE_MAJOR 1
#define JURY_TABLE_MINOR 2
#define JURY_VERSION_WORD(major, minor) ((uint64_t)(major) << 32 | (uint64_t)(minor))

#define JURY_ROOT_MAGIC UINT64_C(0x544f4f525952554a)   /* "JURYROOT" */
#define JURY_LAYOUT_MAGIC UINT64_C(0x544f594c5952554a) /* "JURYLYOT" */
#define JURY_STATE_MAGIC UINT64_C(0x544154535952554a)  /* "JURYSTAT" */
#define JURY_STATUS_MAGIC UINT64_C(0x4e414c505952554a) /* "JURYPLAN" */

#define JURY_HEARTBEAT_MS 200           /* both sides write theirs this often */
#define JURY_ABSENT_MS 2000             /* a writer silent for longer is absent */
#define JURY_SCOPE_TRIES 1000           /* then the last copy, or the words one by one */
#define JURY_NAME_BYTES 136             /* 128 and a NUL, rounded up */
#define JURY_NO_MEMBER UINT16_C(0xffff) /* in a selection array */

/* --- root: one writer, the agent --- */

struct jury_root {
    uint64_t magic;
    uint64_t version;
    uint64_t cluster_low; /* of the cluster id, as two little-endian words */
    uint64_t cluster_high;
    uint64_t node_id;
    uint64_t boot_low; /* of this machine's boot id: deadlines count since that boot */
    uint64_t boot_high;
    uint64_t layout;       /* number in the name of the current layout file */
    uint64_t state;        /* number in the name of the current state file */
    uint64_t generation;   /* raised by each batch of changes; start of the agent << 32 | counter */
    uint64_t revision;     /* of the catalog that the batch came from */
    uint64_t heartbeat_ns; /* CLOCK_BOOTTIME */
    uint64_t spare[4];
};

/* --- layout --- */

struct jury_endpoint {
    uint8_t address[16]; /* IPv4: the first four */
    uint16_t port;
    uint8_t family; /* 4 or 6 */
    uint8_t spare[5];
};

struct jury_layout {
    uint64_t magic;
    uint64_t version;
    uint64_t file_bytes;
    uint32_t crc32c; /* Castagnoli, of the whole file with these four bytes as zero */
    uint32_t header_bytes;
    uint64_t revision;
    uint64_t cluster_low;
    uint64_t cluster_high;
    uint64_t hash_key0; /* of the flow hash: the same on all nodes of the cluster */
    uint64_t hash_key1;
    uint32_t n_rows; /* every row below is smaller */
    uint32_t n_listeners;
    uint32_t n_scopes;
    uint32_t n_members;
    uint64_t n_slots;
    uint64_t listeners_at; /* offsets from the start of the file, multiples of 8 */
    uint64_t scopes_at;
    uint64_t members_at;
    uint64_t slots_at;
    uint32_t listener_bytes; /* sizes of one record in this file */
    uint32_t scope_bytes;
    uint32_t member_bytes;
    uint32_t spare;
};

struct jury_listener {
    char name[JURY_NAME_BYTES]; /* NUL-terminated */
    uint64_t id;
    struct jury_endpoint at; /* an all-zero address is every address of the family */
    uint16_t port_last;      /* of a range; else equal to at.port */
    uint8_t protocol;        /* enum jury_protocol */
    uint8_t spare;
    uint32_t scope;           /* index */
    uint32_t idle_timeout_ms; /* 0 = the scope's */
    uint32_t flags;           /* none yet */
};

struct jury_scope {
    char name[JURY_NAME_BYTES];
    uint64_t id;
    uint64_t birth;
    uint32_t row;
    uint32_t first_member; /* its members are consecutive, ordered by address and port */
    uint32_t n_members;
    uint32_t n_slots; /* 0, or the smallest prime that is >= 100 x members and >= 251 */
    uint64_t first_slot;
    uint32_t idle_timeout_ms;
    uint32_t drain_timeout_ms;
    uint8_t kind;     /* 1 = a server group */
    uint8_t profile;  /* 1 gwlb, 2 nlb, 3 clb */
    uint8_t protocol; /* enum jury_protocol */
    uint8_t scheduler;
    uint8_t all_bad; /* 1 fail-open, 2 fail-closed */
    uint8_t fail_open_percent;
    uint8_t failover; /* 0 none, 1 no-rebalance, 2 rebalance */
    uint8_t drain_is_on;
};

struct jury_member {
    uint64_t birth;
    uint64_t id;        /* of the backend: unique in the cluster's life */
    uint64_t select_id; /* hash of address and port: its part in the choice (agent/core/select.h) */
    struct jury_endpoint at;
    uint32_t row;
    uint32_t scope;   /* index */
    uint8_t weight;   /* 0..100 */
    uint8_t is_going; /* 1: removed from the group, kept until its flows have ended */
    uint8_t spare[6];
};

/* A selection array is uint16_t[n_slots]: indexes of members relative to first_member, or
 * JURY_NO_MEMBER. It covers the members with weight > 0, each with a share of the slots that is its
 * share of the weight, whatever their state and what their words say of the weight. For a data
 * plane that wants its choice in constant time; jury-shim weighs all usable members instead
 * (agent/core/select.h says why). */

enum jury_protocol {
    JURY_PROTOCOL_GENEVE = 1,
    JURY_PROTOCOL_TCP = 2,
    JURY_PROTOCOL_UDP = 3,
    JURY_PROTOCOL_TCP_UDP = 4
};

enum jury_scheduler {
    JURY_SCHEDULER_5_TUPLE = 1,
    JURY_SCHEDULER_4_TUPLE = 2,
    JURY_SCHEDULER_3_TUPLE = 3,
    JURY_SCHEDULER_2_TUPLE = 4,
    JURY_SCHEDULER_SOURCE = 5,
    JURY_SCHEDULER_QUIC_ID = 6,
    JURY_SCHEDULER_RR = 7,
    JURY_SCHEDULER_WRR = 8,
    JURY_SCHEDULER_WLC = 9
};

/* --- state --- */

struct jury_state {
    uint64_t magic;
    uint64_t version;
    uint64_t file_bytes;
    uint64_t number;  /* as in the file's name */
    uint64_t n_rows;  /* room; at least the layout's */
    uint64_t rows_at; /* struct jury_row[n_rows] */
    uint64_t
        sequences_at; /* uint64_t[n_rows]: of the scope with that row; odd while it is written */
    uint64_t spare;
};

/* word: bits 0-7 class, 8-11 flow policy, 12-15 cause of the deadline, 16-39 count of changes,
 * 40-47 how much of the member's weight counts now (jury_word_share), 48-63 the low bits of the
 * birth. Before minor 2 the count had 16-47 and the whole weight counted. */
struct jury_row {
    uint64_t word;
    uint64_t deadline_ns; /* CLOCK_BOOTTIME; 0 = none */
};

/* A new flow goes to the members of the lowest rank that has any (jury_class_rank). */
enum jury_class {
    JURY_CLASS_REMOVED = 0,
    JURY_CLASS_HEALTHY = 1,     /* rank 1 */
    JURY_CLASS_UNREACHABLE = 2, /* rank 2: healthy, but not reached from this node */
    JURY_CLASS_FAIL_OPEN = 3,   /* rank 3 */
    JURY_CLASS_WARMING = 4,     /* rank 1: nothing was judged yet */
    JURY_CLASS_NONE = 5,        /* never a new flow */
    JURY_CLASS_SCOPE_OK = 16,   /* rows of scopes carry the scope's state */
    JURY_CLASS_SCOPE_DEGRADED = 17,
    JURY_CLASS_SCOPE_FAIL_OPEN = 18,
    JURY_CLASS_SCOPE_CLOSED = 19,
    JURY_CLASS_SCOPE_WARMING = 20
};

enum jury_flow_policy {
    JURY_FLOW_KEEP = 0,      /* until FIN, RST or idle for the idle timeout */
    JURY_FLOW_CLOSE_AT = 1,  /* keep, and RST to both sides at the deadline */
    JURY_FLOW_CLOSE_NOW = 2, /* RST to both sides */
    JURY_FLOW_MOVE = 3,      /* datagrams and tunnels: the next packet selects anew; TCP: keep */
    JURY_FLOW_MOVE_AT = 4,   /* keep until the deadline, then move */
    JURY_FLOW_HOLD_IDLE = 5  /* as keep, but no flow ends for being idle before the deadline */
};

/* --- status: one writer, the data plane --- */

#define JURY_PLANE_NAME_BYTES 64

struct jury_status {
    uint64_t magic;
    uint64_t version;
    uint64_t file_bytes;
    uint64_t pid;
    uint64_t boot_low;
    uint64_t boot_high;
    uint64_t started_ns;         /* CLOCK_BOOTTIME */
    uint64_t heartbeat_ns;       /* CLOCK_BOOTTIME, each JURY_HEARTBEAT_MS */
    uint64_t adopted_layout;     /* of the worker that is furthest behind; 0 = no table yet */
    uint64_t adopted_generation; /* likewise */
    uint64_t n_workers;
    uint64_t n_rows;         /* room for each worker */
    uint64_t n_counted_rows; /* rows below are counted; flows of others are not known */
    uint64_t workers_at;     /* struct jury_status_worker[n_workers] */
    uint64_t worker_bytes;
    uint64_t rows_at; /* struct jury_status_row[n_workers][n_rows] */
    uint64_t row_bytes;
    char name[JURY_PLANE_NAME_BYTES]; /* NUL-terminated */
    /* Since minor 1; 0 before. Listeners of the adopted layout that could not be opened. */
    uint64_t failures_at; /* struct jury_status_failure[JURY_STATUS_FAILURES] */
    uint64_t failure_bytes;
    uint64_t n_failures;        /* also above JURY_STATUS_FAILURES: the first are named */
    uint64_t failures_sequence; /* odd while they are written */
    uint64_t spare[3];
};

#define JURY_STATUS_FAILURES 64

struct jury_status_failure {
    uint64_t listener_id; /* jury_listener.id */
    uint64_t errnum;      /* of Linux; 0 = not known */
};

/* Single-writer words of one thread. Counts begin at 0 with the process. */
struct jury_status_worker {
    uint64_t heartbeat_ns;
    uint64_t adopted_layout;
    uint64_t adopted_generation;
    uint64_t flows; /* now */
    uint64_t accepted;
    uint64_t refused_closed;   /* no usable member: RST */
    uint64_t refused_limit;    /* flows, descriptors or memory at their bound: RST */
    uint64_t connect_failures; /* attempts */
    uint64_t retried;          /* flows that went to another member after a failed attempt */
    uint64_t unreached;        /* flows given up after the last attempt: RST */
    uint64_t ended;            /* by FIN from both sides */
    uint64_t reset;            /* by RST or an error of one side */
    uint64_t idled;            /* by the idle timeout */
    uint64_t closed;           /* by flow policy */
    uint64_t bytes_to_backend;
    uint64_t bytes_to_client;
};

/* Of one row and thread. In the row of a scope `flows` and `new_flows` are of all its members and
 * `refused` counts new flows that found no usable member. */
struct jury_status_row {
    uint64_t birth; /* whose numbers these are; 0 = none yet */
    uint64_t flows; /* now */
    uint64_t new_flows;
    uint64_t refused;
    uint64_t connect_failures;
    uint64_t closed; /* by flow policy */
    uint64_t bytes_to_backend;
    uint64_t bytes_to_client;
};

/* --- small helpers for readers --- */

/* Load a word that another process may store at the same time. What was stored before it is then
 * visible too. */
static inline uint64_t jury_load(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static inline unsigned jury_word_class(uint64_t word)
{
    return (unsigned)(word & 0xff);
}

static inline unsigned jury_word_flow_policy(uint64_t word)
{
    return (unsigned)(word >> 8 & 0xf);
}

static inline unsigned jury_word_cause(uint64_t word)
{
    return (unsigned)(word >> 12 & 0xf);
}

/* Wraps. */
static inline uint32_t jury_word_changes(uint64_t word)
{
    return (uint32_t)(word >> 16 & 0xffffff);
}

/* How much of the member's weight in the layout counts now, in percent, 1..100: its weight among
 * those of its rank is weight x share. A member that has just returned may begin with less than all
 * of it. It never makes a member unusable: that is what classes are for. state_version: of the file
 * that the word is in. */
static inline unsigned jury_word_share(uint64_t word, uint64_t state_version)
{
    unsigned share = (unsigned)(word >> 40 & 0xff);

    return (uint32_t)state_version < 2 || share == 0 || share > 100 ? 100 : share;
}

/* Is this the word of the row with that birth? If not, the row is removed. */
static inline int jury_word_is_of(uint64_t word, uint64_t birth)
{
    return (word >> 48) == (birth & 0xffff);
}

/* 1..3, lower first; 0 = takes no new flow. */
static inline unsigned jury_class_rank(unsigned row_class)
{
    if (row_class == JURY_CLASS_HEALTHY || row_class == JURY_CLASS_WARMING) {
        return 1;
    }
    return row_class == JURY_CLASS_UNREACHABLE ? 2 : row_class == JURY_CLASS_FAIL_OPEN ? 3 : 0;
}

/* --- the format does not depend on compiler or word size --- */

#ifdef __cplusplus
#define JURY_ASSERT(condition) static_assert(condition, #condition)
#else
#define JURY_ASSERT(condition) _Static_assert(condition, #condition)
#endif

JURY_ASSERT(sizeof(struct jury_root) == 128);
JURY_ASSERT(offsetof(struct jury_root, layout) == 56);
JURY_ASSERT(offsetof(struct jury_root, generation) == 72);
JURY_ASSERT(offsetof(struct jury_root, heartbeat_ns) == 88);
JURY_ASSERT(sizeof(struct jury_endpoint) == 24);
JURY_ASSERT(offsetof(struct jury_endpoint, port) == 16);
JURY_ASSERT(offsetof(struct jury_endpoint, family) == 18);
JURY_ASSERT(sizeof(struct jury_layout) == 144);
JURY_ASSERT(offsetof(struct jury_layout, crc32c) == 24);
JURY_ASSERT(offsetof(struct jury_layout, revision) == 32);
JURY_ASSERT(offsetof(struct jury_layout, n_rows) == 72);
JURY_ASSERT(offsetof(struct jury_layout, n_slots) == 88);
JURY_ASSERT(offsetof(struct jury_layout, listener_bytes) == 128);
JURY_ASSERT(sizeof(struct jury_listener) == 184);
JURY_ASSERT(offsetof(struct jury_listener, at) == 144);
JURY_ASSERT(offsetof(struct jury_listener, scope) == 172);
JURY_ASSERT(sizeof(struct jury_scope) == 192);
JURY_ASSERT(offsetof(struct jury_scope, row) == 152);
JURY_ASSERT(offsetof(struct jury_scope, first_slot) == 168);
JURY_ASSERT(offsetof(struct jury_scope, kind) == 184);
JURY_ASSERT(sizeof(struct jury_member) == 64);
JURY_ASSERT(offsetof(struct jury_member, at) == 24);
JURY_ASSERT(offsetof(struct jury_member, row) == 48);
JURY_ASSERT(offsetof(struct jury_member, weight) == 56);
JURY_ASSERT(sizeof(struct jury_state) == 64);
JURY_ASSERT(sizeof(struct jury_row) == 16);
JURY_ASSERT(sizeof(struct jury_status) == 256);
JURY_ASSERT(offsetof(struct jury_status, adopted_generation) == 72);
JURY_ASSERT(offsetof(struct jury_status, name) == 136);
JURY_ASSERT(offsetof(struct jury_status, failures_at) == 200);
JURY_ASSERT(sizeof(struct jury_status_failure) == 16);
JURY_ASSERT(sizeof(struct jury_status_worker) == 128);
JURY_ASSERT(sizeof(struct jury_status_row) == 64);

#endif
