/* `cupel images`: the verbs, and what they share. A verb is one file with one function, and one row
 * of the table in images_commands.c. */
#ifndef CLI_IMAGES_IMAGES_H
#define CLI_IMAGES_IMAGES_H

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/opt.h"
#include "cli/cli.h"
#include "image/store/store.h"

struct engine;

/* --- the store, for a command --- */

struct cli_images {
    char path[PATH_MAX]; /* of the state folder */
    int state; /* -1: there is none */
    struct image_store store; /* dirfd -1: no image was ever made */
    struct engine *engine; /* for verbs that ask for one; NULL: it did not start */
    struct err engine_err; /* then: why */
};
#define CLI_IMAGES_INIT ((struct cli_images){ .state = -1, .store = IMAGE_STORE_INIT })
/* Open the state folder as the caller. */
int cli_images_open_state(struct cli_images *images, struct err *err);
/* Drop the rights, and open the store; with `make` it is made and swept. Without a store the other
 * verbs go on with none. */
int cli_images_open_store(struct cli_images *images, bool make, struct err *err);
void cli_images_close(struct cli_images *images);

/* The digest of image `host`, from the cache of the state folder if nothing changed. */
int cli_images_host_digest(const struct cli_images *images, char out[72], struct err *err);
/* By "NAME", "NAME@sha256:HEX" or "sha256:HEX"; also one that is refused. */
int cli_images_find(const struct cli_images *images, const char *name, struct image_entry *out,
                    struct err *err);
/* Text of a manifest for a terminal, in a buffer that the next call but three reuses. */
const char *cli_images_plain(const char *text);

/* --- verbs whose options are --json, -q and -h --- */

struct cli_images_options {
    bool json, quiet, help;
    struct opt_operands names;
};
extern const struct opt cli_images_options_table[];
extern const size_t cli_images_options_rows;

struct cli_images_verb {
    const char *name, *operands, *about; /* of --help */
    size_t least, most; /* operands */
    const char *notes; /* at the end of --help; NULL: none */
    bool make; /* the store is made and swept */
    bool engine; /* an engine is opened, which drops the rights */
    int (*host)(const char *name, bool json); /* for "host" and "host@..."; NULL: as any name */
    /* The exit code, or -1 with an err. Rights are dropped. */
    int (*go)(struct cli_images *images, const struct cli_images_options *options, struct err *err);
};
int cli_images_do(const struct cli_images_verb *verb, int argc, char **argv);

int cli_images_ls(int argc, char **argv);
int cli_images_show(int argc, char **argv);
int cli_images_lock(int argc, char **argv);
int cli_images_rm(int argc, char **argv);
int cli_images_prune(int argc, char **argv);
int cli_images_du(int argc, char **argv);
int cli_images_verify(int argc, char **argv);
int cli_images_extras(int argc, char **argv);

/* `cupel images` alone: the host's digest and content, found again; then the stored images. */
int cli_images_all(bool json);
/* Image `host` as an object, by an engine, which drops the rights. */
int cli_images_host(const char *name, json_t **out, struct err *err);
void cli_images_print_host(const json_t *manifest);

#endif
