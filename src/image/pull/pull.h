/* An image of a registry into the store. */
#ifndef IMAGE_PULL_PULL_H
#define IMAGE_PULL_PULL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "image/pull/ref.h"
#include "image/store/store.h"

#define PULL_BYTES_MAX ((int64_t)16 << 30) /* loaded, without another limit */
#define PULL_IDLE_MS 30000

struct pull_options {
    const struct pull_ref *ref;
    const char *name;     /* for the image in the store */
    struct str ca_pem;    /* certificates to trust as well; .at NULL: none */
    struct str auth_file; /* .at NULL: none */
    bool plain_http;      /* for loopback addresses only */
    int idle_ms;
    int64_t max_bytes;
    /* Each may be NULL. Bytes that came, of all: */
    void (*on_bytes)(void *user, int64_t done, int64_t total);
    /* Another try comes in so many seconds: */
    void (*on_wait)(void *user, double seconds, const char *why);
    /* All has come; layers are unpacked: */
    void (*on_unpack)(void *user, int64_t bytes);
    void *user;
};

struct pull_report {
    int64_t loaded_bytes;
    size_t layers;
    bool was_there; /* the same manifest was pulled before: nothing was loaded but it */
};

/* The process has the rights that it keeps: what comes is not trusted. Nothing stays of a pull that
 * fails. */
int pull_image(struct image_store *store, const struct pull_options *options,
               struct image_entry *out, struct pull_report *report, struct err *err);

#endif
