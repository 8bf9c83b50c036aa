/* The curator's walks, and what tells its entries apart: shared by its files, seen by
 * no one else. */
#ifndef BOX_FILES_CURATOR_WALK_H
#define BOX_FILES_CURATOR_WALK_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include "box/files/tree.h"

#define CURATOR_WORK_MAX 1000000 /* entries that are met in one restore or forget */

/* One directory on the way down, with what corresponds to it. */
struct curator_level {
    struct tree_reader read; /* of `here`, or of `snapshot` */
    int here;                /* in /workspace */
    int snapshot;
    int base;                /* -1: none */
    struct stat was;         /* of `here`, when it was entered */
    char name[NAME_MAX + 1];
};

/* What is done with each entry, and with a directory after its last one: 0 or errno. */
struct curator_walk {
    int (*entry)(struct curator_level *level, const char *name);
    int (*leave)(struct curator_level *level);
    bool reads_snapshot;
};

struct curator_places {
    int root, store;
};
extern struct curator_places curator_places;

/* Walk over everything beneath /workspace or the snapshot. base: BOX_STATES is none. */
int curator_walk(const struct curator_walk *walk, uint32_t snapshot, uint32_t base);
/* From an entry's callback: go into this directory next. Takes the descriptors over,
 * and closes them where it cannot. */
int curator_go_into(const char *name, int here, int snapshot, int base, const struct stat *was);
/* From there, too: the path of an entry, from the top. 0 or ENAMETOOLONG. */
int curator_path(const char *name, char out[PATH_MAX]);

/* The snapshot's own descriptor, or -1. */
int curator_open_snapshot(uint32_t snapshot);
/* A file or folder of the store, also one whose mode does not let its owner read. */
int curator_open_kept(int dir, const char *name, int flags);
/* Sockets, and what else can be neither copied nor made: a snapshot notes its inode. */
bool curator_is_special(mode_t mode);

/* Keys are not believed: each file is compared. */
extern bool curator_compares;
/* Is what lies in /workspace, by its key, what the store has of it? */
bool curator_unchanged(const struct stat *here, const struct stat *kept);
/* The same but for the key. */
bool curator_looks_same(const struct stat *here, const struct stat *kept);
/* Write a key into a file of the store: of `here`, if it is settled, else 0. */
int curator_set_key(int kept, const struct stat *here);

bool curator_same_time(struct timespec one, struct timespec other);

#endif
