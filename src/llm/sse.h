/* Server-sent events, as they come in pieces of any size. Pure: no clock, no descriptor. */
#ifndef LLM_SSE_H
#define LLM_SSE_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/str.h"

#define LLM_SSE_EVENT_MAX ((size_t)8 << 20) /* a line, and the data of one event */

struct llm_sse {
    struct buf line, name, data;
    bool has_data;
    bool after_cr;  /* a line feed would belong to the carriage return before it */
    bool past_mark; /* the byte order mark that may be first is behind */
    /* An event's name ("" where it has none) and its data lines, joined. */
    void (*on_event)(void *user, struct str name, struct str data);
    void *user;
};

void llm_sse_start(struct llm_sse *sse, void (*on_event)(void *, struct str, struct str),
                   void *user);
/* The next bytes. 0, or -1 where a line or an event passes the cap: then no more is read. */
int llm_sse_feed(struct llm_sse *sse, struct str bytes);
/* An event without its blank line was cut off, and is dropped. */
void llm_sse_done(struct llm_sse *sse);

#endif
