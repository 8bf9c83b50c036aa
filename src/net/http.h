/* One HTTP exchange at a time, through libcurl. Blocks, but wakes up for a cancel. */
#ifndef NET_HTTP_H
#define NET_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/err.h"
#include "base/str.h"
#include "net/address.h"

struct net_http; /* connections that can be used again; one thread at a time */

enum net_outcome {
    NET_OK,        /* complete, with any status */
    NET_REFUSED,   /* no address of the host may be asked */
    NET_UNREACHED, /* no byte came */
    NET_BROKEN,    /* it broke after some bytes */
    NET_TIMEOUT,
    NET_CANCELLED,
    NET_TOO_LONG,
};

/* The addresses that the request may connect to. Each is checked after the name is resolved, and
 * the connection goes to the checked address itself. */
enum net_reach {
    NET_REACH_ALL,     /* no check; proxies of the environment are used */
    NET_REACH_PRIVATE, /* NET_PUBLIC and NET_PRIVATE (net/address.h); no proxy */
    NET_REACH_PUBLIC,  /* NET_PUBLIC; no proxy */
};

struct net_call {
    const char *url;
    const char *method; /* NULL: GET without a body, else POST */
    const char *const *headers; /* "name: value"; a NULL ends them */
    struct str body; /* .at NULL: none */
    enum net_reach reach;
    bool inflate; /* takes a compressed body; max_bytes counts what comes out */
    int64_t deadline_ms; /* of base/clock.h; 0: none */
    int cancel_fd; /* readable: give up; -1: none */
    int connect_ms, first_byte_ms, idle_ms;
    /* Less than slow_bytes of the body in slow_ms: NET_TIMEOUT. 0: any pace will do. */
    int slow_ms;
    size_t slow_bytes;
    size_t max_bytes;
    /* A header of the response; name.at NULL: a new response begins. May be NULL. */
    void (*on_header)(void *user, struct str name, struct str value);
    /* Bytes of the body. 0: continue; 1: nothing more is needed; -1: stop. */
    int (*on_bytes)(void *user, struct str bytes);
    void *user;
    /* The response: */
    int status;       /* of the last response; 0: none */
    bool settled;     /* on_bytes needs nothing more */
    bool hopeless;    /* another try cannot help */
    size_t bytes;
    enum net_place place; /* of the address that answered; NET_NEVER: none did */
    char detail[256]; /* why the exchange is incomplete; any bytes */
};

/* ERR_HOST if libcurl is missing. Reads the certificates of SSL_CERT_FILE now: later the file may
 * be unreadable. */
int net_http_open(struct net_http **out, struct err *err);
/* Connections of its own, for another thread. */
int net_http_again(const struct net_http *http, struct net_http **out, struct err *err);
void net_http_close(struct net_http *http);
/* Trusts these certificates as well, PEM, instead of the one file of the system's. */
int net_http_trust(struct net_http *http, struct str pem, struct err *err);

/* Redirects are never followed. */
enum net_outcome net_http_do(struct net_http *http, struct net_call *call);

/* The time of a date in a header, -1 for none. */
time_t net_http_date(const char *text);

#endif
