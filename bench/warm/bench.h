/* Shared by the files of build/bench: rows, figures, and the code that measures them.
 * Runs as the caller; engines are processes of their own. One thread: the program forks,
 * and its own cost is part of every figure. */
#ifndef BENCH_WARM_BENCH_H
#define BENCH_WARM_BENCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/opt.h"
#include "embed/link.h"

/* --- stats.c: samples --- */

struct bench_samples {
    double *at;
    size_t count, room;
};
void bench_samples_done(struct bench_samples *samples);
#define own_samples attr_cleanup(bench_samples_done) struct bench_samples
void bench_sample(struct bench_samples *samples, double value);

struct bench_summary {
    size_t count; /* 0: nothing was measured */
    double p10, p50, p90, p99;
    double noise; /* between the medians of the first and second half, in parts of p50 */
};
struct bench_summary bench_summarize(const struct bench_samples *samples);

/* --- bare.c: the interpreters that we are compared with --- */

/* A bare interpreter: posix_spawn to reaped. -1 with an err where it does not start or
 * does not end with 0. */
int bench_bare(const char *const argv[], double *out_ms, struct err *err);
/* Keeps `at_once` of them running for window_ms: how many ended in a second. */
int bench_bare_rate(const char *const argv[], unsigned at_once, int window_ms, double *out_rate,
                    struct err *err);
/* Its output, as a number. */
int bench_bare_number(const char *const argv[], double *out, struct err *err);

/* --- host.c: counters of the kernel --- */

/* Time of all processors but idle and stolen, since the start of the machine. */
double bench_cpu_ms(void);
double bench_available_kib(void);
/* Of a process and all its descendants: user and system time; and memory, each page once,
 * without pages of files, which other processes share (0: this user may not read it). */
double bench_tree_cpu_ms(pid_t root);
double bench_tree_pss_kib(pid_t root);
void bench_nap(int ms);

/* --- engine.c: an engine of our own, and connections to it --- */

struct bench_client {
    struct embed_link link;
    char *answer; /* the incoming frame */
    size_t got;
};

enum { BENCH_BY_DEMAND = -1 };

struct bench_engine {
    pid_t guard; /* the process that starts the engine, and ends it when we are gone */
    int leash;   /* the guard ends when this closes */
    char folder[256];
    struct bench_client client;
};
#define BENCH_ENGINE_INIT \
    ((struct bench_engine){ .leash = -1, .client.link = EMBED_LINK_INIT })

/* `cupel serve` with so many occupants of each kind, ready to answer. */
int bench_engine_open(int pool, struct bench_engine *out, struct err *err);
void bench_engine_close(struct bench_engine *engine);
#define own_bench_engine attr_cleanup(bench_engine_close) struct bench_engine

int bench_client_open(const struct bench_engine *engine, struct bench_client *out, struct err *err);
void bench_client_close(struct bench_client *client);

/* The bytes of a run frame, made once. */
int bench_frame(const char *id, const char *language, const char *code, struct buf *out,
                struct err *err);
int bench_send(struct bench_client *client, const struct buf *frame, struct err *err);
/* Read once: 1 when the frame is whole, 0 when more is needed. */
int bench_receive(struct bench_client *client, struct err *err);
/* Does the answer hold that text? */
bool bench_has(const struct bench_client *client, const char *text);
/* -1 with the error of the answer, be it a result or a refusal. */
int bench_explain(const struct bench_client *client, struct err *err);
/* Is the answer the result of a successful run? Was the run warm? */
int bench_check(const struct bench_client *client, bool *out_warm, struct err *err);
/* From the first byte of the request to the last of its result. */
int bench_run(struct bench_client *client, const struct buf *frame, double *out_ms, bool *out_warm,
              struct err *err);

struct bench_pool {
    unsigned ready, wanted;
    pid_t engine;
    bool zygotes; /* all of them serve */
};
int bench_pool(struct bench_client *client, const char *name, struct bench_pool *out,
               struct err *err);
/* Wait until the pool is full and, for Python, the zygotes serve. */
int bench_wait_full(struct bench_client *client, const char *name, struct bench_pool *out,
                    struct err *err);

/* --- session.c: a session of that engine --- */

struct bench_session {
    struct bench_client *client;
    char id[40];
    char unprotected[160]; /* why the session has no protection */
    struct buf info;       /* the frame that asks */
};
/* memory_bytes 0: as the profile has it. */
int bench_session_open(struct bench_client *client, int64_t memory_bytes, struct bench_session *out,
                       struct err *err);
/* The session that the last answer names: a fork. */
int bench_session_adopt(struct bench_client *client, struct bench_session *out, struct err *err);
/* Ends it. */
void bench_session_done(struct bench_session *session);
/* The bytes of a cell, and of another order to the session, made once. */
int bench_session_cell(const struct bench_session *session, const char *code, struct buf *out,
                       struct err *err);
int bench_session_frame(const struct bench_session *session, const char *what, struct buf *out,
                        struct err *err);
/* Sends a frame and reads its answer, good or bad; -1 if the engine refused it. */
int bench_session_ask(struct bench_session *session, const struct buf *frame, struct err *err);
/* A cell that must succeed. */
int bench_session_run(struct bench_session *session, const char *code, struct err *err);
/* Asks until the session is protected; false if it is idle and unprotected: `unprotected` says
 * why. */
int bench_session_protected(struct bench_session *session, bool *out, struct err *err);

/* --- peer.c: an ipykernel, driven by bench/ipykernel_peer.py --- */

struct bench_peer {
    pid_t pid;
    int fd;
};
#define BENCH_PEER_INIT ((struct bench_peer){ .fd = -1 })
/* *out_there: false where the host has no ipykernel. */
int bench_peer_open(struct bench_peer *out, bool *out_there, struct err *err);
void bench_peer_close(struct bench_peer *peer);
/* Sends an order to that program: how long it took there. */
int bench_peer_ask(const struct bench_peer *peer, char order, double *out_ms, struct err *err);

/* --- rows --- */

struct bench_figure {
    char name[32], skipped[256]; /* skipped: why there is no figure */
    const char *what, *unit, *baseline;
    struct bench_summary bare, ours;
    double value;         /* compared with gate and stretch */
    double gate, stretch; /* 0: none */
    bool at_most;         /* a small value is good */
    size_t each;          /* runs in one sample; 0: one */
    size_t warm;          /* runs of ours that were warm */
    bool counts_warm;
};

struct bench_options {
    bool quick, help;
    struct opt_number rounds;
    struct opt_operands rows; /* as typed; none: all */
};

/* The state of one call of the program. */
struct bench {
    struct bench_options options;
    size_t rounds;
    struct bench_engine engine;
    int pool; /* of the engine that is open */
    bool open;
    json_t *figures; /* an array */
};
/* Opens an engine with that pool, unless it is open already. */
int bench_use_engine(struct bench *bench, int pool, struct err *err);
void bench_drop_engine(struct bench *bench);
/* figure.c: one more figure, as JSON. */
void bench_add(struct bench *bench, const struct bench_figure *figure);

struct bench_row {
    const char *name, *what, *unit, *baseline;
    double gate, stretch;
    bool at_most;
    int (*measure)(struct bench *bench, const struct bench_row *row, struct bench_figure *figure,
                   struct err *err);
    const struct bench_job *job;
    const struct bench_talk *talk; /* of rows in sessions */
};
extern const struct bench_row bench_rows[];
extern const size_t bench_row_count;
/* Does the word name this row? `session` names all rows in sessions. */
bool bench_row_is(const struct bench_row *row, const char *word);

/* cost.c */
int bench_cpu(struct bench *bench, const struct bench_row *row, struct bench_figure *figure,
              struct err *err);
int bench_rate(struct bench *bench, const struct bench_row *row, struct bench_figure *figure,
               struct err *err);
int bench_idle(struct bench *bench, const struct bench_row *row, struct bench_figure *figure,
               struct err *err);
int bench_watch_idle(struct bench *bench, pid_t engine, struct bench_figure *figure,
                     struct err *err);
/* memory.c */
/* The median of the available memory over a second. */
double bench_steady_kib(void);
int bench_memory(struct bench *bench, const struct bench_row *row, struct bench_figure *figure,
                 struct err *err);

/* talk.c: times in a session; each take_* times one kind of sample */
int bench_talk(struct bench *bench, const struct bench_row *row, struct bench_figure *figure,
               struct err *err);
struct bench_series;
int bench_take_cell(struct bench_series *series, struct err *err);
int bench_take_protection(struct bench_series *series, struct err *err);
int bench_take_death(struct bench_series *series, struct err *err);
int bench_take_undo(struct bench_series *series, struct err *err);
int bench_take_new(struct bench_series *series, struct err *err);
int bench_take_fork(struct bench_series *series, struct err *err);
int bench_take_pause(struct bench_series *series, struct err *err);
/* crowd.c */
int bench_session_memory(struct bench *bench, const struct bench_row *row,
                         struct bench_figure *figure, struct err *err);
int bench_session_idle(struct bench *bench, const struct bench_row *row,
                       struct bench_figure *figure, struct err *err);

/* A row in a session: its cells, and its peer. */
struct bench_talk {
    int (*take)(struct bench_series *series, struct err *err);
    bool guarded;       /* each sample begins when the session is protected */
    const char *before; /* the cell that makes the state */
    const char *first;  /* a cell before the timed one */
    const char *cell;
    const char *order;  /* another order to the session; NULL: none */
    const char *bare[4];
    char peer;          /* an order for ipykernel, in place of bare; 0: none */
    unsigned times;     /* samples of ours for one of the peer */
    size_t most;        /* rounds at most, for a slow peer; 0: all */
    int gap_ms;
    int64_t memory_bytes;
    const char *aside_name, *aside; /* a second time of the same sample; NULL: none */
};

/* A row of single runs: its code, and its bare peer. */
struct bench_job {
    const char *language, *code;
    const char *bare[4];
    const char *pool;  /* whose occupants it uses */
    int size;          /* of the engine's pools */
    unsigned times;    /* runs of ours for one bare run */
    int gap_ms;        /* before each run; 0: bursts as long as the pool */
    double tail_gate, tail_stretch; /* p99 over p50, at most; 0: not judged */
};

#endif
