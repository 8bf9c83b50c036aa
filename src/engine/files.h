/* Files into a box before it starts, and out of it after its end, by the porter:
 * one conversation at a time, driven by the engine's loop. */
#ifndef ENGINE_FILES_H
#define ENGINE_FILES_H

#include "base/err.h"
#include "base/loop.h"
#include "contract/request.h"
#include "contract/result.h"

struct files_entry {
    char *path;
    size_t len;
    uint32_t type;
    uint64_t size;
};

struct files_job {
    struct loop *loop;
    struct loop_source porter; /* its socket, ours to close; fd -1: no job */
    struct loop_timer patience;
    const struct request *request;
    struct result *result; /* NULL: files go in; else they come out into it */
    size_t next;           /* the file that is under way */
    bool listing, cut; /* cut: the porter could not list everything */
    struct files_entry *entries;
    size_t count, room;
    uint64_t bytes_taken, files_taken;
    bool bytes_hit, count_hit; /* a cap was met on the way out */
    struct err err;
    /* Called once, last, unless the job is dropped before: err tells. */
    void (*done)(struct files_job *job);
};
#define FILES_JOB_INIT ((struct files_job){ .porter.fd = -1, .patience.at_ns = LOOP_NEVER })

/* Give every input file of the request to the porter behind `sock`, which is taken
 * over. A file that does not fit on the box's disk is the request's fault:
 * ERR_INPUT. */
void files_put(struct files_job *job, struct loop *loop, int sock, const struct request *request,
               void (*done)(struct files_job *job));
/* List what is in the dead box, fetch new and changed files within the caps into
 * the result, and say of the rest why it was left. */
void files_collect(struct files_job *job, struct loop *loop, int sock,
                   const struct request *request, struct result *result,
                   void (*done)(struct files_job *job));
/* Let go of everything; also in the middle, or where there is no job. */
void files_drop(struct files_job *job);

#endif
