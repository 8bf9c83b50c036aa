/* The engine as a daemon: connections on a unix socket, frames to runs, and the news of runs back
 * to frames. One process with one loop, the engine's. */
#ifndef SERVE_SERVE_H
#define SERVE_SERVE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "engine/engine.h"

struct serve;
struct records;
struct shed;
struct works;
struct acts;

/* A client, as the engine's queue sees it: the `client` of engine_begin. */
struct serve_client {
    bool (*may_go)(const struct serve_client *client); /* NULL: always */
};

/* Another door on the same loop. */
struct serve_door {
    void (*pump)(void *user);           /* after each turn of the loop */
    void (*drain)(void *user);          /* take nothing new, end what runs */
    bool (*is_quiet)(const void *user); /* everything was answered */
    bool (*is_used)(const void *user);  /* something runs */
    void (*fail)(void *user, const struct err *err); /* the engine is broken: answer all */
    void *user;
};

struct serve_options {
    struct engine *engine;
    int listener; /* a listening socket, or -1 */
    int fd;       /* one connected socket, served until its end; or -1 */
    uid_t owner;  /* whose connections are accepted */
    /* Readable: stop in order; readable again: at once; -1: none. A byte 'h' is no stop: on_hup is
     * called. */
    int stop_fd;
    void (*on_hup)(void *user); /* or NULL */
    void *user;
    const json_t *listen; /* URLs of the HTTP door, for the info frame; NULL: none */
    struct records *records; /* taken over with the engine; NULL: nothing is recorded */
    struct shed *shed; /* the owner's tools, likewise; NULL: none */
    int64_t cache_ttl_s; /* of requests that do not say */
    const char *image; /* the same; "host" without */
    int64_t idle_exit_s; /* stop in order so long after the last session; 0: never */
};

/* Begins to serve. Takes over the engine and fd on success; other descriptors stay the caller's. */
struct serve *serve_open(const struct serve_options *options, struct err *err);
/* Runs of every door begin here. */
struct works *serve_works(const struct serve *serve);
/* Every door of sessions tells it what was done. */
struct acts *serve_acts(const struct serve *serve);
void serve_set_defaults(struct serve *serve, int64_t ttl_s, const char *image);
/* The door must stay until serve_close. */
void serve_add_door(struct serve *serve, const struct serve_door *door);
/* A client inside this process, a thread: whose share of the queue its runs take, and who counts
 * them. It is heard until its end also while the engine stops. Members may be NULL. */
struct serve_guest {
    const struct serve_client *client;
    const char *owner; /* of its runs: a token's id; stays until `gone`; NULL: the user */
    const char *door; /* of its records, a constant; NULL: "task" */
    const struct request_ceilings *ceilings; /* of its requests; they stay; NULL: the user's */
    int (*begins)(void *user, const struct request *request, struct err *err); /* -1: refused */
    void (*ends)(void *user, const struct request *request, double cpu_ms);
    /* May its code call this tool of the owner's? -1: no. NULL: any. */
    int (*allows_tool)(void *user, const char *tool, struct err *err);
    void (*gone)(void *user); /* the last call */
    void *user;
};
/* Its new connection: the client's end, to be closed by the caller. -1: err, and no `gone`. */
int serve_connect(struct serve *serve, const struct serve_guest *guest, struct err *err);
/* Confines the process for good, threads included (box_confine_service): all helpers, libraries and
 * listeners must be there. Then serves until asked to stop, or until the one connection ends: 0.
 * Returns -1 if the engine can run nothing any more; every waiting client was told. */
int serve_go(struct serve *serve, struct err *err);
/* Closes the connections and the engine, and frees everything. Accepts NULL. */
void serve_close(struct serve *serve);

/* Tells the other end of `fd` why nothing can be served; best effort. */
void serve_refuse(int fd, const struct err *err);

#endif
