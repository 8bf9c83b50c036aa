/* Two sides that take turns, so that the machine's noise is in both: socket and HTTP of one server,
 * or the sockets of two servers. */
#include "base/attr.h"
#include "load.h"

#define CLIENTS 16
#define GAP_MS 60
#define WINDOW_MS 2000
#define WINDOW_QUICK_MS 500
#define WINDOWS 8
#define WINDOWS_QUICK 2

/* --- the time of one run --- */

struct pair {
    struct load_line line[2];
    struct bench_samples took[2];
};
#define PAIR_INIT ((struct pair){ .line = { LOAD_LINE_INIT, LOAD_LINE_INIT } })

static void pair_done(struct pair *pair)
{
    for (int k = 0; k < 2; k++) {
        load_line_close(&pair->line[k]);
        bench_samples_done(&pair->took[k]);
    }
}

/* One run of each side; the first is another each time. */
static int take(const struct load_side sides[2], struct pair *pair, size_t round, struct err *err)
{
    double ms;
    for (size_t j = 0; j < 2; j++) {
        size_t k = (round + j) & 1;
        if (load_line_run(sides[k].load, &pair->line[k], &ms, err) < 0)
            return -1;
        bench_sample(&pair->took[k], ms);
    }
    return 0;
}

/* Rounds that find a waiting occupant on both sides. */
static int wait_full(const struct load_side sides[2], unsigned *out_rounds, struct err *err)
{
    bool same = sides[0].load == sides[1].load;
    struct bench_pool pool[2];
    for (int k = 0; k < 2; k++) {
        if (bench_wait_full(&sides[k].load->engine.client, "python", &pool[k], err) < 0)
            return -1;
    }
    *out_rounds = same                            ? pool[0].ready / 2
                  : pool[0].ready < pool[1].ready ? pool[0].ready
                                                  : pool[1].ready;
    return 0;
}

static int measure(const struct load_side sides[2], int gap_ms, struct bench_figure *figure,
                   struct err *err)
{
    attr_cleanup(pair_done) struct pair pair = PAIR_INIT;
    size_t rounds = sides[0].load->bench.rounds;
    unsigned most;
    for (int k = 0; k < 2; k++) {
        if (load_line_open(sides[k].load, sides[k].http, &pair.line[k], err) < 0)
            return -1;
    }
    if (take(sides, &pair, 0, err) < 0)
        return -1;
    pair.took[0].count = pair.took[1].count = 0;
    for (size_t i = 0; i < rounds;) {
        if (wait_full(sides, &most, err) < 0)
            return -1;
        bench_nap(gap_ms);
        /* Without gaps: as many as wait, back to back. */
        for (unsigned used = 0; used < (gap_ms ? 1 : most); used++, i++) {
            if (take(sides, &pair, i, err) < 0)
                return -1;
        }
    }
    figure->bare = bench_summarize(&pair.took[0]);
    figure->ours = bench_summarize(&pair.took[1]);
    figure->value = figure->ours.p50 / figure->bare.p50;
    return 0;
}

/* --- many clients --- */

struct windows {
    struct load_crowd crowd[2];
    struct bench_samples seen[2], ratios;
};
#define WINDOWS_INIT ((struct windows){ .crowd = { LOAD_CROWD_INIT, LOAD_CROWD_INIT } })

static void windows_done(struct windows *windows)
{
    for (int k = 0; k < 2; k++) {
        load_crowd_close(&windows->crowd[k]);
        bench_samples_done(&windows->seen[k]);
    }
    bench_samples_done(&windows->ratios);
}

/* Runs a second; or, with cpu, the processor time of the whole machine for a run. */
static int window(struct load *load, struct load_crowd *crowd, bool cpu, double *out,
                  struct err *err)
{
    double from = bench_cpu_ms();
    if (load_crowd_run(load, crowd, load->bench.options.quick ? WINDOW_QUICK_MS : WINDOW_MS, out,
                       err) < 0)
        return -1;
    if (cpu)
        *out = (bench_cpu_ms() - from) / (double)crowd->ended;
    return 0;
}

static int measure_many(const struct load_side sides[2], bool cpu, struct bench_figure *figure,
                        struct err *err)
{
    attr_cleanup(windows_done) struct windows both = WINDOWS_INIT;
    int count = sides[0].load->bench.options.quick ? WINDOWS_QUICK : WINDOWS;
    double seen[2];
    for (int k = 0; k < 2; k++) {
        if (load_crowd_open(sides[k].load, sides[k].http, CLIENTS, &both.crowd[k], err) < 0)
            return -1;
    }
    for (int i = -1; i < count; i++) {
        for (int j = 0; j < 2; j++) {
            int k = (i + j) & 1; /* each is first in every second round */
            if (window(sides[k].load, &both.crowd[k], cpu, &seen[k], err) < 0)
                return -1;
        }
        if (i < 0) /* pools grow and fill */
            continue;
        bench_sample(&both.seen[0], seen[0]);
        bench_sample(&both.seen[1], seen[1]);
        bench_sample(&both.ratios, seen[1] / seen[0]);
    }
    figure->bare = bench_summarize(&both.seen[0]);
    figure->ours = bench_summarize(&both.seen[1]);
    figure->value = bench_summarize(&both.ratios).p50;
    return 0;
}

/* --- rows: by HTTP against the socket of the same server --- */

int load_times(struct load *load, struct bench_figure *figure, struct err *err)
{
    const struct load_side sides[] = { { load, false }, { load, true } };
    return measure(sides, 0, figure, err);
}

int load_times_gaps(struct load *load, struct bench_figure *figure, struct err *err)
{
    const struct load_side sides[] = { { load, false }, { load, true } };
    return measure(sides, GAP_MS, figure, err);
}

int load_rate(struct load *load, struct bench_figure *figure, struct err *err)
{
    const struct load_side sides[] = { { load, false }, { load, true } };
    return measure_many(sides, false, figure, err);
}

/* --- rows: a server that records against one that does not --- */

int load_recorded(struct load *load, struct bench_figure *figure, struct err *err)
{
    const struct load_side sides[] = { { load->beside, false }, { load, false } };
    return measure(sides, 0, figure, err);
}

int load_recorded_gaps(struct load *load, struct bench_figure *figure, struct err *err)
{
    const struct load_side sides[] = { { load->beside, false }, { load, false } };
    return measure(sides, GAP_MS, figure, err);
}

int load_recorded_rate(struct load *load, struct bench_figure *figure, struct err *err)
{
    const struct load_side sides[] = { { load->beside, false }, { load, false } };
    return measure_many(sides, false, figure, err);
}

int load_recorded_cpu(struct load *load, struct bench_figure *figure, struct err *err)
{
    const struct load_side sides[] = { { load->beside, false }, { load, false } };
    return measure_many(sides, true, figure, err);
}
