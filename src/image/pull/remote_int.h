/* The parts of a remote: exchanges, tokens, retries. */
#ifndef IMAGE_PULL_REMOTE_INT_H
#define IMAGE_PULL_REMOTE_INT_H

#include "base/buf.h"
#include "image/pull/challenge.h"
#include "image/pull/remote.h"
#include "net/http.h"
#include "net/url.h"

#define PULL_TOKEN_MAX ((size_t)16 << 10)

struct pull_remote {
    struct pull_remote_options options;
    struct net_http *http;
    struct net_url base;    /* of the registry */
    struct buf bearer;      /* the token; "" none */
    bool use_basic;         /* the registry asked for it */
    bool proxied;           /* connections may go to a proxy of the environment */
    enum net_place place;   /* of the registry's own address */
};

/* The answer to one request. */
struct pull_answer {
    int status;
    char location[NET_URL_ROOM];
    char type[128];
    struct pull_challenge challenge;
    double retry_after_s; /* -1: none */
    int64_t range_first;  /* of content-range; -1: none */
    struct buf said;      /* the beginning of a body that was not asked for */
};
#define PULL_ANSWER_INIT \
    ((struct pull_answer){ .retry_after_s = -1, .range_first = -1, .said = BUF_INIT(4096) })
void pull_answer_done(struct pull_answer *answer);
#define own_pull_answer attr_cleanup(pull_answer_done) struct pull_answer

enum pull_try {
    PULL_DONE,
    PULL_AGAIN, /* err says why; the answer may say when */
    PULL_FAILED,
};

/* One request, without redirects. `authorization` is a whole header or NULL. A body of status 200
 * or 206 goes to `get`. PULL_DONE for any status. */
enum pull_try pull_exchange(struct pull_remote *remote, const struct net_url *url,
                            const char *authorization, struct pull_get *get,
                            struct pull_answer *answer, struct err *err);
/* A request to the registry, with its redirects, and a token if it asks for one. PULL_DONE only for
 * a whole body. */
enum pull_try pull_request(struct pull_remote *remote, struct pull_get *get,
                           struct pull_answer *answer, struct err *err);
/* A new token, or from now on the password itself, as the registry asks for it. */
int pull_token_renew(struct pull_remote *remote, const struct pull_challenge *challenge,
                     struct err *err);

#endif
