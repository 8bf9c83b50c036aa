/* The memory of one more waiting interpreter, with its page tables and kernel objects:
 * MemAvailable before and after a pool of one kind has grown. A pool grows when requests find
 * it empty. */
#include <stdio.h>

#include "base/attr.h"
#include "bench.h"
#include "cli/term/term.h"

#define TRIES 40
#define GROWN_LEAST 6 /* of one kind: fewer drown in the noise */
#define SETTLE_MS 1000
#define LOOKS 15
#define KIB 1024.0
/* More requests at once than interpreters wait, but not more than the empty boxes can take:
 * the pool of boxes is no part of the figure and must not grow too. */
#define MORE 2
#define AT_ONCE_MAX 32

double bench_steady_kib(void)
{
    own_samples looks = { 0 };
    bench_nap(SETTLE_MS);
    for (int i = 0; i < LOOKS; i++) {
        bench_sample(&looks, bench_available_kib());
        bench_nap(SETTLE_MS / LOOKS);
    }
    return bench_summarize(&looks).p50;
}

/* Sends `count` requests at once, on one connection. */
static int flood(struct bench_client *client, const struct bench_job *job, unsigned count,
                 struct err *err)
{
    own_buf frames = BUF_INIT(256u << 10);
    struct str text;
    for (unsigned i = 0; i < count; i++) {
        char id[16];
        snprintf(id, sizeof id, "m%u", i);
        if (bench_frame(id, job->language, job->code, &frames, err) < 0)
            return -1;
    }
    if (bench_send(client, &frames, err) < 0)
        return -1;
    unsigned ended = 0;
    size_t at = 0;
    while (ended < count) {
        size_t len = 0;
        if (bench_receive(client, err) < 0)
            return -1;
        while (frame_next((struct str){ client->answer + at, client->got - at }, FRAME_NEWS_MAX,
                          &text, &len, err) > 0) {
            at += len;
            ended++;
        }
    }
    return 0;
}

/* KiB for one, on an engine that was just started. */
static int grow(struct bench_client *client, const struct bench_job *job, double *out_kib,
                struct err *err)
{
    struct bench_pool at_first, boxes_first, now;
    /* First rounds without growth fill the caches, which no interpreter owns. */
    for (int i = 0; i < 3; i++) {
        if (bench_wait_full(client, job->pool, &at_first, err) < 0 ||
            flood(client, job, at_first.ready, err) < 0)
            return -1;
    }
    if (bench_wait_full(client, job->pool, &at_first, err) < 0 ||
        bench_wait_full(client, "box", &boxes_first, err) < 0)
        return -1;
    double before = bench_steady_kib();
    now = at_first;
    for (int i = 0; i < TRIES; i++) {
        unsigned count = now.ready + MORE;
        unsigned last = now.wanted;
        if (flood(client, job, count < AT_ONCE_MAX ? count : AT_ONCE_MAX, err) < 0 ||
            bench_wait_full(client, job->pool, &now, err) < 0)
            return -1;
        if (now.wanted == last && now.ready >= at_first.ready + GROWN_LEAST)
            break;
    }
    struct bench_pool boxes;
    if (bench_wait_full(client, "box", &boxes, err) < 0)
        return -1;
    if (boxes.ready != boxes_first.ready)
        cli_term_note("empty boxes are %u, and %u were: the figure has them too", boxes.ready,
                      boxes_first.ready);
    if (now.ready < at_first.ready + GROWN_LEAST)
        return err_set(err, ERR_HOST, "the pool '%s' does not grow: %u wait, and %u did at first",
                       job->pool, now.ready, at_first.ready);
    *out_kib = (before - bench_steady_kib()) / (now.ready - at_first.ready);
    return 0;
}

int bench_memory(struct bench *bench, const struct bench_row *row, struct bench_figure *figure,
                 struct err *err)
{
    own_samples bare = { 0 }, ours = { 0 };
    int engines = bench->options.quick ? 1 : 5;
    struct err why = ERR_INIT;
    for (int i = 0; i < engines; i++) {
        double kib;
        if (bench_bare_number(row->job->bare, &kib, &why) < 0) {
            snprintf(figure->skipped, sizeof figure->skipped, "%.250s", why.text);
            break;
        }
        bench_sample(&bare, kib / KIB);
        /* A fresh engine each time: pools that have grown take minutes to shrink. */
        bench_drop_engine(bench);
        if (bench_use_engine(bench, row->job->size, err) < 0 ||
            grow(&bench->engine.client, row->job, &kib, err) < 0)
            return -1;
        bench_sample(&ours, kib / KIB);
    }
    figure->bare = bench_summarize(&bare);
    figure->ours = bench_summarize(&ours);
    if (!figure->skipped[0] && figure->ours.p50 > 0)
        figure->value = figure->bare.p50 / figure->ours.p50;
    else if (!figure->skipped[0])
        snprintf(figure->skipped, sizeof figure->skipped,
                 "memory was freed by others meanwhile: measure again on a quiet machine");
    bench_drop_engine(bench);
    bench_add(bench, figure);
    return 0;
}
