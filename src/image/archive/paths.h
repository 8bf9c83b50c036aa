/* The tree that an import has built so far, in memory: which paths there are, of which kind and
 * from which layer. It decides what a layer may do before anything is written: that no path leads
 * through a link or a file, that no path stands twice with two kinds, and what an opaque folder
 * hides. Pure. */
#ifndef IMAGE_ARCHIVE_PATHS_H
#define IMAGE_ARCHIVE_PATHS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/str.h"

enum paths_kind {
    PATHS_NONE, /* removed, or never there */
    PATHS_DIR,
    PATHS_FILE,
    PATHS_LINK,
    PATHS_SKIPPED, /* a device or the like, which the image does not get */
};

struct paths_at {
    enum paths_kind kind;
    uint32_t layer;    /* that wrote it last, or something below it */
    struct str target; /* of a link; valid until the next call that adds */
};

struct paths;
struct paths *paths_new(void);
void paths_free(struct paths *paths);
/* Layers count from 1. */
void paths_next_layer(struct paths *paths);
uint32_t paths_layer(const struct paths *paths);

/* What is at this path? A folder, link or file above it is judged: a path through a link or file is
 * refused. With `make` the folders above are there from now on, as this layer's. */
int paths_find(struct paths *paths, struct str path, bool make, struct paths_at *out,
               struct err *err);
/* Put it there; everything below a path that was a folder and is none now is gone. `target` is
 * kept for links. To be called after paths_find with `make`. */
int paths_put(struct paths *paths, struct str path, enum paths_kind kind, struct str target,
              struct err *err);
/* The path and all below it are gone. */
void paths_remove(struct paths *paths, struct str path);
/* The folder hides what lower layers have below it: calls `each` with the topmost of those paths,
 * and they are gone. */
int paths_opaque(struct paths *paths, struct str path,
                 int (*each)(void *user, struct str path, struct err *err), void *user,
                 struct err *err);

static inline void paths_own_free(struct paths **paths)
{
    paths_free(*paths);
    *paths = NULL;
}
#define own_paths attr_cleanup(paths_own_free) struct paths *

#endif
