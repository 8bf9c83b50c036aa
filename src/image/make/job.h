/* Shared by the three makers of a build: pip.c, npm.c and apt.c. Each resolves names to a lock,
 * fetches what the lock says into the stage, and moves it into the image. */
#ifndef IMAGE_MAKE_JOB_H
#define IMAGE_MAKE_JOB_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "image/look.h"
#include "image/make/child.h"
#include "image/make/lock.h"
#include "image/make/want.h"
#include "image/store/store.h"

#define MAKE_MTIME_S 315532800 /* of every file: 1980, the first year that a wheel can hold */
#define MAKE_WORDS_MAX (MAKE_WANTS_MAX + 64)
#define MAKE_HOST_PYTHON "/usr/bin/python3"
#define MAKE_MODULES "usr/local/lib/node_modules"

struct make_job {
    struct make_scene *scene;
    const struct make_wants *wants;
    bool locked;                /* `lock` was given: nothing is resolved */
    struct make_lock lock;
    struct image_build *build;
    bool on_host;
    const char *tree;           /* path of the tree below, or NULL */
    int tree_fd;                /* the same, or -1 */
    struct image_facts facts;   /* of a standalone image */
    char site[IMAGE_LOOK_PATH]; /* where Python's packages go, "usr/local/lib/..." */
    char machine[16];           /* "x86_64" */
    bool verbose;
    void (*step)(void *user, const char *what); /* a new part of the work; may be NULL */
    void *user;
};

/* A command line; the texts stay their owners'. */
struct make_words {
    const char *at[MAKE_WORDS_MAX + 1];
    size_t count;
};
void make_words_add(struct make_words *words, const char *word);
#define make_words_of(...) make_words_from((const char *const[]){ __VA_ARGS__, NULL })
struct make_words make_words_from(const char *const *list);

size_t make_job_count(const struct make_job *job, enum make_kind kind); /* of wants */
void make_job_step(const struct make_job *job, const char *what);

/* Small files in the stage. */
int make_stage_folder(const struct make_job *job, const char *path, struct err *err);
int make_stage_write(const struct make_job *job, const char *path, struct str text,
                     struct err *err);
int make_stage_read(const struct make_job *job, const char *path, size_t most, struct buf *out,
                    struct err *err);
int make_stage_open(const struct make_job *job, const char *path, struct err *err);
/* Move a folder of the stage into the image; one that is not there is none. */
int make_stage_take(const struct make_job *job, const char *path, const char *at, struct err *err);
/* The sum of a file in an open folder. */
int make_stage_hash(int dirfd, const char *name, char out[HASH_HEX_ROOM], struct err *err);
/* Remove a file or folder below an open folder. Nothing there is no error. */
int make_stage_remove(int dirfd, const char *name);

/* Each is called where there is something of its kind. */
int make_pip_facts(struct make_job *job, struct err *err);
int make_pip_resolve(struct make_job *job, struct err *err);
int make_pip_add(struct make_job *job, struct err *err);
int make_npm_resolve(struct make_job *job, struct err *err);
int make_npm_add(struct make_job *job, struct err *err);
int make_apt_resolve(struct make_job *job, struct err *err);
int make_apt_add(struct make_job *job, struct err *err);

/* Of the tree below, everything that a distribution of this name installed: it is replaced. */
int make_pip_replace(struct make_job *job, const char *name, struct err *err);

#endif
