/* A set of changes: what a run did to its view of a folder, and what it found there. Written by the
 * command that ran, read by `cupel diff` and `cupel apply`. Names, targets and contents come from a
 * box and are hostile. */
#ifndef FOLDER_CHANGES_H
#define FOLDER_CHANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/str.h"

#define CHANGES_JSON_MAX (64u << 20)
#define CHANGES_MAX 200000
#define CHANGES_PATH_MAX 4095 /* bytes */

enum change_kind {
    CHANGE_NOTHING, /* there is no entry; as a change: it was removed */
    CHANGE_FILE,
    CHANGE_LINK,
    CHANGE_FOLDER,
    CHANGE_OTHER, /* of the original alone */
    CHANGE_KINDS
};
extern const char *const change_kind_names[CHANGE_KINDS];

/* An entry of the folder. */
struct change_entry {
    enum change_kind kind;
    uint32_t mode; /* permissions, of a file or folder */
    uint64_t size; /* of a file */
    int64_t mtime_ns, ctime_ns; /* of the original */
    char sum[HASH_HEX_ROOM]; /* of a file, or "" */
    char *target; /* of a link; heap */
};

struct change {
    char *path;
    size_t len;
    struct change_entry was, is;
    bool moved; /* the original changed while the code ran: it is not what the code saw */
    int number; /* the name of the file's content in the set, from 0 on; -1: none */
};

struct changes {
    char run[32];
    char *folder; /* its path then */
    int64_t began_ns;
    uint64_t device, inode; /* of the folder */
    struct change *at; /* sorted by path */
    size_t count;
    struct changes_skipped {
        char *path, *why;
        size_t len;
    } *skipped;
    size_t skipped_count;
    bool cut; /* not all changes were looked at */
};
#define CHANGES_INIT ((struct changes){ .folder = NULL })
void changes_done(struct changes *changes);
#define own_changes attr_cleanup(changes_done) struct changes

/* A new change at the end; the caller sorts. */
struct change *changes_add(struct changes *changes, struct str path);
void changes_skip(struct changes *changes, struct str path, const char *why);
void changes_sort(struct changes *changes);
/* By its path in a sorted set; NULL. */
struct change *changes_find(const struct changes *changes, struct str path);
static inline struct str change_path(const struct change *change)
{
    return (struct str){ change->path, change->len };
}
/* Relative, of 1 to CHANGES_PATH_MAX bytes, each part a name of at most 255. */
bool changes_path_is_clean(struct str path);
/* Would this link, at this place, lead out of the folder? An absolute one does. */
bool changes_leads_out(struct str path, struct str target);
bool change_entry_same(const struct change_entry *a, const struct change_entry *b);

/* The manifest. ERR_INPUT for one that is no manifest of a set. */
json_t *changes_to_json(const struct changes *changes);
int changes_read(struct str text, struct changes *out, struct err *err);

#endif
