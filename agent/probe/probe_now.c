#include "agent/probe/probe_now.h"

#include <assert.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "agent/core/probe_limit.h"
#include "agent/loop/thread.h"
#include "agent/probe/connect_engine.h"
#include "agent/probe/packet_engine.h"
#include "agent/probe/probe_clocks.h"
#include "agent/probe/probe_engine.h"
#include "agent/probe/probe_lateness.h"
#include "agent/probe/udp_engine.h"
#include "common/base/clock.h"
#include "common/base/limits.h"

#define CAPACITY 1 /* of an engine: one probe, or what is left of its connection */

struct job {
    /* set before the thread starts */
    bool is_used;
    bool is_allowed; /* by this node's own list */
    enum packet_send half_open_send;
    uint64_t cookie;
    struct target_id id; /* the caller's */
    struct probe_target target;
    struct health_check check; /* what the target points to */
    struct wake wake;          /* ends its waiting */
    struct wake *results_wake;
    pthread_t thread;
    /* shared */
    _Atomic bool is_stopping;
    _Atomic bool is_done; /* the report is whole: the thread does not touch it any more */
    /* the thread's, until it is done */
    struct probe_lateness lateness;
    struct probe_counters counters;
    struct probe_report report;
    bool has_result;
};

struct probe_now {
    struct probe_loop_options options;
    struct wake *results_wake;
    struct probe_limit limit;
    struct job jobs[LIMIT_PROBES_NOW];
};

/* --- on the job's thread --- */

static void on_result(void *user, const struct probe_result *result)
{
    struct job *job = user;

    assert(!job->has_result);
    job->report.result = *result;
    job->has_result = true;
}

/* What cannot be made here at all. */
static void refuse(struct job *job, enum probe_reason reason)
{
    uint64_t now_ns = clock_monotonic_ns();

    job->report.result = (struct probe_result){
        .id = job->target.id,
        .probe_class = (uint8_t)probe_reason_class(reason),
        .reason = (uint8_t)reason,
        .start_ns = now_ns,
        .end_ns = now_ns,
    };
    job->has_result = true;
}

static enum probe_reason reason_of(int err)
{
    return err == ERR_DENIED  ? REASON_LOCAL_NO_PERMISSION
           : err == ERR_LIMIT ? REASON_LOCAL_NO_DESCRIPTOR
           : err == ERR_BUSY  ? REASON_LOCAL_NO_PORT
           : err == ERR_NOMEM ? REASON_LOCAL_NO_BUFFER
                              : REASON_LOCAL_UNSUPPORTED;
}

/* The engine that the probe thread would take. NULL: none, and the job has its result. */
static struct probe_engine *open_engine(struct job *job)
{
    uint32_t needed = probe_capability_of(&job->target.definition);
    struct probe_engine *engine = NULL;
    struct errmsg err;
    int rc;

    if (needed == PROBE_CAN_TCP_HALF_OPEN) {
        const struct packet_engine_options options = {
            .capacity = CAPACITY,
            .send = job->half_open_send,
            .lateness = &job->lateness,
            .counters = &job->counters,
        };
        rc = packet_engine_new(&options, &engine, &err);
    } else if ((needed & (PROBE_CAN_TCP_FULL | PROBE_CAN_HTTP | PROBE_OPTIONAL)) != 0) {
        rc = connect_engine_new(CAPACITY, &job->lateness, &engine, &err);
        if (rc == 0) {
            connect_engine_enable_rst(engine);
        }
        if (rc == 0 && (needed & (PROBE_CAN_TLS | PROBE_CAN_GRPC_TLS)) != 0) {
            (void)connect_engine_enable_tls(engine); /* or it cannot: see below */
        }
        if (rc == 0 && (needed & (PROBE_CAN_GRPC | PROBE_CAN_GRPC_TLS)) != 0) {
            (void)connect_engine_enable_grpc(engine);
        }
    } else {
        rc = udp_engine_new(CAPACITY, &job->lateness, &job->counters, &engine, &err);
    }
    if (rc != 0) {
        refuse(job, reason_of(rc));
        return NULL;
    }
    snprintf(job->report.engine, sizeof job->report.engine, "%s", engine->name);
    if ((engine->capabilities & needed) == 0) {
        refuse(job, needed == PROBE_CAN_UDP_PORT_ECHO ? REASON_LOCAL_NO_PERMISSION
                    : (needed & PROBE_OPTIONAL) != 0  ? REASON_LOCAL_NOT_BUILT
                                                      : REASON_LOCAL_UNSUPPORTED);
        engine->ops->free(engine);
        return NULL;
    }
    engine->trace = &job->report.trace;
    return engine;
}

static void wait_until(struct job *job, const struct probe_engine *engine, uint64_t until_ns)
{
    struct pollfd fds[] = {{.fd = wake_fd(&job->wake), .events = POLLIN},
                           {.fd = engine->fd, .events = POLLIN}};
    uint64_t now_ns = clock_monotonic_ns();
    uint64_t wait_ns = until_ns > now_ns ? until_ns - now_ns : 0;
    struct timespec wait = {.tv_sec = (time_t)(wait_ns / NS_PER_SECOND),
                            .tv_nsec = (long)(wait_ns % NS_PER_SECOND)};

    /* Errors are EINTR or a shortage of kernel memory: the turn goes on in either case. */
    (void)ppoll(fds, 2, &wait, NULL);
}

/* Until there is a result, and its connection is closed as it is to be. */
static void run(struct job *job, struct probe_engine *engine)
{
    const struct probe_sink sink = {.result = on_result, .user = job};
    uint64_t lost_ns =
        clock_monotonic_ns() + job->target.definition.check->timeout_ms * NS_PER_MS + PROBE_LOST_NS;
    uint64_t now_ns, boottime_ns;

    for (;;) {
        engine->ops->run(engine, &sink);
        uint64_t next_ns = engine->ops->next_ns(engine);
        if ((job->has_result && next_ns == TIMER_NEVER) ||
            atomic_load_explicit(&job->is_stopping, memory_order_acquire)) {
            return;
        }
        uint64_t turn_ns = clock_monotonic_ns() + PROBE_WAKE_MAX_NS;
        next_ns = next_ns < turn_ns ? next_ns : turn_ns;
        probe_lateness_sleep(&job->lateness, next_ns);
        wait_until(job, engine, next_ns);
        now_ns = probe_clocks_read(&boottime_ns);
        probe_lateness_wake(&job->lateness, now_ns, boottime_ns);
        if (now_ns >= lost_ns && !job->has_result) {
            refuse(job, REASON_LOCAL_LATE); /* as the probe loop does (R-PROBE-2) */
            return;
        }
    }
}

static void *job_body(void *arg)
{
    struct job *job = arg;
    uint64_t boottime_ns;
    struct probe_engine *engine = NULL;

    if (!job->is_allowed) {
        refuse(job, REASON_LOCAL_FORBIDDEN);
    } else {
        engine = open_engine(job);
    }

    if (engine != NULL) {
        uint64_t now_ns = probe_clocks_read(&boottime_ns);

        probe_lateness_init(&job->lateness, now_ns, boottime_ns);
        engine->ops->submit(engine, &job->target);
        run(job, engine);
        engine->ops->free(engine);
    }
    job->report.deadline_ns =
        job->report.result.start_ns + job->target.definition.check->timeout_ms * NS_PER_MS;
    struct wake *results_wake = job->results_wake;
    atomic_store_explicit(&job->is_done, true, memory_order_release);
    wake_signal(results_wake);
    return NULL;
}

/* --- on the owner's --- */

static void end_job(struct job *job)
{
    pthread_join(job->thread, NULL);
    wake_close(&job->wake);
    job->is_used = false;
}

struct probe_now *probe_now_new(const struct probe_loop_options *options, struct wake *results_wake)
{
    struct probe_now *probes = calloc(1, sizeof *probes);

    if (probes != NULL) {
        probes->options = *options;
        probes->results_wake = results_wake;
    }
    return probes;
}

void probe_now_free(struct probe_now *probes)
{
    for (uint32_t i = 0; probes != NULL && i < LIMIT_PROBES_NOW; i++) {
        struct job *job = &probes->jobs[i];

        if (job->is_used) {
            atomic_store_explicit(&job->is_stopping, true, memory_order_release);
            wake_signal(&job->wake);
            end_job(job);
        }
    }
    free(probes);
}

static int start_job(struct job *job, struct errmsg *err)
{
    int rc = wake_init(&job->wake);

    if (rc != 0) {
        return errmsg_set(err, rc, "no descriptor for the probe: %s", err_text(rc));
    }
    rc = thread_start(&job->thread, "jury-probe-now", job_body, job);
    if (rc != 0) {
        wake_close(&job->wake);
        return errmsg_set(err, rc, "no thread for the probe: %s", err_text(rc));
    }
    job->is_used = true;
    return 0;
}

int probe_now_start(struct probe_now *probes, uint64_t cookie, const struct probe_target *target,
                    struct errmsg *err)
{
    struct job *free_job = NULL;
    uint32_t n_running = 0;

    for (uint32_t i = 0; i < LIMIT_PROBES_NOW; i++) {
        n_running += probes->jobs[i].is_used;
        free_job = probes->jobs[i].is_used ? free_job : &probes->jobs[i];
    }
    int rc = probe_limit_admit(&probes->limit, &target->definition.to, n_running,
                               clock_monotonic_ns(), err);
    if (rc != 0) {
        return rc;
    }
    assert(free_job != NULL);
    *free_job = (struct job){.cookie = cookie,
                             .id = target->id,
                             .target = *target,
                             .check = *target->definition.check,
                             .results_wake = probes->results_wake};
    free_job->target.definition.check = &free_job->check;
    free_job->target.id = (struct target_id){.slot = 0, .birth = 1}; /* it is the only one there */
    free_job->half_open_send = probes->options.half_open_send;
    free_job->is_allowed = probe_loop_allows(&probes->options, &target->definition.to.addr);
    return start_job(free_job, err);
}

bool probe_now_take(struct probe_now *probes, uint64_t *ret_cookie, struct probe_report *ret_report)
{
    for (uint32_t i = 0; i < LIMIT_PROBES_NOW; i++) {
        struct job *job = &probes->jobs[i];

        if (job->is_used && atomic_load_explicit(&job->is_done, memory_order_acquire)) {
            end_job(job);
            *ret_cookie = job->cookie;
            *ret_report = job->report;
            ret_report->result.id = job->id;
            return true;
        }
    }
    return false;
}
