/* The rows, and the times of single runs: bare runs and ours in the same rounds, ours back to
 * back in bursts as long as the pool, or after gaps. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/attr.h"
#include "bench.h"

#define POOL_SIZE 8
#define GAP_MS 60
#define WARM_UP 3
#define PYTHON "/usr/bin/python3"
#define NODE "/usr/bin/node"
#define PANDAS                                                                    \
    "import pandas as pd\n"                                                       \
    "df = pd.DataFrame({'k': [i % 7 for i in range(1000)], 'v': range(1000)})\n" \
    "print(df.groupby('k').v.sum())"
#define RSS                                                                       \
    "import pandas\n"                                                             \
    "print(next(l for l in open('/proc/self/status') if l[:6] == 'VmRSS:').split()[1])"

#define PRINT "python", "print(1)", { PYTHON, "-c", "print(1)" }
#define GROUP "python", PANDAS, { PYTHON, "-c", PANDAS }
#define LOG "javascript", "console.log(1)", { NODE, "-e", "console.log(1)" }

static const struct bench_job cpu = { PRINT, "python", POOL_SIZE, 4, 0, 0, 0 };
static const struct bench_job memory_data = {
    "python", PANDAS, { PYTHON, "-c", RSS }, "python_data", BENCH_BY_DEMAND, 1, 0, 0, 0
};
static const struct bench_job memory_plain = {
    "python", "print(1)", { PYTHON, "-c", RSS }, "python", BENCH_BY_DEMAND, 1, 0, 0, 0
};
static const struct bench_job pool_gaps = { PRINT, "python", POOL_SIZE, 2, GAP_MS, 2.5, 1.5 },
    pool_burst = { PRINT, "python", POOL_SIZE, 4, 0, 6, 3 },
    fork_burst = { PRINT, "box", 0, 4, 0, 2.5, 1.5 },
    fork_gaps = { PRINT, "box", 0, 2, GAP_MS, 2.5, 1.5 },
    pandas_pool = { GROUP, "python_data", POOL_SIZE, 2, 0, 0, 0 },
    pandas_fork = { GROUP, "box", 0, 2, 0, 0, 0 },
    js_pool = { LOG, "javascript", POOL_SIZE, 2, 0, 0, 0 },
    demand = { PRINT, "python", BENCH_BY_DEMAND, 1, 0, 0, 0 };

/* --- in sessions --- */

#define PASS { PYTHON, "-c", "pass" }
#define MANY_BYTES ((int64_t)3 << 30)
#define HOLD_100M "import numpy\nheld = numpy.ones(10**8 // 8)"
#define HOLD_1G "import numpy\nheld = numpy.ones(10**9 // 8)"
static const struct bench_talk
    cell = { .take = bench_take_cell, .guarded = true, .before = "", .cell = "1+1",
             .peer = 'x', .times = 4 },
    cell_gaps = { .take = bench_take_cell, .guarded = true, .before = "", .cell = "1+1",
                  .peer = 'x', .times = 2, .gap_ms = GAP_MS },
    fresh = { .take = bench_take_new, .before = "", .cell = "import pandas", .peer = 'n',
              .times = 4, .most = 10, .aside_name = "session-opened",
              .aside = "the same, until the session is there" },
    safe_100m = { .take = bench_take_protection, .guarded = true, .memory_bytes = MANY_BYTES,
                  .before = HOLD_100M, .cell = "1+1", .bare = PASS, .times = 2 },
    safe_1g = { .take = bench_take_protection, .guarded = true, .memory_bytes = MANY_BYTES,
                .before = HOLD_1G, .cell = "1+1", .bare = PASS, .times = 2 },
    death = { .take = bench_take_death, .guarded = true, .before = "x = 1",
              .first = "x = 2\nimport os\nos._exit(0)", .cell = "assert x == 1", .bare = PASS,
              .times = 2, .aside_name = "session-dying",
              .aside = "the cell that died: sent, until its result" },
    undo = { .take = bench_take_undo, .guarded = true, .before = "x = 1", .first = "x = 2",
             .order = "undo", .cell = "assert x == 1", .bare = PASS, .times = 2,
             .aside_name = "session-undone", .aside = "the same, until undo is answered" },
    child = { .take = bench_take_fork, .guarded = true, .memory_bytes = MANY_BYTES,
              .before = HOLD_100M, .order = "fork", .cell = "held[0]", .bare = PASS, .times = 2,
              .aside_name = "session-forked", .aside = "the same, until fork is answered" },
    parent = { .take = bench_take_pause, .guarded = true, .memory_bytes = MANY_BYTES,
               .before = HOLD_100M, .order = "fork", .cell = "1+1", .bare = PASS, .times = 2 },
    crowd = { .cell = "import pandas", .bare = { PYTHON, "-c", RSS },
              .aside_name = "session-available",
              .aside = "the same, with what the kernel takes for it" };

static int measure_times(struct bench *bench, const struct bench_row *row,
                         struct bench_figure *figure, struct err *err);

#define BARE_PRINT "bare python3 -c 'print(1)'"
#define BARE_PASS "bare python3 -c pass"
#define WARM_KERNEL "warm execute of ipykernel, jupyter_client"
#define TALK bench_talk, NULL
#define TIMES measure_times

/* Rows with the same engine stand together. */
const struct bench_row bench_rows[] = {
    { "pool", "print(1) from the pool, back to back", "ms", BARE_PRINT, 60, 130, false, TIMES,
      &pool_burst, NULL },
    { "pool-gaps", "print(1) from the pool, 60 ms gaps", "ms", BARE_PRINT, 18, 40, false, TIMES,
      &pool_gaps, NULL },
    { "pandas", "pandas groups 1,000 rows, from the pool", "ms", "bare python3, the same", 100,
      250, false, TIMES, &pandas_pool, NULL },
    { "js", "console.log(1) from the pool", "ms", "bare node -e 'console.log(1)'", 20, 100, false,
      TIMES, &js_pool, NULL },
    { "cpu", "CPU time a run, with refill and removal", "ms", BARE_PRINT, 3.5, 8, false,
      bench_cpu, &cpu, NULL },
    { "fork", "print(1), nobody waits, back to back", "ms", BARE_PRINT, 7, 15, false, TIMES,
      &fork_burst, NULL },
    { "fork-gaps", "print(1), nobody waits, 60 ms gaps", "ms", BARE_PRINT, 5, 12, false, TIMES,
      &fork_gaps, NULL },
    { "pandas-fork", "pandas groups 1,000 rows, nobody waits", "ms", "bare python3, the same", 20,
      60, false, TIMES, &pandas_fork, NULL },
    { "rate", "runs a second, 4 clients", "/s", BARE_PRINT ", 4 at once", 3.5, 8, false,
      bench_rate, &demand, NULL },
    { "idle", "CPU of an engine with full pools, idle", "% of a core", NULL, 1, 0, true,
      bench_idle, &demand, NULL },
    { "session-cell", "a cell 1+1, once protected", "ms", WARM_KERNEL, 15, 60, false, TALK,
      &cell },
    { "session-gaps", "a cell 1+1, protected, 60 ms gaps", "ms", WARM_KERNEL, 6, 20, false, TALK,
      &cell_gaps },
    { "session-new", "new session, pandas imported", "ms", "ipykernel start, import pandas", 200,
      1000, false, TALK, &fresh },
    { "session-safe-100m", "from result to protected, 100 MB of numpy", "ms", BARE_PASS, 5, 15,
      false, TALK, &safe_100m },
    { "session-safe-1g", "from result to protected, 1 GB of numpy", "ms", BARE_PASS, 4, 10, false,
      TALK, &safe_1g },
    { "session-death", "a cell died: its result to the next answer", "ms", BARE_PASS, 10, 80,
      false, TALK, &death },
    { "session-undo", "undo of a good cell, to the next answer", "ms", BARE_PASS, 5, 20, false,
      TALK, &undo },
    { "session-fork", "fork, 100 MB: the child's first answer", "ms", BARE_PASS, 7, 20, false,
      TALK, &child },
    { "session-pause", "fork, 100 MB: the parent's next answer", "ms", BARE_PASS, 20, 50, false,
      TALK, &parent },
    { "session-memory", "memory of one more session, pandas in it", "MiB",
      "RSS of python3 with pandas", 15, 60, false, bench_session_memory, NULL, &crowd },
    { "session-idle", "CPU of an engine with 100 idle sessions", "% of a core", NULL, 1, 0, true,
      bench_session_idle, NULL, &crowd },
    { "memory", "memory of one that waits, pandas imported", "MiB",
      "RSS of python3 with pandas", 30, 150, false, bench_memory, &memory_data, NULL },
    { "memory-plain", "memory of one that waits for plain Python", "MiB",
      "RSS of python3 with pandas", 0, 0, false, bench_memory, &memory_plain, NULL },
};
const size_t bench_row_count = array_len(bench_rows);

bool bench_row_is(const struct bench_row *row, const char *word)
{
    static const char group[] = "session";
    return strcmp(word, row->name) == 0 || (strcmp(word, group) == 0 && row->talk);
}

/* --- times of single runs --- */

struct series {
    struct bench_client *client;
    const struct bench_job *job;
    struct buf frame;
    struct bench_samples bare, ours;
    size_t warm;
};

static void series_done(struct series *series)
{
    buf_done(&series->frame);
    bench_samples_done(&series->bare);
    bench_samples_done(&series->ours);
}

static int take_ours(struct series *series, struct err *err)
{
    double ms;
    bool warm;
    bench_nap(series->job->gap_ms);
    if (bench_run(series->client, &series->frame, &ms, &warm, err) < 0)
        return -1;
    bench_sample(&series->ours, ms);
    series->warm += warm;
    return 0;
}

static int take_bare(struct series *series, struct err *err)
{
    double ms;
    bench_nap(series->job->gap_ms);
    if (bench_bare(series->job->bare, &ms, err) < 0)
        return -1;
    bench_sample(&series->bare, ms);
    return 0;
}

/* Some runs of ours, then the bare runs that belong to them. Without gaps a burst is no longer
 * than the pool: the next run would find it empty. With gaps we look at the pool before the
 * gap, so that the look wakes no measured process. */
static int take_round(struct series *series, size_t rounds, struct err *err)
{
    const struct bench_job *job = series->job;
    struct bench_pool pool = { 0 };
    if (bench_wait_full(series->client, job->pool, &pool, err) < 0)
        return -1;
    size_t burst = job->gap_ms ? 1 : pool.ready;
    for (size_t i = 0; i < burst && series->ours.count < rounds * job->times; i++) {
        if (take_ours(series, err) < 0)
            return -1;
    }
    while (series->bare.count < rounds && series->bare.count * job->times < series->ours.count) {
        if (take_bare(series, err) < 0)
            return -1;
    }
    return 0;
}

static int warm_up(struct series *series, struct err *err)
{
    struct bench_pool pool;
    if (bench_wait_full(series->client, series->job->pool, &pool, err) < 0)
        return -1;
    for (int i = 0; i < WARM_UP; i++) {
        if (take_ours(series, err) < 0 || take_bare(series, err) < 0)
            return -1;
    }
    series->ours.count = series->bare.count = series->warm = 0;
    return bench_wait_full(series->client, series->job->pool, &pool, err);
}

static void add_tail(struct bench *bench, const struct bench_job *job,
                     const struct bench_figure *of)
{
    struct bench_figure tail = {
        .what = "p99 over p50 of the row above", .unit = "ms", .ours = of->ours,
        .value = of->ours.p99 / of->ours.p50,
        .gate = job->tail_gate, .stretch = job->tail_stretch, .at_most = true,
    };
    snprintf(tail.name, sizeof tail.name, "%.24s-tail", of->name);
    bench_add(bench, of);
    bench_add(bench, &tail);
}

/* A machine without the interpreter or the package has no such row. */
static bool can_bare(const struct bench_job *job, struct bench_figure *figure)
{
    double ms;
    struct err why = ERR_INIT;
    if (bench_bare(job->bare, &ms, &why) == 0)
        return true;
    snprintf(figure->skipped, sizeof figure->skipped, "%.250s", why.text);
    return false;
}

static int measure_times(struct bench *bench, const struct bench_row *row,
                         struct bench_figure *figure, struct err *err)
{
    const struct bench_job *job = row->job;
    attr_cleanup(series_done) struct series series = { .job = job, .frame = BUF_INIT(4096) };
    if (!can_bare(job, figure)) {
        bench_add(bench, figure);
        return 0;
    }
    if (bench_use_engine(bench, job->size, err) < 0 ||
        bench_frame("b", job->language, job->code, &series.frame, err) < 0)
        return -1;
    series.client = &bench->engine.client;
    if (warm_up(&series, err) < 0)
        return -1;
    while (series.bare.count < bench->rounds || series.ours.count < bench->rounds * job->times) {
        if (take_round(&series, bench->rounds, err) < 0)
            return -1;
    }
    figure->bare = bench_summarize(&series.bare);
    figure->ours = bench_summarize(&series.ours);
    figure->value = figure->bare.p50 / figure->ours.p50;
    figure->warm = series.warm;
    figure->counts_warm = true;
    add_tail(bench, job, figure);
    return 0;
}
