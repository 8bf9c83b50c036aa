/* One program of the host that works for a build: pip, npm, apt. It runs below a minder, which ends
 * it and all of its descendants when the caller says so, or dies. The program has no terminal, no
 * capability, no descriptor but its streams; with Landlock it writes below one folder alone, and
 * reads the host's system folders, that folder and what is named. It has the host's network. */
#ifndef IMAGE_MAKE_CHILD_H
#define IMAGE_MAKE_CHILD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#define MAKE_SAID_MAX ((size_t)64 << 10) /* the end of what a program said */
#define MAKE_STAGE_BYTES (INT64_C(16) << 30)
#define MAKE_STAGE_ENTRIES 1000000

/* All programs of a build share this. */
struct make_scene {
    int stage_fd; /* the folder below which they write; it stays the caller's */
    const char *stage; /* its path */
    char *const *env; /* their whole environment, NULL at the end */
    char *const *reads; /* files and folders that they may read besides; those that are not
                             * there are left out */
    int64_t due_ns; /* of the monotonic clock: they are ended then */
    int64_t timeout_s; /* what the caller named, for the words */
    int stop_fd; /* readable: end them. -1: none */
    int64_t bytes_max; /* in the stage; 0: MAKE_STAGE_BYTES */
    void (*said)(void *user, struct str bytes); /* everything that they write. NULL: nobody hears */
    void *user;
    bool bare; /* out: this kernel has no Landlock */
};

/* Run it to its end in the stage's folder `cwd` ("." for the stage). `said` gets the end of what it
 * wrote to stdout and stderr, `out_status` its status as waitpid gives it. Errors are of the
 * running: ERR_SLOW at its time, ERR_CANCELLED on a stop, ERR_LIMIT for a stage that is full,
 * ERR_HOST. */
int make_child_run(struct make_scene *scene, const char *cwd, const char *const *argv,
                   struct buf *said, int *out_status, struct err *err);

/* The same; a status other than 0 is ERR_HOST with the last lines that `tool` said. */
int make_child_must(struct make_scene *scene, const char *cwd, const char *tool,
                    const char *const *argv, struct err *err);
/* The same, with its standard output apart, up to the buffer's maximum. */
int make_child_ask(struct make_scene *scene, const char *cwd, const char *tool,
                   const char *const *argv, struct buf *answer, struct err *err);

/* The lines in which a tool says why it failed, or the last ones, on one line of text. */
void make_child_why(struct str said, char *out, size_t room);

#endif
