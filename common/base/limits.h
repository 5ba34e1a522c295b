/* Every bound of the product in one place, with its unit and its reason. Reaching one is a named
 * error and a counter, never a crash and never silent.
 *
 * The plan is 100,000 backends, 10,000 groups and 64 nodes (spec.md 2). */
#ifndef JURY_BASE_LIMITS_H
#define JURY_BASE_LIMITS_H

/* --- cluster --- */
#define LIMIT_NODES 64 /* members of a cluster; the vote matrix is one 64-bit word wide */
#define LIMIT_VOTERS 7 /* more voters make each commit slower and nothing safer */
#define LIMIT_KEYS 256 /* administrators and programs; the ZAP table is scanned */
#define LIMIT_ENDPOINTS_PER_NODE 4 /* addresses or names under which one node is reached */
#define LIMIT_CIDRS 64             /* allowed prefixes */
#define LIMIT_RETIRED_NODES 4096   /* ids of removed nodes, kept so that none is used again */

/* --- catalog --- */
#define LIMIT_GROUPS 10000
#define LIMIT_BACKENDS 100000 /* in all groups together */
#define LIMIT_BACKENDS_PER_GROUP                                  \
    1000 /* the makers' own highest quota; an encoded group stays \
            below one command */
#define LIMIT_GROUP_ROWS \
    2000 /* backends of one group with those being removed; a purge makes room */
#define LIMIT_LISTENERS 10000
#define LIMIT_TARGETS 131072 /* 32 vote chunks of 4096 slots */
#define LIMIT_ROWS 262144    /* scopes and (scope, backend) pairs */
#define LIMIT_LABELS 20      /* a group */
#define LIMIT_NAME_BYTES_MIN 2
#define LIMIT_NAME_BYTES 128 /* the seeds: 2-128 */
#define LIMIT_ZONE_BYTES 32
#define LIMIT_DESCRIPTION_BYTES 128
#define LIMIT_LABEL_KEY_BYTES 63
#define LIMIT_LABEL_VALUE_BYTES 128
#define LIMIT_PATH_BYTES 80         /* http check path */
#define LIMIT_DOMAIN_BYTES 80       /* http check domain, server name of a tls check */
#define LIMIT_GRPC_SERVICE_BYTES 80 /* name of a service in a grpc check */
#define LIMIT_ALPN_BYTES 16         /* name of a protocol inside TLS */
#define LIMIT_TLS_BYTES 65536       /* of one connection of a tls or grpc check, from its backend */
#define LIMIT_WARN_DAYS 365         /* before a certificate ends */
#define LIMIT_CHECKS 8              /* of one backend; each is a probe of its own */
#define LIMIT_CHECK_NAME_BYTES 32
#define LIMIT_UDP_PAYLOAD_BYTES 512
#define LIMIT_CHECK_LINE_BYTES                                                                \
    128                        /* a line of a tcp check, and a mask: each target keeps a copy \
                                */
#define LIMIT_REQUEST_IDS 4096 /* answers kept for retries */
#define LIMIT_COMMAND_BYTES (512 * 1024) /* one Raft entry; larger sets are refused by name */
#define LIMIT_CHANGES_PER_COMMAND 12000  /* a whole catalog in one document */
#define LIMIT_CHUNK_BYTES                                                     \
    (256 * 1024) /* one encoded object of the catalog, and one snapshot chunk \
                    on the wire */
#define LIMIT_SNAPSHOT_BYTES \
    (128 * 1024 * 1024) /* above the largest catalog that the other limits allow */

/* --- documents (common/spec) --- */
#define LIMIT_SPEC_FILE_BYTES \
    (16 * 1024 * 1024)         /* the whole planned catalog as YAML is about 12 MiB */
#define LIMIT_SPEC_NODES 65536 /* values of one document; a full group has about 8000 */
#define LIMIT_SPEC_DEPTH 16    /* nesting; ours are at most 5 deep */
#define LIMIT_SPEC_KEYS 128    /* of one mapping, so that duplicates are found by scanning */
#define LIMIT_SPEC_DOCUMENTS LIMIT_CHANGES_PER_COMMAND

/* --- mesh --- */
#define LIMIT_VOTE_SLOTS_PER_CHUNK 4096
#define LIMIT_VOTE_CHUNKS (LIMIT_TARGETS / LIMIT_VOTE_SLOTS_PER_CHUNK)
#define LIMIT_BIRTHS_PER_CHUNK 64
#define LIMIT_QUESTION_TARGETS 16 /* of one question of `why` */
#define LIMIT_VOTE_DETAILS                                                                        \
    8192 /* kept of what one peer said beside its votes: as it says in 32 vote intervals at most; \
            `why` asks for others */
#define LIMIT_DRAIN_ENTRIES 256                /* rows of one drain report; more are sent in turn */
#define LIMIT_RAFT_MESSAGE_BYTES (1024 * 1024) /* ZMQ_MAXMSGSIZE of the Raft lane */
#define LIMIT_SEND_QUEUE_MESSAGES 1000         /* ZMQ_SNDHWM and RCVHWM */

/* --- RPC --- */
#define LIMIT_RPC_MESSAGE_BYTES (1024 * 1024)
#define LIMIT_RPC_OUTSTANDING 256 /* requests under way in one agent */
/* Answers that their callers have not read: of one connection; of all together, and then one answer
 * of each connection that has none. What is beyond is lost. */
#define LIMIT_RPC_UNSENT_BYTES ((size_t)16 * 1024 * 1024)
#define LIMIT_RPC_UNSENT_BYTES_ALL ((size_t)48 * 1024 * 1024)
#define LIMIT_RPC_UNSENT_CONNECTIONS 1024
#define LIMIT_PROPOSALS_OUTSTANDING 64 /* in raft at once (raft-022.md rule 18) */
#define LIMIT_PROPOSALS_QUEUED 256     /* waiting in front of that */

/* --- probes --- */
#define LIMIT_HTTP_HEADER_BYTES 16384 /* pass; one more does not (spec.md 4) */
#define LIMIT_PROBES_IN_FLIGHT 4096
/* Probes on demand: each has a thread, and sockets of its own, while it runs. */
#define LIMIT_PROBES_NOW 4
#define LIMIT_PROBE_NOW_PAUSE_MS 1000 /* of one address and port */
#define LIMIT_RESULT_RING 8192

/* --- events and views --- */
#define LIMIT_DRAINS 16384 /* drains and removals whose completion is followed at a time */
#define LIMIT_EVENTS 4096  /* kept verdict events of one node */

/* --- vote history (agent/core/history.h) --- */
#define LIMIT_HISTORY_ENTRIES \
    (1024 * 1024) /* of one node, 24 bytes each: 24 MiB, taken as they fill */
#define LIMIT_HISTORY_ENTRIES_PER_TARGET                                                        \
    4096                          /* 96 KiB: one flapping backend does not push the others out; \
                                     also of each row */
#define LIMIT_HISTORY_FORMER 4096 /* targets that are no more, and rows: a few changed checks */
#define LIMIT_HISTORY_SURROUNDINGS 64 /* times at which n, V or a hold of the node changed */
#define LIMIT_HISTORY_VERSIONS 4096   /* former versions of groups */
#define LIMIT_HISTORY_VERSION_BACKENDS \
    65536                          /* backends in all of them together, about 0.5 KiB each */
#define LIMIT_REPLAY_ENTRIES 16384 /* of one simulation; copied on the health loop */
#define LIMIT_REPLAY_STEPS (4 * LIMIT_REPLAY_ENTRIES) /* with those that only time brings */
#define LIMIT_REPLAY_CHANGES 512 /* that one simulation lists; more are only counted */
#define LIMIT_SIMULATIONS 2      /* at a time: raft writes by the same pool of threads */
/* Work of struct replay_answer: a tenth of a processor's time, and a few simulations at once */
#define LIMIT_SIMULATION_WORK_PER_SECOND 100000
#define LIMIT_SIMULATION_WORK 300000

/* --- shim --- */
#define LIMIT_SHIM_FLOWS 65536 /* a worker */
#define LIMIT_SHIM_WORKERS 16
#define LIMIT_DATA_PLANES 8 /* status files read by one agent */

#endif
