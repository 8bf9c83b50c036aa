/* Shared by the files of build/load: connections to one `cupel serve`, by its socket and by HTTP,
 * and the rows that compare them. Runs as the caller; the server is a process that bench/load.py
 * started. One thread, one request under way on each connection, and every answer is checked. */
#ifndef BENCH_LOAD_LOAD_H
#define BENCH_LOAD_LOAD_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"
#include "bench/warm/bench.h"

#define LOAD_TOKEN_ROOM 128

struct load {
    struct bench bench;         /* options and figures */
    struct bench_engine engine; /* its folder, and a client for the pools; we started nothing */
    pid_t server;
    uint16_t port;
    char token[LOAD_TOKEN_ROOM];
    uint64_t number; /* the last one that was asked for */
    struct load *beside; /* the server that rows compare this one with; or NULL */
};

/* --- line.c: one connection --- */

struct load_line {
    bool http;
    int fd;
    char *in;
    size_t got;
    size_t whole;   /* bytes of the answer, once its head is there; else 0 */
    size_t body_at; /* of an HTTP answer */
    unsigned status;
    uint64_t number;
};
#define LOAD_LINE_INIT ((struct load_line){ .fd = -1 })
int load_line_open(const struct load *load, bool http, struct load_line *out, struct err *err);
void load_line_close(struct load_line *line);
#define own_load_line attr_cleanup(load_line_close) struct load_line
/* Asks for `print(number)`, a number that nobody had before. */
int load_line_ask(struct load *load, struct load_line *line, struct err *err);
/* Reads once: 1 when the answer is whole, and right; 0 when more is needed. */
int load_line_receive(struct load_line *line, struct err *err);
/* Both, and how long it took. */
int load_line_run(struct load *load, struct load_line *line, double *out_ms, struct err *err);

/* Any request by HTTP. The answer's JSON, or NULL where the status is another. */
json_t *load_http_ask(const struct load *load, struct load_line *line, const char *method,
                      const char *path, const json_t *body, unsigned status, struct err *err);
/* The bytes of a request's head; length < 0: it has no body. */
int load_http_head(const struct load *load, const char *method, const char *path, int64_t length,
                   const char *more, struct buf *out, struct err *err);
int load_line_send(const struct load_line *line, const void *bytes, size_t len, struct err *err);
/* Reads an answer to the end. */
int load_http_answer(struct load_line *line, struct err *err);
/* -1 with the status and the error of the answer. */
int load_http_explain(const struct load_line *line, struct err *err);

/* --- crowd.c: many lines at once --- */

struct load_crowd {
    struct load_line *at;
    unsigned count, going;
    int epoll;
    size_t ended;
};
#define LOAD_CROWD_INIT ((struct load_crowd){ .epoll = -1 })
int load_crowd_open(const struct load *load, bool http, unsigned count, struct load_crowd *out,
                    struct err *err);
void load_crowd_close(struct load_crowd *crowd);
#define own_load_crowd attr_cleanup(load_crowd_close) struct load_crowd
/* Each line asks again as soon as it is answered, for window_ms; then all answers are awaited. */
int load_crowd_run(struct load *load, struct load_crowd *crowd, int window_ms, double *out_rate,
                   struct err *err);

/* --- turns.c: two sides in turn; the first is the baseline --- */

struct load_side {
    struct load *load;
    bool http;
};

/* --- rows --- */

/* Resident memory of the server. */
double load_rss_kib(const struct load *load);

int load_times(struct load *load, struct bench_figure *figure, struct err *err);
int load_times_gaps(struct load *load, struct bench_figure *figure, struct err *err);
int load_rate(struct load *load, struct bench_figure *figure, struct err *err);
int load_streams(struct load *load, struct bench_figure *figure, struct err *err);
/* Beside a server without records. */
int load_recorded(struct load *load, struct bench_figure *figure, struct err *err);
int load_recorded_gaps(struct load *load, struct bench_figure *figure, struct err *err);
int load_recorded_rate(struct load *load, struct bench_figure *figure, struct err *err);
int load_recorded_cpu(struct load *load, struct bench_figure *figure, struct err *err);
/* Beside a server with few records. */
int load_page(struct load *load, struct bench_figure *figure, struct err *err);
int load_page_status(struct load *load, struct bench_figure *figure, struct err *err);
int load_page_text(struct load *load, struct bench_figure *figure, struct err *err);
/* cache.c */
int load_hit(struct load *load, struct bench_figure *figure, struct err *err);
int load_once(struct load *load, struct bench_figure *figure, struct err *err);
int load_upload(struct load *load, struct bench_figure *figure, struct err *err);

#endif
