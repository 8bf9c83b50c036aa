/* The curator's walks and comparisons. Only the curator's files use this header. */
#ifndef BOX_FILES_CURATOR_WALK_H
#define BOX_FILES_CURATOR_WALK_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include "box/files/tree.h"

#define CURATOR_WORK_MAX 1000000 /* entries visited in one restore or forget */

/* One directory on the way down, with its counterparts. */
struct curator_level {
    struct tree_reader read; /* of `here`, or of `snapshot` */
    int here;                /* in /workspace */
    int snapshot;
    int base;                /* -1: none */
    struct stat was;         /* of `here`, before it was entered */
    char name[NAME_MAX + 1];
};

/* Callbacks for each entry, and for a directory after its last entry: 0 or errno. */
struct curator_walk {
    int (*entry)(struct curator_level *level, const char *name);
    int (*leave)(struct curator_level *level);
    bool reads_snapshot;
};

struct curator_dirs {
    int root, store;
};
extern struct curator_dirs curator_dirs;

/* Walk over everything beneath /workspace or the snapshot. base BOX_STATES: none. */
int curator_walk(const struct curator_walk *walk, uint32_t snapshot, uint32_t base);
/* From an entry's callback: enter this directory next. Owns the descriptors, also on failure. */
int curator_go_into(const char *name, int here, int snapshot, int base, const struct stat *was);
/* From an entry's callback: the path of an entry from the top. 0 or ENAMETOOLONG. */
int curator_path(const char *name, char out[PATH_MAX]);

/* A descriptor of the snapshot's folder, or -1. */
int curator_open_snapshot(uint32_t snapshot);
/* Open a file or folder of the store, even if its mode forbids its owner to read. */
int curator_open_kept(int dir, const char *name, int flags);
/* Sockets and other types that can be neither copied nor made: a snapshot notes the inode. */
bool curator_is_special(mode_t mode);

/* Ignore keys: compare each file. */
extern bool curator_compares;
/* Is the file in /workspace unchanged, by its key? */
bool curator_unchanged(const struct stat *here, const struct stat *kept);
/* The same without the key. */
bool curator_looks_same(const struct stat *here, const struct stat *kept);
/* Write the key of `here` into a file of the store; 0 if `here` is NULL or too young. */
int curator_set_key(int kept, const struct stat *here);

bool curator_same_time(struct timespec one, struct timespec other);

#endif
