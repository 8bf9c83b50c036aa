/* URLs taken apart and joined, by libcurl: the parser that connects is the one that is asked. */
#ifndef NET_URL_H
#define NET_URL_H

#include <stdbool.h>

#include "base/err.h"
#include "net/address.h"

#define NET_URL_ROOM 8192

struct net_url {
    char text[NET_URL_ROOM]; /* absolute, without a fragment */
    char scheme[8];          /* http or https */
    char host[260];          /* a name, or an address; of version 6 in brackets */
    char port[8];
};

/* `reference` (absolute, or relative to `base`, which may be NULL). ERR_INPUT for a text that is no
 * URL of http or https, that holds a user, or that is too long; ERR_HOST without libcurl. */
int net_url_read(const char *base, const char *reference, struct net_url *out, struct err *err);
/* Same scheme, host and port? */
bool net_url_same_origin(const struct net_url *a, const struct net_url *b);
/* The place of an address that stands for the host; NET_PUBLIC for a name. */
enum net_place net_url_place(const struct net_url *url);

#endif
