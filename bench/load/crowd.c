/* Many connections at once, each with one request under way; and the two rows that time runs and
 * the one that counts them. Socket and HTTP take turns, so that the machine's noise is in both. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "base/attr.h"
#include "base/clock.h"
#include "load.h"

#define CLIENTS 16
#define BATCH 64
#define GAP_MS 60
#define WINDOW_MS 2000
#define WINDOW_QUICK_MS 500
#define STALL_MS 60000 /* no answer at all for so long: it hangs */

int load_crowd_open(const struct load *load, bool http, unsigned count, struct load_crowd *out,
                    struct err *err)
{
    struct load_crowd crowd = { .at = buf_alloc_zero(count, sizeof *crowd.at),
                                .epoll = epoll_create1(EPOLL_CLOEXEC) };
    int rc = crowd.epoll >= 0 ? 0 : err_sys(err, "make an epoll");
    while (rc == 0 && crowd.count < count) {
        struct load_line *line = &crowd.at[crowd.count];
        struct epoll_event event = { .events = EPOLLIN, .data.u32 = crowd.count };
        *line = LOAD_LINE_INIT;
        rc = load_line_open(load, http, line, err);
        if (rc == 0 && epoll_ctl(crowd.epoll, EPOLL_CTL_ADD, line->fd, &event) < 0)
            rc = err_sys(err, "watch a connection");
        crowd.count += rc == 0;
    }
    if (rc < 0)
        load_crowd_close(&crowd);
    else
        *out = crowd;
    return rc;
}

void load_crowd_close(struct load_crowd *crowd)
{
    for (unsigned i = 0; i < crowd->count; i++)
        load_line_close(&crowd->at[i]);
    free(crowd->at);
    own_close_fd(&crowd->epoll);
    *crowd = LOAD_CROWD_INIT;
}

static int turn(struct load *load, struct load_crowd *crowd, bool over, struct err *err)
{
    struct epoll_event ready[BATCH];
    int n = epoll_wait(crowd->epoll, ready, BATCH, STALL_MS);
    if (n < 0 && errno != EINTR)
        return err_sys(err, "wait for answers");
    if (n == 0)
        return err_set(err, ERR_BUG, "no answer to %u requests", crowd->going);
    for (int i = 0; i < n; i++) {
        struct load_line *line = &crowd->at[ready[i].data.u32];
        int got = load_line_receive(line, err);
        if (got < 0)
            return -1;
        crowd->ended += got > 0;
        crowd->going -= got > 0 && over;
        if (got > 0 && !over && load_line_ask(load, line, err) < 0)
            return -1;
    }
    return 0;
}

int load_crowd_run(struct load *load, struct load_crowd *crowd, int window_ms, double *out_rate,
                   struct err *err)
{
    int64_t from = clock_now_ns(), until = from + window_ms * CLOCK_MS;
    crowd->ended = 0;
    for (crowd->going = 0; crowd->going < crowd->count; crowd->going++) {
        if (load_line_ask(load, &crowd->at[crowd->going], err) < 0)
            return -1;
    }
    while (crowd->going > 0) {
        if (turn(load, crowd, clock_now_ns() >= until, err) < 0)
            return -1;
    }
    *out_rate = (double)crowd->ended * 1000 / clock_ms_between(from, clock_now_ns());
    return 0;
}

/* --- rows --- */

int load_rate(struct load *load, struct bench_figure *figure, struct err *err)
{
    own_load_crowd socket = LOAD_CROWD_INIT, http = LOAD_CROWD_INIT;
    own_samples theirs = { 0 }, ours = { 0 }, ratios = { 0 };
    bool quick = load->bench.options.quick;
    int window_ms = quick ? WINDOW_QUICK_MS : WINDOW_MS, windows = quick ? 2 : 8;
    double rate[2];
    if (load_crowd_open(load, false, CLIENTS, &socket, err) < 0 ||
        load_crowd_open(load, true, CLIENTS, &http, err) < 0)
        return -1;
    struct load_crowd *both[] = { &socket, &http };
    for (int i = -1; i < windows; i++) {
        for (int j = 0; j < 2; j++) {
            int k = (i + j) & 1; /* each is first in every second round */
            if (load_crowd_run(load, both[k], window_ms, &rate[k], err) < 0)
                return -1;
        }
        if (i < 0) /* pools grow and fill */
            continue;
        bench_sample(&theirs, rate[0]);
        bench_sample(&ours, rate[1]);
        bench_sample(&ratios, rate[1] / rate[0]);
    }
    figure->bare = bench_summarize(&theirs);
    figure->ours = bench_summarize(&ours);
    figure->value = bench_summarize(&ratios).p50;
    return 0;
}

struct pair {
    struct load_line socket, http;
    struct bench_samples theirs, ours;
};

static void pair_done(struct pair *pair)
{
    load_line_close(&pair->socket);
    load_line_close(&pair->http);
    bench_samples_done(&pair->theirs);
    bench_samples_done(&pair->ours);
}

/* One run by each way; the first is another each time. */
static int take(struct load *load, struct pair *pair, size_t round, struct err *err)
{
    double ms;
    for (size_t j = 0; j < 2; j++) {
        bool http = (round + j) & 1;
        if (load_line_run(load, http ? &pair->http : &pair->socket, &ms, err) < 0)
            return -1;
        bench_sample(http ? &pair->ours : &pair->theirs, ms);
    }
    return 0;
}

static int measure(struct load *load, int gap_ms, struct bench_figure *figure, struct err *err)
{
    attr_cleanup(pair_done) struct pair pair = { .socket = LOAD_LINE_INIT, .http = LOAD_LINE_INIT };
    struct bench_client *client = &load->engine.client;
    struct bench_pool pool;
    if (load_line_open(load, false, &pair.socket, err) < 0 ||
        load_line_open(load, true, &pair.http, err) < 0 || take(load, &pair, 0, err) < 0)
        return -1;
    pair.theirs.count = pair.ours.count = 0;
    for (size_t i = 0; i < load->bench.rounds;) {
        if (bench_wait_full(client, "python", &pool, err) < 0)
            return -1;
        bench_nap(gap_ms);
        /* Without gaps: as many as wait, back to back. */
        for (unsigned used = 0; used < (gap_ms ? 2 : pool.ready / 2 * 2); used += 2, i++) {
            if (take(load, &pair, i, err) < 0)
                return -1;
        }
    }
    figure->bare = bench_summarize(&pair.theirs);
    figure->ours = bench_summarize(&pair.ours);
    figure->value = figure->ours.p50 / figure->bare.p50;
    return 0;
}

int load_times(struct load *load, struct bench_figure *figure, struct err *err)
{
    return measure(load, 0, figure, err);
}

int load_times_gaps(struct load *load, struct bench_figure *figure, struct err *err)
{
    return measure(load, GAP_MS, figure, err);
}
