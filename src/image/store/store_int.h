/* Shared by the files of the store: paths, the table of inodes, the lines of a list, walks.
 * Everything here runs in a process with the uid of the store's owner. */
#ifndef IMAGE_STORE_STORE_INT_H
#define IMAGE_STORE_STORE_INT_H

#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/hash.h"
#include "image/store/store.h"

#define IMAGE_DEPTH_MAX 128 /* parts of a path */
#define IMAGE_PART_MAX 255  /* NAME_MAX of every Linux file system that has hard links */
#define IMAGE_MANIFEST_MAX (64u << 20)
#define IMAGE_MANIFEST_SCHEMA 1
#define IMAGE_KEY_MAX (HASH_HEX_ROOM + 40) /* "ab/HASH.444.1700000000.2" */
#define IMAGE_COPIES_MAX 999 /* of one file: each has as many hard links as can be */

/* --- paths.c: names below a folder, without ever following a link --- */

/* ERR_INPUT of field "path" for one that is not relative, plain and bounded. */
int image_path_check(struct str path, struct err *err);
/* As err_sys; a full disk gets a hint. -1. */
int image_store_sys(struct err *err, const char *fmt, ...) attr_printf(2, 3);
/* Open a folder below `dirfd` by a path that passed the check. With `make` the missing ones are
 * made, each reported to `made` (NULL: nobody). -1 with errno: ELOOP or ENOTDIR for a link or a
 * file on the way. */
typedef void (*image_path_made)(void *user, int parent_fd, const char *name);
int image_path_open(int dirfd, struct str path, bool make, image_path_made made, void *user);
/* Remove a name and all below it. How many names went, or -1 with errno; 0 for none there. */
int64_t image_path_remove(int parent_fd, const char *name);
/* All below an open folder. */
int64_t image_path_empty(int dirfd);
/* Make the folder if it is missing, and open it. -1 with errno. */
int image_path_folder(int dirfd, const char *name, mode_t mode);
/* The names in a folder in the order of their bytes; heap. */
struct image_names {
    char **at;
    size_t count;
};
#define IMAGE_NAMES_INIT ((struct image_names){ 0 })
void image_names_done(struct image_names *names);
#define own_image_names attr_cleanup(image_names_done) struct image_names
int image_names_read(int dirfd, struct image_names *out);
/* Write a file by a temporary name below `work`, let it reach the disk, and rename it. */
int image_path_write(int work, int dirfd, const char *name, struct str text, struct err *err);

bool image_hex_valid(const char *text);

/* --- inodes.c: what is known of a file or folder of a build, by its inode --- */

struct image_inode {
    uint64_t number; /* 0: free */
    int64_t mtime_s;
    unsigned char hash[HASH_BYTES]; /* of a folder: zero */
};
struct image_inodes {
    struct image_inode *at;
    size_t count, room;
};
void image_inodes_done(struct image_inodes *inodes);
void image_inodes_set(struct image_inodes *inodes, uint64_t number, const char *hex,
                      int64_t mtime_s);
const struct image_inode *image_inodes_find(const struct image_inodes *inodes, uint64_t number);
void image_hex_write(const unsigned char bytes[HASH_BYTES], char out[HASH_HEX_ROOM]);

/* --- list.c: the entries of a tree, one line each --- */

enum image_item_kind { IMAGE_DIR, IMAGE_FILE, IMAGE_LINK };
struct image_item {
    enum image_item_kind kind;
    struct str path;          /* relative; no NUL */
    struct str target;        /* IMAGE_LINK */
    char hash[HASH_HEX_ROOM]; /* IMAGE_FILE */
    unsigned mode;            /* IMAGE_FILE: 0444 or 0555 */
    int64_t size, mtime_s;    /* of a link both are 0 */
};
void image_item_write(const struct image_item *item, struct buf *out);
/* From a line without its newline; `room` holds path and target. */
int image_item_read(struct str line, struct buf *room, struct image_item *out);
/* Add to the digest of the tree: no times, no compiled Python. */
void image_item_hash(const struct image_item *item, struct hash *hash);
/* The order of a walk: "a/b" before "a.c". */
int image_item_order(struct str a, struct str b);

/* Reading a whole list. */
struct image_list {
    FILE *file;
    struct hash hash; /* of the bytes so far */
    char *line;
    struct buf room;
};
int image_list_open(const struct image_store *store, const char *hex, struct image_list *out,
                    struct err *err);
void image_list_close(struct image_list *list);
#define own_image_list attr_cleanup(image_list_close) struct image_list
#define IMAGE_LIST_INIT ((struct image_list){ .room = BUF_INIT(4 * PATH_MAX) })
/* 1, 0 at the end, -1 for a line that is none. The item lives until the next call. */
int image_list_next(struct image_list *list, struct image_item *out, struct err *err);

/* --- walk.c --- */

/* Called for every entry, folders before what is in them, in a fixed order. `parent_fd` and `name`
 * reach it; `st` is its own. -1 ends the walk. */
typedef int (*image_walk_see)(void *user, int parent_fd, const char *name, const struct stat *st,
                              struct str path, struct err *err);
/* Called after all that is in a folder. NULL: not. */
typedef int (*image_walk_left)(void *user, int dirfd, const struct stat *st, struct err *err);
struct image_walk {
    image_walk_see see;
    image_walk_left left;
    void *user;
};
int image_walk(int dirfd, const struct image_walk *walk, struct err *err);
/* A walk's entry as an item: kind, path, times, and a link's target in `target`. The hash stays
 * empty. ERR_INPUT for a device, pipe or socket. */
int image_walk_item(int parent_fd, const char *name, const struct stat *st, struct str path,
                    char target[PATH_MAX], struct image_item *out, struct err *err);
/* The sum of a regular file's bytes. */
int image_walk_hash(int parent_fd, const char *name, struct str path, char out[HASH_HEX_ROOM],
                    struct err *err);

/* --- the build --- */

struct image_build {
    const struct image_store *store;
    char id[24];
    int work, tree, files, stage, log, lock;
    int from_fd;        /* held, so that prune leaves it */
    struct buf parent;  /* path of parent_fd: the folder of the last entry */
    int parent_fd;
    struct image_inodes inodes;
    int64_t entries;
    nlink_t links_max; /* of one stored file; 0: as many as the file system allows */
    bool on_host;
    json_t *from;       /* its manifest, or NULL */
    unsigned char *bytes;
};
#define IMAGE_BUILD_BYTES (256u << 10)

/* The folder of an entry; *out_name its last part. The descriptor stays the build's. */
int image_build_parent(struct image_build *build, struct str path, char out_name[NAME_MAX + 1],
                       struct err *err);
/* Make way for an entry: remove what is there. */
int image_build_clear(struct image_build *build, const char *name, struct err *err);
int image_build_count(struct image_build *build, struct err *err);
/* Let the entry `name` of the last parent be one of the stored files of this key, if there is one
 * with a link to spare. 1, 0 if there is none, -1. */
int image_file_reuse(struct image_build *build, const char *name, const char *hex, unsigned mode,
                     int64_t mtime_s, int64_t size, struct err *err);
/* Copy by links: the tree of another image. */
int image_build_copy(struct image_build *build, const struct image_entry *from, struct err *err);

/* --- open.c, names.c, find.c --- */

/* A new folder in work/, locked. */
int image_work_make(const struct image_store *store, char out_id[24], struct err *err);
void image_work_remove(const struct image_store *store, const char *id, int work);
/* Remove the files with one link, which no image has. Bytes freed. */
int64_t image_files_sweep(const struct image_store *store);
/* One process at a time changes which images there are. The descriptor, or -1. */
int image_store_turn(const struct image_store *store, struct err *err);
/* In work/: the digest of an image that is being given its name. */
#define IMAGE_UNNAMED "unnamed"
/* Takes back an image whose build ended before its name was there. */
void image_store_undo_unnamed(const struct image_store *store, int work);
/* Trees and lists without a manifest; the caller has the turn. */
void image_store_sweep_trees(const struct image_store *store, int work);

int image_name_read(const struct image_store *store, const char *name,
                    char out_hex[IMAGE_HEX_ROOM]);
int image_manifest_read(const struct image_store *store, const char *hex, json_t **out,
                        struct err *err);
bool image_manifest_there(const struct image_store *store, const char *hex);
/* The reason why an image is refused, "" if it is not. */
void image_bad_read(const struct image_store *store, const char *hex, char *out, size_t room);

#endif
