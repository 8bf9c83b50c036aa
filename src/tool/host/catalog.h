/* The tools that the host knows: a snapshot that calls hold while they run, and the making of the
 * next one. Runs in the tool host's process, in any thread. */
#ifndef TOOL_HOST_CATALOG_H
#define TOOL_HOST_CATALOG_H

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "tool/define/define.h"
#include "tool/host/host.h"
#include "tool/host/live.h"

struct catalog_tool {
    struct tool tool;
    struct live *live;
};

struct catalog {
    atomic_int refs;
    struct catalog_tool *at; /* sorted by name */
    size_t count;
    json_t *faults;
};

/* Before the first thread. */
void catalog_open(const struct toolhost_options *options);
/* Make a snapshot, when files have changed or is_full: a full one also asks the slow sources, and
 * waits for them until the deadline. */
void catalog_refresh(bool is_full, int64_t deadline_ns);
/* The newest snapshot. */
struct catalog *catalog_get(void);
void catalog_put(struct catalog *catalog);
/* NULL: there is none of that name. */
const struct catalog_tool *catalog_find(const struct catalog *catalog, const char *name);

#endif
