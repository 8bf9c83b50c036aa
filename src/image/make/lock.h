/* The lock of an image: every package that a build added, with its exact version and hash. As JSON
 * it is a member of the manifest, what `cupel images lock` prints, and what `add --lock` reads.
 *   {"schema":1, "base":"host" | "sha256:HEX", "python":"3.11", "platform":"x86_64-glibc",
 *    "pip":[{"name","version","sha256"}], "npm":[{"path","version","integrity","name"?}],
 *    "apt":[{"name","version","sha256"}]}
 * A lock file is outside text. Pure. */
#ifndef IMAGE_MAKE_LOCK_H
#define IMAGE_MAKE_LOCK_H

#include <jansson.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/str.h"
#include "image/make/want.h"

#define MAKE_LOCK_BYTES ((size_t)16 << 20)
#define MAKE_LOCK_ITEMS 5000 /* of one kind */
#define MAKE_PATH_ROOM 1024
#define MAKE_HASH_ROOM 112 /* "sha512-" and 64 bytes in base64 */

struct make_locked {
    char name[MAKE_PATH_ROOM]; /* of npm the path: "node_modules/a/node_modules/b" */
    char version[MAKE_VERSION_ROOM];
    char hash[MAKE_HASH_ROOM]; /* 64 hexadecimal digits, or npm's "sha512-BASE64" */
    char alias[MAKE_NAME_ROOM]; /* of npm: the package's own name where its folder has another */
};

struct make_lock {
    char base[80];      /* "host" or "sha256:HEX" */
    char python[16];    /* "3.11"; "": no package of Python's */
    char platform[32];  /* "x86_64-glibc" */
    struct make_locked *items[MAKE_KINDS];
    size_t counts[MAKE_KINDS];
};
void make_lock_done(struct make_lock *lock);
#define own_make_lock attr_cleanup(make_lock_done) struct make_lock

/* ERR_INPUT names the member and its number. */
int make_lock_read(struct str text, struct make_lock *out, struct err *err);
int make_lock_from_json(const json_t *value, struct make_lock *out, struct err *err);
json_t *make_lock_to_json(const struct make_lock *lock);

/* Checks one more, and adds it. */
int make_lock_add(struct make_lock *lock, enum make_kind kind, struct str name, struct str version,
                  struct str hash, struct err *err);
/* The package's own name, for npm. */
int make_lock_alias(struct make_locked *item, struct str name, struct err *err);
/* In the order of names, so that the same packages give the same text. ERR_INPUT where one name is
 * there twice. */
int make_lock_sort(struct make_lock *lock, struct err *err);
const struct make_locked *make_lock_find(const struct make_lock *lock, enum make_kind kind,
                                         const char *name);

/* The name of the package at npm's path: "@s/b" of "node_modules/a/node_modules/@s/b". */
const char *make_npm_name(const char *path);

#endif
