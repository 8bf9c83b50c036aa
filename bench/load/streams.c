/* A thousand clients that follow one run, of which nothing is to be told, beside fifty that run
 * code without a pause. Every stream must begin with the run's first event, carry pings, and end
 * with `end` when the run is cancelled. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "load.h"

#define STREAMS 1000
#define STREAMS_QUICK 100
#define BUSY 50
#define KEPT_RUNS 2000 /* the server keeps as many ended runs: before, its memory grows */
#define WINDOW_MS 2000
#define BUSY_MS 10000
#define WAIT_MS 60000
#define IN_MAX (256u << 10)
#define SLEEPER "import time\nprint('begun', flush=True)\ntime.sleep(3000)"

double load_rss_kib(const struct load *load)
{
    char path[64], line[256];
    double kib = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)load->server);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, "VmRSS:", 6) == 0)
            sscanf(line, "VmRSS: %lf", &kib);
    }
    if (file)
        fclose(file);
    return kib;
}

static int begin_run(const struct load *load, struct load_line *line, char *out, size_t room,
                     struct err *err)
{
    own_json body = json_pack("{s:s, s:b, s:{s:i}}", "code", SLEEPER, "wait", 0, "limits",
                              "timeout_s", 3000);
    own_json said = load_http_ask(load, line, "POST", "/v1/run", body, 202, err);
    if (!said)
        return -1;
    snprintf(out, room, "/v1/runs/%s", json_get_str(said, "run").at);
    return 0;
}

static int open_streams(const struct load *load, const char *run, unsigned count,
                        struct load_line *out, unsigned *out_count, struct err *err)
{
    char path[128];
    snprintf(path, sizeof path, "%s/events", run);
    while (*out_count < count) {
        own_buf head = BUF_INIT(4096);
        if (load_line_open(load, true, &out[*out_count], err) < 0)
            return -1;
        struct load_line *line = &out[(*out_count)++];
        if (load_http_head(load, "GET", path, -1, "Accept: text/event-stream\r\n", &head, err) <
                0 ||
            load_line_send(line, head.at, head.len, err) < 0)
            return -1;
    }
    return 0;
}

static bool has(const struct load_line *line, const char *text)
{
    return memmem(line->in, line->got, text, strlen(text)) != NULL;
}

/* Reads what has come; -1 where it ended, failed, or is too much. */
static int take(struct load_line *line, struct err *err)
{
    ssize_t n = recv(line->fd, line->in + line->got, IN_MAX - line->got, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n < 0)
        return err_sys(err, "read a stream");
    if (n == 0)
        return err_set(err, ERR_BUG, "a stream ended after: %.*s", (int)line->got, line->in);
    line->got += (size_t)n;
    return 0;
}

/* Until each of them has that text. */
static int await(struct load_line *lines, unsigned count, const char *text, struct err *err)
{
    int64_t until = clock_now_ns() + WAIT_MS * CLOCK_MS;
    unsigned have = 0;
    while (have < count) {
        have = 0;
        for (unsigned i = 0; i < count; i++) {
            if (!has(&lines[i], text) && take(&lines[i], err) < 0)
                return -1;
            have += has(&lines[i], text);
        }
        if (have < count && clock_now_ns() > until)
            return err_set(err, ERR_BUG, "only %u of %u streams have '%s'", have, count, text);
        bench_nap(have < count ? 50 : 0);
    }
    return 0;
}

/* Runs until the server's memory for ended runs is as large as it gets. */
static int fill_kept(struct load *load, struct load_crowd *busy, struct err *err)
{
    double rate;
    for (size_t ended = 0; ended < KEPT_RUNS; ended += busy->ended) {
        if (load_crowd_run(load, busy, WINDOW_MS, &rate, err) < 0)
            return -1;
    }
    return 0;
}

struct many {
    struct load_line at[STREAMS];
    unsigned count;
};

static void many_close(struct many **many)
{
    for (unsigned i = 0; *many && i < (*many)->count; i++)
        load_line_close(&(*many)->at[i]);
    free(*many);
}

int load_streams(struct load *load, struct bench_figure *figure, struct err *err)
{
    bool quick = load->bench.options.quick;
    unsigned count = quick ? STREAMS_QUICK : STREAMS;
    attr_cleanup(many_close) struct many *many = buf_alloc_zero(1, sizeof *many);
    own_load_crowd busy = LOAD_CROWD_INIT;
    own_load_line line = LOAD_LINE_INIT;
    own_samples each = { 0 }, rates = { 0 };
    char run[96];
    double rate, before, idle, after;
    if (load_crowd_open(load, true, BUSY, &busy, err) < 0 || fill_kept(load, &busy, err) < 0 ||
        load_line_open(load, true, &line, err) < 0 ||
        begin_run(load, &line, run, sizeof run, err) < 0)
        return -1;
    before = load_rss_kib(load);
    if (open_streams(load, run, count, many->at, &many->count, err) < 0 ||
        await(many->at, count, "event: start", err) < 0 ||
        await(many->at, count, "event: ping", err) < 0)
        return -1;
    idle = load_rss_kib(load);
    if (load_crowd_run(load, &busy, quick ? WINDOW_MS : BUSY_MS, &rate, err) < 0)
        return -1;
    after = load_rss_kib(load);
    own_json said = load_http_ask(load, &line, "DELETE", run, NULL, 202, err);
    if (!said || await(many->at, count, "event: end", err) < 0)
        return -1;
    bench_sample(&each, (idle - before) / count);
    bench_sample(&each, (after - before) / count);
    bench_sample(&rates, rate);
    figure->ours = bench_summarize(&each);
    figure->value = (idle > after ? idle - before : after - before) / count;
    return 0;
}
