/* One registry, asked by the OCI distribution API: GETs below /v2/NAME/, with tokens, redirects,
 * retries and resumed bodies. Blocks. */
#ifndef IMAGE_PULL_REMOTE_H
#define IMAGE_PULL_REMOTE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "image/pull/ref.h"

struct pull_remote;

struct pull_remote_options {
    const struct pull_ref *ref;
    struct str ca_pem; /* certificates to trust as well; .at NULL: none */
    const char *basic; /* base64 of user:password; "": none */
    bool plain_http;   /* for loopback addresses only */
    int idle_ms;       /* silence, or as good as silence, that ends a try */
    /* A try failed, and there will be another in so many seconds. May be NULL. */
    void (*on_wait)(void *user, double seconds, const char *why);
    void *user;
};

/* Asks nothing yet. The options' texts must outlive the remote. */
int pull_remote_open(const struct pull_remote_options *options, struct pull_remote **out,
                     struct err *err);
void pull_remote_close(struct pull_remote *remote);
static inline void own_pull_remote_close(struct pull_remote **remote)
{
    pull_remote_close(*remote);
}
#define own_pull_remote attr_cleanup(own_pull_remote_close) struct pull_remote *

/* One thing to get. */
struct pull_get {
    const char *path;   /* below /v2/NAME/ */
    const char *accept; /* a whole header; NULL: none */
    int64_t bytes;      /* it has exactly so many; -1: unknown */
    int64_t max_bytes;  /* more is ERR_LIMIT */
    bool resumes;       /* a broken body continues where it ended */
    /* The next bytes of the body. */
    int (*take)(void *user, struct str bytes, struct err *err);
    /* The body begins anew: forget all that was taken. */
    int (*restart)(void *user, struct err *err);
    void *user;
    int64_t have;   /* bytes taken */
    char type[128]; /* the answer's media type */
};

/* Until the whole body was taken. ERR_ABSENT: the registry does not have it. */
int pull_remote_get(struct pull_remote *remote, struct pull_get *get, struct err *err);

#endif
