/* Server-sent events, in pieces of any size. Pure: no clock, no descriptor. */
#ifndef NET_SSE_H
#define NET_SSE_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/str.h"

#define NET_SSE_EVENT_MAX ((size_t)8 << 20) /* of a line, and of one event's data */

struct net_sse {
    struct buf line, name, data;
    bool has_data;
    bool after_cr;  /* a following line feed belongs to the carriage return */
    bool past_mark; /* the optional byte order mark is behind us */
    /* An event's name ("" for none) and its joined data lines. */
    void (*on_event)(void *user, struct str name, struct str data);
    void *user;
};

void net_sse_start(struct net_sse *sse, void (*on_event)(void *, struct str, struct str),
                   void *user);
/* The next bytes. 0, or -1 if a line or event exceeds the cap: reading stops then. */
int net_sse_feed(struct net_sse *sse, struct str bytes);
/* Drops an event without its blank line: it was cut off. */
void net_sse_done(struct net_sse *sse);

#endif
