/* What the files of `cupel bench` share: rows, figures, and what measures them.
 * The cli process as the caller; engines are processes of their own. One thread:
 * it forks, and its own cost is part of what is measured. */
#ifndef CLI_BENCH_BENCH_H
#define CLI_BENCH_BENCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "cli/bench/bench_options.h"
#include "embed/link.h"

/* --- bench_stats.c: samples --- */

struct cli_bench_samples {
    double *at;
    size_t count, room;
};
void cli_bench_samples_done(struct cli_bench_samples *samples);
#define own_samples attr_cleanup(cli_bench_samples_done) struct cli_bench_samples
void cli_bench_sample(struct cli_bench_samples *samples, double value);

struct cli_bench_summary {
    size_t count; /* 0: nothing was measured */
    double p10, p50, p90, p99;
    double noise; /* between the medians of the first and second half, in parts of p50 */
};
struct cli_bench_summary cli_bench_summarize(const struct cli_bench_samples *samples);

/* --- bench_bare.c: what we are compared with --- */

/* A bare interpreter: posix_spawn to reaped. -1 with an err where it does not start or
 * does not end with 0. */
int cli_bench_bare(const char *const argv[], double *out_ms, struct err *err);
/* `at_once` of them, started anew as they end, for so long: how many ended a second. */
int cli_bench_bare_rate(const char *const argv[], unsigned at_once, int window_ms,
                        double *out_rate, struct err *err);
/* What it prints, as a number. */
int cli_bench_bare_number(const char *const argv[], double *out, struct err *err);

/* --- bench_host.c: what the kernel counts --- */

struct cli_bench_machine {
    char model[128], kernel[128];
    unsigned cores;
    double load;  /* over the last minute */
    double busy;  /* the part of all cores that is in use now */
    bool quiet;   /* else the figures are not to be trusted */
};
void cli_bench_look_at_machine(struct cli_bench_machine *out);
/* Time of all processors but idle and stolen, since the start of the machine. */
double cli_bench_cpu_ms(void);
double cli_bench_available_kib(void);
/* Of a process and all its descendants: user and system time; and memory, each page once,
 * without those of files, which are the host's and shared by whoever else runs (0: this
 * user may not see it). */
double cli_bench_tree_cpu_ms(pid_t root);
double cli_bench_tree_pss_kib(pid_t root);
void cli_bench_nap(int ms);

/* --- bench_engine.c: an engine of our own, and connections to it --- */

struct cli_bench_client {
    struct embed_link link;
    char *answer; /* the frame that comes in */
    size_t got;
};

enum { CLI_BENCH_BY_DEMAND = -1 };

struct cli_bench_engine {
    pid_t guard; /* the process that starts the engine, and ends it when we are gone */
    int leash;   /* closed: it is to end */
    char folder[256];
    struct cli_bench_client client;
};
#define CLI_BENCH_ENGINE_INIT \
    ((struct cli_bench_engine){ .leash = -1, .client.link = EMBED_LINK_INIT })

/* `cupel serve` with so many occupants of each kind, ready to answer. */
int cli_bench_engine_open(int pool, struct cli_bench_engine *out, struct err *err);
void cli_bench_engine_close(struct cli_bench_engine *engine);
#define own_bench_engine attr_cleanup(cli_bench_engine_close) struct cli_bench_engine

int cli_bench_client_open(const struct cli_bench_engine *engine, struct cli_bench_client *out,
                          struct err *err);
void cli_bench_client_close(struct cli_bench_client *client);

/* The bytes of a run frame, made once. */
int cli_bench_frame(const char *id, const char *language, const char *code, struct buf *out,
                    struct err *err);
int cli_bench_send(struct cli_bench_client *client, const struct buf *frame, struct err *err);
/* Read once: 1 when the frame is whole, 0 when more is needed. */
int cli_bench_receive(struct cli_bench_client *client, struct err *err);
/* Does the answer hold that text? */
bool cli_bench_has(const struct cli_bench_client *client, const char *text);
/* -1 with what the answer, of a run or a refusal, says went wrong. */
int cli_bench_explain(const struct cli_bench_client *client, struct err *err);
/* Is the answer the result of a run that went well? Is it warm: was anything ready? */
int cli_bench_check(const struct cli_bench_client *client, bool *out_warm, struct err *err);
/* From the first byte of the request to the last of its result. */
int cli_bench_run(struct cli_bench_client *client, const struct buf *frame, double *out_ms,
                  bool *out_warm, struct err *err);

struct cli_bench_pool {
    unsigned ready, wanted;
    pid_t engine;
    bool zygotes; /* all of them serve */
};
int cli_bench_pool(struct cli_bench_client *client, const char *name, struct cli_bench_pool *out,
                   struct err *err);
/* Wait until the pool is full and, for Python, the zygotes serve. */
int cli_bench_wait_full(struct cli_bench_client *client, const char *name,
                        struct cli_bench_pool *out, struct err *err);

/* --- bench_session.c: a session of that engine --- */

struct cli_bench_session {
    struct cli_bench_client *client;
    char id[40];
    char unprotected[160]; /* why it will not be */
    struct buf info;       /* the frame that asks */
};
/* memory_bytes 0: as the profile has it. */
int cli_bench_session_open(struct cli_bench_client *client, int64_t memory_bytes,
                           struct cli_bench_session *out, struct err *err);
/* The one that the last answer gave: a fork. */
int cli_bench_session_adopt(struct cli_bench_client *client, struct cli_bench_session *out,
                            struct err *err);
/* Ends it. */
void cli_bench_session_done(struct cli_bench_session *session);
/* The bytes of a cell, and of what else is done with it, made once. */
int cli_bench_session_cell(const struct cli_bench_session *session, const char *code,
                           struct buf *out, struct err *err);
int cli_bench_session_frame(const struct cli_bench_session *session, const char *what,
                            struct buf *out, struct err *err);
/* Send a frame and have its answer, whatever the result is; -1 where it was refused. */
int cli_bench_session_ask(struct cli_bench_session *session, const struct buf *frame,
                          struct err *err);
/* A cell that must go well. */
int cli_bench_session_run(struct cli_bench_session *session, const char *code, struct err *err);
/* Ask until it is protected; false where it rests and is not, and `unprotected` says why. */
int cli_bench_session_protected(struct cli_bench_session *session, bool *out, struct err *err);

/* --- bench_peer.c: an ipykernel, driven by bench/ipykernel_peer.py --- */

struct cli_bench_peer {
    pid_t pid;
    int fd;
};
#define CLI_BENCH_PEER_INIT ((struct cli_bench_peer){ .fd = -1 })
/* *out_there: false where the host has no ipykernel. */
int cli_bench_peer_open(struct cli_bench_peer *out, bool *out_there, struct err *err);
void cli_bench_peer_close(struct cli_bench_peer *peer);
/* Have an order of that file done: how long it took there. */
int cli_bench_peer_ask(const struct cli_bench_peer *peer, char order, double *out_ms,
                       struct err *err);

/* --- rows --- */

struct cli_bench_figure {
    char name[32], skipped[256]; /* skipped: why there is no figure */
    const char *what, *unit, *baseline;
    struct cli_bench_summary bare, ours;
    double value;         /* what is judged */
    const char *sign;     /* after the value: " x", " %" */
    double gate, stretch; /* 0: none */
    bool at_most;         /* the value is to be small */
    size_t each;          /* runs in one sample; 0: one */
    size_t warm;          /* runs of ours whose result says so */
    bool counts_warm;
};

/* What rows measure with. */
struct cli_bench {
    struct cli_bench_options options;
    size_t rounds;
    struct cli_bench_machine machine;
    struct cli_bench_engine engine;
    int pool; /* of the engine that is open */
    bool open;
    struct cli_bench_figure *figures;
    size_t count;
};
/* The engine with that pool, started where another or none is open. */
int cli_bench_use_engine(struct cli_bench *bench, int pool, struct err *err);
void cli_bench_drop_engine(struct cli_bench *bench);
/* One more figure, shown at once unless all come as JSON. */
void cli_bench_add(struct cli_bench *bench, const struct cli_bench_figure *figure);

struct cli_bench_row {
    const char *name, *what, *unit, *baseline;
    double gate, stretch;
    bool at_most;
    int (*measure)(struct cli_bench *bench, const struct cli_bench_row *row,
                   struct cli_bench_figure *figure, struct err *err);
    const struct cli_bench_job *job;
    const struct cli_bench_talk *talk; /* of rows in sessions */
};
extern const struct cli_bench_row cli_bench_rows[];
extern const size_t cli_bench_row_count;
/* Is the row meant by that word: its name, or `session` for all that are in sessions? */
bool cli_bench_row_is(const struct cli_bench_row *row, const char *word);

/* bench_cost.c */
int cli_bench_cpu(struct cli_bench *bench, const struct cli_bench_row *row,
                  struct cli_bench_figure *figure, struct err *err);
int cli_bench_rate(struct cli_bench *bench, const struct cli_bench_row *row,
                   struct cli_bench_figure *figure, struct err *err);
int cli_bench_idle(struct cli_bench *bench, const struct cli_bench_row *row,
                   struct cli_bench_figure *figure, struct err *err);
int cli_bench_watch_idle(struct cli_bench *bench, pid_t engine, struct cli_bench_figure *figure,
                         struct err *err);
/* bench_memory.c */
/* What the machine has available, over a while. */
double cli_bench_steady_kib(void);
int cli_bench_memory(struct cli_bench *bench, const struct cli_bench_row *row,
                     struct cli_bench_figure *figure, struct err *err);

/* bench_talk.c: times in a session, and what of it is timed */
int cli_bench_talk(struct cli_bench *bench, const struct cli_bench_row *row,
                   struct cli_bench_figure *figure, struct err *err);
struct cli_bench_series;
int cli_bench_take_cell(struct cli_bench_series *series, struct err *err);
int cli_bench_take_protection(struct cli_bench_series *series, struct err *err);
int cli_bench_take_death(struct cli_bench_series *series, struct err *err);
int cli_bench_take_undo(struct cli_bench_series *series, struct err *err);
int cli_bench_take_new(struct cli_bench_series *series, struct err *err);
int cli_bench_take_fork(struct cli_bench_series *series, struct err *err);
int cli_bench_take_pause(struct cli_bench_series *series, struct err *err);
/* bench_crowd.c */
int cli_bench_session_memory(struct cli_bench *bench, const struct cli_bench_row *row,
                             struct cli_bench_figure *figure, struct err *err);
int cli_bench_session_idle(struct cli_bench *bench, const struct cli_bench_row *row,
                           struct cli_bench_figure *figure, struct err *err);

/* What is said in a session, and what it is compared with. */
struct cli_bench_talk {
    int (*take)(struct cli_bench_series *series, struct err *err);
    bool guarded;       /* each sample begins when the session is protected */
    const char *before; /* the cell that makes the state */
    const char *first;  /* a cell that goes before the one that is timed */
    const char *cell;
    const char *order;  /* what else is asked of the session; NULL: nothing */
    const char *bare[4];
    char peer;          /* an order for ipykernel, in place of bare; 0: none */
    unsigned times;     /* samples of ours for one of the other */
    size_t most;        /* rounds, where the other is slow; 0: all */
    int gap_ms;
    int64_t memory_bytes;
    const char *aside_name, *aside; /* what is timed on the way; NULL: nothing */
};

/* What is run, and what it is compared with. */
struct cli_bench_job {
    const char *language, *code;
    const char *bare[4];
    const char *pool;  /* whose occupants it uses */
    int size;          /* of the engine's pools */
    unsigned times;    /* runs of ours for one bare run */
    int gap_ms;        /* before each run; 0: bursts of what waits */
    double tail_gate, tail_stretch; /* p99 over p50, at most; 0: not judged */
};

/* --- bench_show.c --- */

void cli_bench_show_head(const struct cli_bench *bench);
void cli_bench_show(const struct cli_bench_figure *figure);
bool cli_bench_is_missed(const struct cli_bench_figure *figure);
json_t *cli_bench_to_json(const struct cli_bench *bench);

#endif
