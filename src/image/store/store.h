/* The store of images: <state>/images. Every process that writes here has the uid of the state
 * folder's owner (as root: the door's). Layout, all relative to <state>/images:
 *
 *   lock                   flock: shared while something is built, exclusive for prune
 *   files/ab/HASH.MODE.T   one regular file each: SHA-256 of the content, permissions, mtime
 *   trees/HEX/             the whole root of an image, merged: real folders and links, and files
 *                          that are hard links into files/. Never changed once it is there.
 *   lists/HEX              every entry of the tree with its hash, one line each: what verify checks
 *   manifests/HEX.json     facts of the image; written last, so that an image without it is none
 *   names/NAME             the HEX that a name leads to
 *   bad/HEX                what `verify` found; the image is refused
 *   work/ID/               a build in progress, locked by flock; swept when the lock is free
 *
 * trees/ and everything below is readable by everybody (0755, 0444 or 0555): boxes have uids of
 * their own, and the folders above keep others out. HEX is a SHA-256 over the base, the environment
 * and the list of entries in a fixed order, without times and without compiled Python.
 *
 * An image stands alone, or on the host ("base": "host"): then its tree has only what it adds, and
 * a box sees it over the host's /usr. Its digest to the outside covers the host's digest too:
 * image_store_digest. */
#ifndef IMAGE_STORE_STORE_H
#define IMAGE_STORE_STORE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/str.h"

#define IMAGE_HEX_ROOM 65
#define IMAGE_NAME_ROOM 64 /* a-z A-Z 0-9 . _ -, begins with a letter or digit; never "host" */
#define IMAGE_ENTRIES_MAX 2000000 /* entries of one image */

struct image_store {
    int dirfd; /* <state>/images */
};
#define IMAGE_STORE_INIT ((struct image_store){ .dirfd = -1 })
void image_store_close(struct image_store *store);
#define own_image_store attr_cleanup(image_store_close) struct image_store

/* Open the store in the state folder. With `make` its folders are made, and builds whose process
 * has died are swept. Without it a missing store is ERR_INPUT "no images yet". */
int image_store_open(int state_dirfd, bool make, struct image_store *out, struct err *err);

/* One image as it is stored. */
struct image_entry {
    char name[IMAGE_NAME_ROOM]; /* "" if it was found by digest alone and has none */
    char hex[IMAGE_HEX_ROOM];   /* of the tree */
    bool on_host;               /* "base": "host" */
    json_t *manifest; /* {"schema":1,"digest":"sha256:HEX","base":"none"|"host","source",
                                 *  "created","files","bytes","env":{...},"lock":{...}|null,...} */
};
#define IMAGE_ENTRY_INIT ((struct image_entry){ 0 })
void image_entry_done(struct image_entry *entry);
#define own_image_entry attr_cleanup(image_entry_done) struct image_entry

/* By "NAME" or "sha256:HEX". ERR_INPUT of field "image" for one that is not there (the hint names
 * near names), or that `verify` found changed. */
int image_store_find(const struct image_store *store, const char *name, struct image_entry *out,
                     struct err *err);
/* The same, also of an image that `verify` found changed. */
int image_store_find_any(const struct image_store *store, const char *name, struct image_entry *out,
                         struct err *err);
/* Keep an image in place while it is used: a shared lock on the folder of its tree, whose
 * descriptor is given. Without one, prune may remove a tree between find and use. */
int image_store_hold(const struct image_store *store, const struct image_entry *entry, int *out_fd,
                     struct err *err);
/* The names alone: an array of texts. One may lead nowhere. */
int image_store_names(const struct image_store *store, json_t **out, struct err *err);
/* All that have a name, by name: an array of {"name","digest","base","bytes","files","created",
 * "source","changed"}, and "languages" if the manifest has them. "changed" is null, or what verify
 * found. */
int image_store_list(const struct image_store *store, json_t **out, struct err *err);
bool image_store_name_valid(const char *name);

/* --- building --- */

struct image_build; /* opaque: a folder in work/ */

/* Begin: an empty tree, or a copy by links of `from` (NULL: empty). */
int image_build_start(struct image_store *store, const struct image_entry *from,
                      struct image_build **out, struct err *err);
/* Without a finish before: removes all that it made. NULL is allowed. */
void image_build_close(struct image_build *build);

/* A folder of the build's own, outside the tree, on the same file system, to unpack things into:
 * a descriptor that the build owns. Its path is in image_build_stage_path. */
int image_build_stage(struct image_build *build, int *out_dirfd, struct err *err);

/* One entry. Paths are relative, without "." and "..", at most 4,095 bytes and 128 parts; every
 * folder above is made (0755). A later entry replaces an earlier one of its path with all below it,
 * but a folder over a folder keeps what is in it.
 * Links above a path are never followed: such a path is refused. Permissions become 0755 for
 * folders, 0555 or 0444 for files. */
int image_build_dir(struct image_build *build, struct str path, int64_t mtime_s, struct err *err);
/* `read` fills a buffer and returns how much, 0 at the end, -1 with err set. */
typedef int64_t (*image_build_read)(void *user, void *buffer, size_t room, struct err *err);
int image_build_file(struct image_build *build, struct str path, unsigned mode, int64_t mtime_s,
                     image_build_read read, void *user, struct err *err);
int image_build_symlink(struct image_build *build, struct str path, struct str target,
                        struct err *err);
/* Another name for an earlier regular file of this tree. */
int image_build_link(struct image_build *build, struct str path, struct str earlier,
                     struct err *err);
/* A whiteout: remove the path and all below it; nothing there is no error. */
int image_build_remove(struct image_build *build, struct str path, struct err *err);
/* An opaque folder: remove all below it that came from `from` or before this call. */
int image_build_empty(struct image_build *build, struct str path, struct err *err);
/* Move a whole folder of the disk (below a stage) into the tree at `at`. Regular files, folders and
 * links alone; anything else is refused. `mtime_s` for all of them, so that builds repeat. */
int image_build_take(struct image_build *build, int folder_fd, struct str at, int64_t mtime_s,
                     struct err *err);

/* Hash the list, move the tree to its place (one that is there already is kept, unless it was found
 * changed), write list and manifest, and let `name` lead to it. `facts` are added to the manifest;
 * its "base" and "env" are part of HEX. Without "base" it is that of `from`, else "none". The build
 * is still to be closed. */
int image_build_finish(struct image_build *build, const char *name, const json_t *facts,
                       struct image_entry *out, struct err *err);

/* --- care --- */

/* The name alone goes; what it led to stays until prune. */
int image_store_remove(struct image_store *store, const char *name, struct err *err);
/* Remove trees without a name and files without a tree. A tree that an engine uses
 * (image_store_hold) stays. Fills in what was freed. ERR_BUSY while something is built. */
int image_store_prune(struct image_store *store, int64_t *out_bytes, int64_t *out_images,
                      struct err *err);
/* Hash every file of an image again. One that differs is ERR_INPUT that names the path, and the
 * image is marked: image_store_find refuses it from now on. */
int image_store_verify(struct image_store *store, const struct image_entry *entry, struct err *err);

/* The space on the disk: {"images":[{"name","tree","own_bytes","shared_bytes"}],"total_bytes",
 * "unused_bytes"}; the name is null without one. An image's own bytes count its folders, the total
 * does not. */
int image_store_usage(const struct image_store *store, json_t **out, struct err *err);

/* "sha256:HEX" as the outside sees it: of an image on the host it covers `host_digest` as well. */
void image_store_digest(const struct image_entry *entry, const char *host_digest, char out[72]);

#endif
