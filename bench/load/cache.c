/* Results that are used again, and pages of records: requests whose answers need no box. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "load.h"

#define TTL_S 600
#define IDENTICAL 1000
#define IDENTICAL_QUICK 100
#define VALUE_ROOM 64
#define ONE "import os, time; time.sleep(0.2); print(os.urandom(12).hex())"

static int send_run(const struct load *load, const struct load_line *line, const char *code,
                    struct err *err)
{
    own_json body = json_pack("{s:s, s:{s:i}}", "code", code, "cache", "ttl_s", TTL_S);
    own_buf text = BUF_INIT(4096), out = BUF_INIT(8192);
    if (json_add(&text, body) < 0 ||
        load_http_head(load, "POST", "/v1/run", (int64_t)text.len,
                       "Content-Type: application/json\r\n", &out, err) < 0)
        return -1;
    buf_add_str(&out, buf_str(&text));
    return load_line_send(line, out.at, out.len, err);
}

static int await_run(struct load_line *line, struct err *err)
{
    if (load_http_answer(line, err) < 0)
        return -1;
    return line->status == 200 ? 0 : load_http_explain(line, err);
}

static bool has(const struct load_line *line, const char *text)
{
    return memmem(line->in, line->got, text, strlen(text)) != NULL;
}

/* Warm runs and hits in turn, on one connection. */
int load_hit(struct load *load, struct bench_figure *figure, struct err *err)
{
    own_load_line line = LOAD_LINE_INIT;
    own_samples runs = { 0 }, hits = { 0 };
    struct bench_pool pool;
    if (load_line_open(load, true, &line, err) < 0 ||
        send_run(load, &line, "print(6*7)", err) < 0 || await_run(&line, err) < 0)
        return -1;
    for (size_t i = 0; i < load->bench.rounds;) {
        if (bench_wait_full(&load->engine.client, "python", &pool, err) < 0)
            return -1;
        for (unsigned used = 0; used < pool.ready; used++, i++) {
            double ms;
            if (load_line_run(load, &line, &ms, err) < 0)
                return -1;
            bench_sample(&runs, ms);
            int64_t from = clock_now_ns();
            if (send_run(load, &line, "print(6*7)", err) < 0 || await_run(&line, err) < 0)
                return -1;
            bench_sample(&hits, clock_ms_between(from, clock_now_ns()));
            if (!has(&line, "\"cached\":true") || !has(&line, "\"stdout\":\"42\\n\""))
                return err_set(err, ERR_BUG, "an answer is no hit: %.400s", line.in);
        }
    }
    figure->bare = bench_summarize(&runs);
    figure->ours = bench_summarize(&hits);
    figure->value = figure->ours.p50 / figure->bare.p50;
    return 0;
}

/* --- identical runs at once --- */

struct flock {
    struct load_line at[IDENTICAL];
    char value[IDENTICAL][VALUE_ROOM];
    unsigned count;
};

static void flock_close(struct flock **flock)
{
    for (unsigned i = 0; *flock && i < (*flock)->count; i++)
        load_line_close(&(*flock)->at[i]);
    free(*flock);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* The code prints a number that no second execution prints. */
static int take_value(const struct load_line *line, char *out, struct err *err)
{
    static const char before[] = "\"stdout\":\"";
    const char *at = memmem(line->in, line->got, before, sizeof before - 1);
    if (!at || sscanf(at + sizeof before - 1, "%63[0-9a-f]", out) != 1)
        return err_set(err, ERR_BUG, "an answer has no number: %.400s", line->in);
    return 0;
}

int load_once(struct load *load, struct bench_figure *figure, struct err *err)
{
    unsigned count = load->bench.options.quick ? IDENTICAL_QUICK : IDENTICAL, other = 1;
    attr_cleanup(flock_close) struct flock *flock = buf_alloc_zero(1, sizeof *flock);
    own_samples seen = { 0 };
    char code[128];
    snprintf(code, sizeof code, ONE "#%lld", (long long)clock_now_ns());
    for (; flock->count < count; flock->count++) {
        if (load_line_open(load, true, &flock->at[flock->count], err) < 0)
            return -1;
    }
    for (unsigned i = 0; i < count; i++) {
        if (send_run(load, &flock->at[i], code, err) < 0)
            return -1;
    }
    for (unsigned i = 0; i < count; i++) {
        if (await_run(&flock->at[i], err) < 0 ||
            take_value(&flock->at[i], flock->value[i], err) < 0)
            return -1;
    }
    qsort(flock->value, count, VALUE_ROOM, by_text);
    for (unsigned i = 1; i < count; i++)
        other += strcmp(flock->value[i - 1], flock->value[i]) != 0;
    bench_sample(&seen, other);
    figure->ours = bench_summarize(&seen);
    figure->value = other;
    return 0;
}

/* --- pages --- */

static int take_page(const struct load *load, struct load_line *line, const char *path,
                     struct bench_samples *out, struct err *err)
{
    own_buf head = BUF_INIT(4096);
    int64_t from = clock_now_ns();
    if (load_http_head(load, "GET", path, -1, NULL, &head, err) < 0 ||
        load_line_send(line, head.at, head.len, err) < 0 || load_http_answer(line, err) < 0)
        return -1;
    bench_sample(out, clock_ms_between(from, clock_now_ns()));
    if (line->status != 200)
        return load_http_explain(line, err);
    return has(line, "\"run\":\"r_") ? 0 : err_set(err, ERR_BUG, "a page has no run: %s", path);
}

static int measure_pages(struct load *load, const char *path, struct bench_figure *figure,
                         struct err *err)
{
    own_load_line few = LOAD_LINE_INIT, many = LOAD_LINE_INIT;
    own_samples theirs = { 0 }, ours = { 0 };
    if (load_line_open(load->beside, true, &few, err) < 0 ||
        load_line_open(load, true, &many, err) < 0)
        return -1;
    for (size_t i = 0; i <= load->bench.rounds; i++) {
        if (take_page(load->beside, &few, path, &theirs, err) < 0 ||
            take_page(load, &many, path, &ours, err) < 0)
            return -1;
        if (i == 0) /* statements are prepared, pages come into memory */
            theirs.count = ours.count = 0;
    }
    figure->bare = bench_summarize(&theirs);
    figure->ours = bench_summarize(&ours);
    figure->value = figure->ours.p50 / figure->bare.p50;
    return 0;
}

int load_page(struct load *load, struct bench_figure *figure, struct err *err)
{
    return measure_pages(load, "/v1/runs", figure, err);
}

int load_page_status(struct load *load, struct bench_figure *figure, struct err *err)
{
    return measure_pages(load, "/v1/runs?status=ok&language=python", figure, err);
}

int load_page_text(struct load *load, struct bench_figure *figure, struct err *err)
{
    return measure_pages(load, "/v1/runs?text=print", figure, err);
}
