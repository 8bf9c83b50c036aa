/* Where sets of changes lie: one folder for each run in `changes` of the state folder, with
 * `set.json` and a file for each content. A set is written under another name and takes its own by
 * a rename, so that a set with a run's name is whole; older ones are removed. */
#ifndef FOLDER_SETS_H
#define FOLDER_SETS_H

#include "base/buf.h"
#include "folder/changes.h"

#define SETS_MAX 20 /* sets that are kept */
#define SETS_NAME_ROOM 40

struct sets_new {
    int shelf; /* the caller's */
    int dir;   /* holds a lock, as long as the set is being written */
    char name[SETS_NAME_ROOM];
};
#define SETS_NEW_INIT ((struct sets_new){ .shelf = -1, .dir = -1 })

/* Removes what dead writers left, then begins a set. */
int sets_begin(int shelf, struct sets_new *out, struct err *err);
int sets_add(struct sets_new *set, int number, struct str content, struct err *err);
/* Writes the manifest: from now on the set is there. Removes the oldest of too many. */
int sets_end(struct sets_new *set, const struct changes *changes, struct err *err);
/* Removes what was written, unless the set is there; also for one that never began. */
void sets_drop(struct sets_new *set);

/* Opens the set of a run, or for NULL the newest one of the folder with this device and inode.
 * *out_dir is its folder. ERR_ABSENT with a hint where there is none. */
int sets_open(int shelf, const char *run, uint64_t device, uint64_t inode, struct changes *out,
              int *out_dir, struct err *err);
/* The content of a changed file, with its size and sum checked. */
int sets_read(int set, const struct change *change, struct buf *out, struct err *err);
/* Is it a run's name, or "last"? */
bool sets_is_name(const char *text);

#endif
