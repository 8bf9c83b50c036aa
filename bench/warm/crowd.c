/* The rows on many sessions at once: the memory of one more session, and the processor time
 * of a hundred idle ones. */
#include <stdio.h>

#include "base/attr.h"
#include "bench.h"

#define IDLE_COUNT 100
#define MEMORY_COUNT 10
#define KIB 1024.0

struct crowd {
    struct bench_session at[IDLE_COUNT];
    unsigned count;
};

static void crowd_done(struct crowd *crowd)
{
    while (crowd->count > 0)
        bench_session_done(&crowd->at[--crowd->count]);
}

/* Opens sessions one after another, each with its cell, and waits for its protection. */
static int fill(struct crowd *crowd, struct bench_client *client, unsigned count, const char *code,
                struct err *err)
{
    bool is;
    for (unsigned i = 0; i < count; i++) {
        struct bench_session *one = &crowd->at[crowd->count];
        int rc = bench_session_open(client, 0, one, err);
        crowd->count += rc == 0;
        if (rc < 0 || bench_session_run(one, code, err) < 0 ||
            bench_session_protected(one, &is, err) < 0)
            return -1;
    }
    return 0;
}

static int await_pools(struct bench_client *client, struct bench_pool *out, struct err *err)
{
    static const char *const pools[] = { "python", "python_data", "box" };
    for (size_t i = 0; i < array_len(pools); i++) {
        if (bench_wait_full(client, pools[i], out, err) < 0)
            return -1;
    }
    return 0;
}

/* --- memory --- */

/* The memory of the engine's processes; and the drop of available memory, which includes page
 * tables and kernel objects but also the changes of other processes. */
struct taken {
    double pss_kib, kib;
};

static struct taken look(pid_t engine)
{
    double available = bench_steady_kib();
    return (struct taken){ .pss_kib = bench_tree_pss_kib(engine), .kib = -available };
}

/* KiB for one, on an engine that was just started. */
static int add_sessions(struct bench_client *client, const char *code, struct taken *out,
                        struct err *err)
{
    attr_cleanup(crowd_done) struct crowd crowd = { .count = 0 };
    struct bench_pool pool;
    /* A first round fills the caches, which no session owns. */
    if (await_pools(client, &pool, err) < 0 || fill(&crowd, client, MEMORY_COUNT, code, err) < 0)
        return -1;
    crowd_done(&crowd);
    if (await_pools(client, &pool, err) < 0)
        return -1;
    struct taken before = look(pool.engine);
    if (fill(&crowd, client, MEMORY_COUNT, code, err) < 0 || await_pools(client, &pool, err) < 0)
        return -1;
    struct taken after = look(pool.engine);
    out->pss_kib = (after.pss_kib - before.pss_kib) / MEMORY_COUNT;
    out->kib = (after.kib - before.kib) / MEMORY_COUNT;
    return 0;
}

static void add_figure(struct bench *bench, struct bench_figure *figure,
                       const struct bench_samples *bare, const struct bench_samples *ours,
                       const char *why_none)
{
    struct bench_summary taken = bench_summarize(ours);
    figure->bare = bench_summarize(bare);
    if (taken.p50 > 0) {
        figure->ours = taken;
        figure->value = figure->bare.p50 / taken.p50;
    } else {
        snprintf(figure->skipped, sizeof figure->skipped, "%s", why_none);
    }
    bench_add(bench, figure);
}

int bench_session_memory(struct bench *bench, const struct bench_row *row,
                         struct bench_figure *figure, struct err *err)
{
    own_samples bare = { 0 }, pss = { 0 }, all = { 0 };
    int engines = bench->options.quick ? 1 : 5;
    for (int i = 0; i < engines; i++) {
        double kib;
        struct taken taken;
        if (bench_bare_number(row->talk->bare, &kib, err) < 0)
            return -1;
        bench_sample(&bare, kib / KIB);
        bench_drop_engine(bench);
        if (bench_use_engine(bench, BENCH_BY_DEMAND, err) < 0 ||
            add_sessions(&bench->engine.client, row->talk->cell, &taken, err) < 0)
            return -1;
        bench_sample(&pss, taken.pss_kib / KIB);
        bench_sample(&all, taken.kib / KIB);
    }
    struct bench_figure aside = *figure;
    add_figure(bench, figure, &bare, &pss,
               "'/proc' does not show this user the memory of the engine's processes");
    snprintf(aside.name, sizeof aside.name, "%s", row->talk->aside_name);
    aside.what = row->talk->aside;
    aside.gate = aside.stretch = 0;
    add_figure(bench, &aside, &bare, &all,
               "memory was freed by others meanwhile: measure again on a quiet machine");
    return 0;
}

/* --- a hundred idle sessions --- */

int bench_session_idle(struct bench *bench, const struct bench_row *row,
                       struct bench_figure *figure, struct err *err)
{
    attr_cleanup(crowd_done) struct crowd crowd = { .count = 0 };
    struct bench_pool pool;
    bench_drop_engine(bench);
    if (bench_use_engine(bench, BENCH_BY_DEMAND, err) < 0 ||
        await_pools(&bench->engine.client, &pool, err) < 0 ||
        fill(&crowd, &bench->engine.client, IDLE_COUNT, row->talk->cell, err) < 0 ||
        await_pools(&bench->engine.client, &pool, err) < 0)
        return -1;
    return bench_watch_idle(bench, pool.engine, figure, err);
}
