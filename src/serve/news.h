/* The news of a run as events: names and members (docs/protocol.md), for any door. Output is cut
 * between characters; output that a door has no room for is counted and told later. */
#ifndef SERVE_NEWS_H
#define SERVE_NEWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/engine.h"

struct serve_news {
    /* Takes the members, or NULL. */
    void (*say)(void *user, const char *name, json_t *members);
    bool (*has_room)(void *user);
    void *user;
    struct serve_held {
        char bytes[4]; /* an incomplete UTF-8 sequence */
        size_t len;
        uint64_t lost; /* bytes dropped and not yet reported */
    } held[2]; /* stdout, stderr */
};

void serve_news_event(struct serve_news *news, const struct engine_event *event);
/* Before the last event: the held bytes as they are, and lost ones. */
void serve_news_end(struct serve_news *news);

#endif
