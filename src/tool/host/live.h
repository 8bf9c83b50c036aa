/* Sources in use: opened once, shared by the list of sources and the calls that run. Runs in the
 * tool host's process, in any thread. */
#ifndef TOOL_HOST_LIVE_H
#define TOOL_HOST_LIVE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "tool/host/secrets.h"
#include "tool/host/source.h"

struct live {
    atomic_int refs;
    struct source source;
    char *label; /* "command /etc/cupel/tools/x.json": the definitions' "source" */
    struct secrets *secrets;
    /* Of a slow source: its last list, made by a thread of its own. */
    pthread_mutex_t lock;
    pthread_cond_t listed;
    bool is_listing;
    json_t *definitions, *faults;
};

/* Takes the source over. */
struct live *live_new(const struct source *source, const char *path, struct secrets *secrets);
struct live *live_ref(struct live *live);
void live_unref(struct live *live);

/* Start a list of a slow source, unless one is being made. */
void live_begin_list(struct live *live, int64_t deadline_ns);
void live_await_list(struct live *live, int64_t deadline_ns);
/* The definitions, a new array or NULL; faults are appended. Does not wait: of a slow source, those
 * of its last list. */
json_t *live_definitions(struct live *live, json_t *faults);

/* Append one fault; label and tool may be NULL. */
void live_fault(json_t *faults, const char *label, const char *tool, const struct err *err);

#endif
