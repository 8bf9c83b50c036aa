/* The rows that are times in a session. Samples of ours and of the peer are taken in the same
 * rounds. */
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/clock.h"
#include "bench.h"

#define WARM_UP 3
#define FRAMES_ROOM 8192
#define SETTLE_MS 50 /* the kernel frees groups and namespaces behind our back */

struct bench_series {
    struct bench *bench;
    const struct bench_talk *talk;
    struct bench_session session;
    struct bench_peer peer;
    struct buf cell, first, order; /* frames */
    struct bench_samples bare, ours, aside;
    bool unprotected; /* nothing can be measured */
};

static void series_done(struct bench_series *series)
{
    bench_session_done(&series->session);
    bench_peer_close(&series->peer);
    buf_done(&series->cell);
    buf_done(&series->first);
    buf_done(&series->order);
    bench_samples_done(&series->bare);
    bench_samples_done(&series->ours);
    bench_samples_done(&series->aside);
}

static int await_protection(struct bench_series *series, struct err *err)
{
    bool is;
    if (bench_session_protected(&series->session, &is, err) < 0)
        return -1;
    series->unprotected = !is;
    return is ? 0
              : err_set(err, ERR_HOST, "the session is not protected: %s",
                        series->session.unprotected);
}

static int run(struct bench_series *series, const struct buf *frame, double *out_ms,
               struct err *err)
{
    bool warm;
    return bench_run(series->session.client, frame, out_ms, &warm, err);
}

/* --- one sample each; the session is protected, and the gap is still to come --- */

int bench_take_cell(struct bench_series *series, struct err *err)
{
    double ms;
    bench_nap(series->talk->gap_ms);
    if (run(series, &series->cell, &ms, err) < 0)
        return -1;
    bench_sample(&series->ours, ms);
    return 0;
}

int bench_take_protection(struct bench_series *series, struct err *err)
{
    double ms;
    if (run(series, &series->cell, &ms, err) < 0)
        return -1;
    int64_t from = clock_now_ns();
    if (await_protection(series, err) < 0)
        return -1;
    bench_sample(&series->ours, clock_ms_between(from, clock_now_ns()));
    return 0;
}

/* The result tells of the death. The next cell needs a name from before. */
int bench_take_death(struct bench_series *series, struct err *err)
{
    struct bench_client *client = series->session.client;
    double ms;
    int64_t from = clock_now_ns();
    if (bench_session_ask(&series->session, &series->first, err) < 0)
        return -1;
    bench_sample(&series->aside, clock_ms_between(from, clock_now_ns()));
    if (!bench_has(client, "\"state\":\"rolled_back\""))
        return bench_explain(client, err);
    if (run(series, &series->cell, &ms, err) < 0)
        return -1;
    bench_sample(&series->ours, ms);
    return 0;
}

int bench_take_undo(struct bench_series *series, struct err *err)
{
    double ms;
    if (run(series, &series->first, &ms, err) < 0 || await_protection(series, err) < 0)
        return -1;
    int64_t from = clock_now_ns();
    if (bench_session_ask(&series->session, &series->order, err) < 0)
        return -1;
    bench_sample(&series->aside, clock_ms_between(from, clock_now_ns()));
    if (run(series, &series->cell, &ms, err) < 0)
        return -1;
    bench_sample(&series->ours, clock_ms_between(from, clock_now_ns()));
    return 0;
}

/* A second session: every row keeps one open. */
int bench_take_new(struct bench_series *series, struct err *err)
{
    struct bench_session fresh = { 0 };
    struct bench_client *client = &series->bench->engine.client;
    struct bench_pool pool;
    if (bench_wait_full(client, "box", &pool, err) < 0)
        return -1;
    int64_t from = clock_now_ns();
    int rc = bench_session_open(client, 0, &fresh, err);
    double opened = clock_ms_between(from, clock_now_ns());
    if (rc == 0)
        rc = bench_session_run(&fresh, series->talk->cell, err);
    double took = clock_ms_between(from, clock_now_ns());
    bench_session_done(&fresh);
    bench_nap(SETTLE_MS);
    if (rc < 0)
        return -1;
    bench_sample(&series->aside, opened);
    bench_sample(&series->ours, took);
    return 0;
}

/* --- fork --- */

int bench_take_fork(struct bench_series *series, struct err *err)
{
    struct bench_session child = { 0 };
    int64_t from = clock_now_ns();
    if (bench_session_ask(&series->session, &series->order, err) < 0 ||
        bench_session_adopt(series->session.client, &child, err) < 0)
        return -1;
    double forked = clock_ms_between(from, clock_now_ns());
    int rc = bench_session_run(&child, series->talk->cell, err);
    double took = clock_ms_between(from, clock_now_ns());
    bench_session_done(&child);
    bench_nap(SETTLE_MS);
    if (rc < 0)
        return -1;
    bench_sample(&series->aside, forked);
    bench_sample(&series->ours, took);
    return 0;
}

/* Reads two answers in any order: the time of the answer to the cell. */
static int receive_both(struct bench_client *client, int64_t *out_ns, struct err *err)
{
    static const char id[] = "\"id\":\"c\"";
    struct str text;
    size_t at = 0, len;
    for (unsigned seen = 0; seen < 2;) {
        if (bench_receive(client, err) < 0)
            return -1;
        int64_t now = clock_now_ns();
        while (frame_next((struct str){ client->answer + at, client->got - at }, FRAME_NEWS_MAX,
                          &text, &len, err) > 0) {
            at += len;
            seen++;
            if (memmem(text.at, text.len, id, sizeof id - 1))
                *out_ns = now;
        }
    }
    return 0;
}

/* A cell sent right after the fork waits as long as the fork stops the parent. */
int bench_take_pause(struct bench_series *series, struct err *err)
{
    struct bench_client *client = series->session.client;
    struct bench_session child = { 0 };
    own_buf both = BUF_INIT(FRAMES_ROOM);
    bool warm;
    if (buf_add_str(&both, buf_str(&series->order)) < 0 ||
        buf_add_str(&both, buf_str(&series->cell)) < 0)
        return err_set(err, ERR_BUG, "two frames of a row do not fit");
    int64_t from = clock_now_ns(), answered = from;
    if (bench_send(client, &both, err) < 0 || receive_both(client, &answered, err) < 0 ||
        bench_check(client, &warm, err) < 0 || bench_session_adopt(client, &child, err) < 0)
        return -1;
    bench_sample(&series->ours, clock_ms_between(from, answered));
    bench_session_done(&child);
    bench_nap(SETTLE_MS);
    return 0;
}

/* --- a series --- */

static int take_ours(struct bench_series *series, struct err *err)
{
    if (series->talk->guarded && await_protection(series, err) < 0)
        return -1;
    return series->talk->take(series, err);
}

static int take_bare(struct bench_series *series, struct err *err)
{
    const struct bench_talk *talk = series->talk;
    double ms;
    bench_nap(talk->gap_ms);
    int rc = talk->peer ? bench_peer_ask(&series->peer, talk->peer, &ms, err)
                        : bench_bare(talk->bare, &ms, err);
    if (rc == 0)
        bench_sample(&series->bare, ms);
    return rc;
}

/* 1: the row is skipped, and the figure says why. */
static int prepare(struct bench_series *series, struct bench_figure *figure, struct err *err)
{
    const struct bench_talk *talk = series->talk;
    struct bench_client *client = &series->bench->engine.client;
    struct bench_pool pool;
    bool there = true;
    if (talk->peer && bench_peer_open(&series->peer, &there, err) < 0)
        return -1;
    if (!there) {
        snprintf(figure->skipped, sizeof figure->skipped,
                 "python3-ipykernel is not installed: apt-get install python3-ipykernel "
                 "python3-jupyter-client");
        return 1;
    }
    if (bench_available_kib() * 1024 < (double)talk->memory_bytes) {
        snprintf(figure->skipped, sizeof figure->skipped, "less than %lld MiB of memory is free",
                 (long long)(talk->memory_bytes >> 20));
        return 1;
    }
    if (bench_wait_full(client, "box", &pool, err) < 0 ||
        bench_session_open(client, talk->memory_bytes, &series->session, err) < 0 ||
        bench_session_run(&series->session, talk->before, err) < 0 ||
        bench_session_cell(&series->session, talk->cell, &series->cell, err) < 0 ||
        bench_session_cell(&series->session, talk->first ? talk->first : "", &series->first, err) <
            0 ||
        (talk->order &&
         bench_session_frame(&series->session, talk->order, &series->order, err) < 0))
        return -1;
    return 0;
}

static int take_all(struct bench_series *series, struct err *err)
{
    const struct bench_talk *talk = series->talk;
    size_t rounds = series->bench->rounds;
    if (talk->most && rounds > talk->most)
        rounds = talk->most;
    for (int i = 0; i < WARM_UP; i++) {
        if (take_ours(series, err) < 0)
            return -1;
    }
    if (take_bare(series, err) < 0)
        return -1;
    series->ours.count = series->bare.count = series->aside.count = 0;
    for (size_t i = 0; i < rounds; i++) {
        for (unsigned j = 0; j < talk->times; j++) {
            if (take_ours(series, err) < 0)
                return -1;
        }
        if (take_bare(series, err) < 0)
            return -1;
    }
    return 0;
}

/* The second time of the samples, which is not judged. */
static void add_aside(struct bench *bench, const struct bench_series *series,
                      const struct bench_figure *of)
{
    const struct bench_talk *talk = series->talk;
    struct bench_figure aside = {
        .what = talk->aside, .unit = of->unit, .baseline = of->baseline,
        .bare = of->bare, .ours = bench_summarize(&series->aside),
    };
    if (!talk->aside)
        return;
    snprintf(aside.name, sizeof aside.name, "%s", talk->aside_name);
    aside.value = aside.bare.p50 / aside.ours.p50;
    bench_add(bench, &aside);
}

int bench_talk(struct bench *bench, const struct bench_row *row, struct bench_figure *figure,
               struct err *err)
{
    attr_cleanup(series_done) struct bench_series series = {
        .bench = bench, .talk = row->talk, .peer = BENCH_PEER_INIT,
    };
    if (bench_use_engine(bench, BENCH_BY_DEMAND, err) < 0)
        return -1;
    int rc = prepare(&series, figure, err);
    if (rc == 0 && (rc = take_all(&series, err)) < 0 && series.unprotected) {
        snprintf(figure->skipped, sizeof figure->skipped, "%.250s", err->text);
        rc = 1;
    }
    if (rc < 0)
        return -1;
    if (rc == 0) {
        figure->bare = bench_summarize(&series.bare);
        figure->ours = bench_summarize(&series.ours);
        figure->value = figure->bare.p50 / figure->ours.p50;
    }
    bench_add(bench, figure);
    if (rc == 0)
        add_aside(bench, &series, figure);
    return 0;
}
