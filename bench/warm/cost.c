/* The rows that are no time of one run: processor time, runs a second, and the cost of an idle
 * engine. The counters are those of the whole machine, so that no cost of ours hides in the
 * kernel. */
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/clock.h"
#include "bench.h"

#define CLIENTS 4
#define SLICES 5
#define SETTLE_MS 150 /* the kernel frees groups and namespaces behind our back */

/* --- processor time --- */

struct meter {
    struct bench *bench;
    const struct bench_job *job;
    struct buf frame;
    int window_ms;
    size_t runs; /* of each kind in one slice */
};

static void meter_done(struct meter *meter)
{
    buf_done(&meter->frame);
}

/* The load of other processes, as a part of one core. */
static double background(const struct meter *meter)
{
    double from = bench_cpu_ms();
    int64_t begin = clock_now_ns();
    bench_nap(meter->window_ms);
    return (bench_cpu_ms() - from) / clock_ms_between(begin, clock_now_ns());
}

static int run_ours(const struct meter *meter, struct err *err)
{
    struct bench_client *client = &meter->bench->engine.client;
    struct bench_pool pool;
    double ms;
    bool warm;
    size_t done = 0;
    while (done < meter->runs) {
        if (bench_wait_full(client, meter->job->pool, &pool, err) < 0)
            return -1;
        for (unsigned i = 0; i < pool.ready && done < meter->runs; i++, done++) {
            if (bench_run(client, &meter->frame, &ms, &warm, err) < 0)
                return -1;
        }
    }
    return bench_wait_full(client, meter->job->pool, &pool, err);
}

static int run_bare(const struct meter *meter, struct err *err)
{
    double ms;
    for (size_t i = 0; i < meter->runs; i++) {
        if (bench_bare(meter->job->bare, &ms, err) < 0)
            return -1;
    }
    return 0;
}

/* One slice, less the background before and after it: ms a run. */
static int meter_slice(const struct meter *meter,
                       int (*run)(const struct meter *meter, struct err *err),
                       struct bench_samples *out, struct err *err)
{
    double before = background(meter);
    double from = bench_cpu_ms();
    int64_t begin = clock_now_ns();
    if (run(meter, err) < 0)
        return -1;
    bench_nap(SETTLE_MS);
    double used = bench_cpu_ms() - from;
    double took = clock_ms_between(begin, clock_now_ns());
    double after = background(meter);
    double own = (used - took * (before + after) / 2) / (double)meter->runs;
    /* The kernel counts in ticks of 10 ms: less than one of them is unknown, not none. */
    double least = 10.0 / (double)meter->runs;
    bench_sample(out, own > least ? own : least);
    return 0;
}

int bench_cpu(struct bench *bench, const struct bench_row *row, struct bench_figure *figure,
              struct err *err)
{
    struct bench_pool pool;
    own_samples bare = { 0 }, ours = { 0 };
    attr_cleanup(meter_done) struct meter meter = {
        .bench = bench, .job = row->job, .frame = BUF_INIT(4096),
        .window_ms = bench->options.quick ? 300 : 1000,
        .runs = bench->rounds / 2 > 10 ? bench->rounds / 2 : 10,
    };
    if (bench_use_engine(bench, row->job->size, err) < 0 ||
        bench_frame("b", row->job->language, row->job->code, &meter.frame, err) < 0 ||
        bench_wait_full(&bench->engine.client, row->job->pool, &pool, err) < 0)
        return -1;
    bench_nap(SETTLE_MS);
    for (int i = 0; i < SLICES; i++) {
        if (meter_slice(&meter, run_ours, &ours, err) < 0 ||
            meter_slice(&meter, run_bare, &bare, err) < 0)
            return -1;
    }
    figure->bare = bench_summarize(&bare);
    figure->ours = bench_summarize(&ours);
    figure->value = figure->bare.p50 / figure->ours.p50;
    figure->each = meter.runs;
    bench_add(bench, figure);
    return 0;
}

/* --- runs a second --- */

struct crowd {
    struct bench_client at[CLIENTS];
    struct buf frame;
    size_t ended;
};

static void crowd_done(struct crowd *crowd)
{
    for (int i = 0; i < CLIENTS; i++)
        bench_client_close(&crowd->at[i]);
    buf_done(&crowd->frame);
}

/* If the answer is complete, sends the client's next request, unless the time is over. */
static int crowd_turn(struct crowd *crowd, struct bench_client *client, bool over, unsigned *going,
                      struct err *err)
{
    bool warm;
    int got = bench_receive(client, err);
    if (got <= 0)
        return got;
    if (bench_check(client, &warm, err) < 0)
        return -1;
    crowd->ended++;
    if (over)
        --*going;
    return over ? 0 : bench_send(client, &crowd->frame, err);
}

static int crowd_run(struct crowd *crowd, int window_ms, double *out_rate, struct err *err)
{
    unsigned going = CLIENTS;
    size_t before = crowd->ended;
    int64_t from = clock_now_ns();
    struct pollfd ready[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        ready[i] = (struct pollfd){ .fd = crowd->at[i].link.fd, .events = POLLIN };
        if (bench_send(&crowd->at[i], &crowd->frame, err) < 0)
            return -1;
    }
    *out_rate = 0;
    while (going > 0) {
        if (poll(ready, CLIENTS, -1) < 0)
            return err_sys(err, "wait for the engine");
        bool over = clock_ms_between(from, clock_now_ns()) >= window_ms;
        if (over && *out_rate == 0)
            *out_rate = (double)(crowd->ended - before) * 1000 /
                        clock_ms_between(from, clock_now_ns());
        for (int i = 0; i < CLIENTS; i++) {
            if (ready[i].revents && crowd_turn(crowd, &crowd->at[i], over, &going, err) < 0)
                return -1;
        }
    }
    return 0;
}

/* Full pools at the start would flatter the figure: a first window uses them up. */
static int rate_slice(struct bench *bench, const struct bench_job *job, struct crowd *crowd,
                      struct bench_samples *ours, struct bench_samples *bare, struct err *err)
{
    int window_ms = bench->options.quick ? 400 : 1500;
    struct bench_pool pool;
    double rate;
    if (crowd_run(crowd, window_ms / 3, &rate, err) < 0)
        return -1;
    if (crowd_run(crowd, window_ms, &rate, err) < 0)
        return -1;
    bench_sample(ours, rate);
    if (bench_wait_full(&bench->engine.client, job->pool, &pool, err) < 0)
        return -1;
    bench_nap(SETTLE_MS);
    if (bench_bare_rate(job->bare, CLIENTS, window_ms, &rate, err) < 0)
        return -1;
    bench_sample(bare, rate);
    return 0;
}

int bench_rate(struct bench *bench, const struct bench_row *row, struct bench_figure *figure,
               struct err *err)
{
    const struct bench_job *job = row->job;
    own_samples bare = { 0 }, ours = { 0 };
    struct bench_pool pool;
    attr_cleanup(crowd_done) struct crowd crowd = { .frame = BUF_INIT(4096) };
    for (int i = 0; i < CLIENTS; i++)
        crowd.at[i].link = EMBED_LINK_INIT;
    if (bench_use_engine(bench, job->size, err) < 0 ||
        bench_frame("b", job->language, job->code, &crowd.frame, err) < 0 ||
        bench_wait_full(&bench->engine.client, job->pool, &pool, err) < 0)
        return -1;
    for (int i = 0; i < CLIENTS; i++) {
        if (bench_client_open(&bench->engine, &crowd.at[i], err) < 0)
            return -1;
    }
    for (int i = 0; i < SLICES; i++) {
        if (rate_slice(bench, job, &crowd, &ours, &bare, err) < 0)
            return -1;
    }
    figure->bare = bench_summarize(&bare);
    figure->ours = bench_summarize(&ours);
    figure->value = figure->ours.p50 / figure->bare.p50;
    bench_add(bench, figure);
    return 0;
}

/* --- an idle engine --- */

int bench_watch_idle(struct bench *bench, pid_t engine, struct bench_figure *figure,
                     struct err *err)
{
    own_samples ours = { 0 };
    int window_ms = bench->options.quick ? 1000 : 2000;
    bench_nap(window_ms);
    double whole = bench_tree_cpu_ms(engine), before = whole;
    int64_t begin = clock_now_ns(), from = begin;
    if (whole <= 0) /* its start alone took more: /proc hides it */
        return err_set(err, ERR_HOST, "'/proc' does not show the engine, process %d", (int)engine);
    for (int i = 0; i < SLICES; i++) {
        bench_nap(window_ms);
        double now = bench_tree_cpu_ms(engine);
        int64_t at = clock_now_ns();
        bench_sample(&ours, (now - before) * 100 / clock_ms_between(from, at));
        before = now;
        from = at;
    }
    figure->ours = bench_summarize(&ours);
    figure->value = (before - whole) * 100 / clock_ms_between(begin, from);
    bench_add(bench, figure);
    return 0;
}

int bench_idle(struct bench *bench, const struct bench_row *row, struct bench_figure *figure,
               struct err *err)
{
    static const char *const pools[] = { "box", "python", "python_data", "javascript" };
    bool node = access("/usr/bin/node", X_OK) == 0; /* else that pool stays empty */
    struct bench_pool pool;
    if (bench_use_engine(bench, row->job->size, err) < 0)
        return -1;
    for (size_t i = 0; i < array_len(pools) - !node; i++) {
        if (bench_wait_full(&bench->engine.client, pools[i], &pool, err) < 0)
            return -1;
    }
    return bench_watch_idle(bench, pool.engine, figure, err);
}
