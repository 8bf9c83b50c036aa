/* Sources in use, counted. A slow source is listed in a thread of its own, so that nobody waits for
 * it longer than he wants. Runs in the tool host's process, in any thread. */
#include "tool/host/live.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"
#include "tool/define/define.h"

struct live *live_new(const struct source *source, const char *path, struct secrets *secrets)
{
    pthread_condattr_t monotonic;
    struct live *live = buf_alloc_zero(1, sizeof *live);
    own_buf label = BUF_INIT(8192);
    buf_printf(&label, "%s %s", source->kind, path);
    label.len = str_cut_utf8(buf_str(&label), TOOL_SOURCE_MAX);
    live->refs = 1;
    live->source = *source;
    live->label = buf_strdup(buf_str(&label));
    live->secrets = secrets_ref(secrets);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&live->lock, NULL);
    pthread_cond_init(&live->listed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return live;
}

struct live *live_ref(struct live *live)
{
    atomic_fetch_add(&live->refs, 1);
    return live;
}

void live_unref(struct live *live)
{
    if (!live || atomic_fetch_sub(&live->refs, 1) != 1)
        return;
    live->source.ops->close(live->source.state);
    secrets_unref(live->secrets);
    json_decref(live->definitions);
    json_decref(live->faults);
    pthread_mutex_destroy(&live->lock);
    pthread_cond_destroy(&live->listed);
    free(live->label);
    free(live);
}

void live_fault(json_t *faults, const char *label, const char *tool, const struct err *err)
{
    json_t *fault = json_object();
    const struct {
        const char *name, *text;
    } rows[] = { { "source", label },      { "tool", tool },         { "message", err->text },
                 { "field", err->field },  { "value", err->value },  { "bound", err->bound },
                 { "hint", err->hint } };
    for (size_t i = 0; i < array_len(rows); i++)
        if (rows[i].text && *rows[i].text)
            json_object_set_new(fault, rows[i].name, json_text(str_of(rows[i].text)));
    json_array_append_new(faults, fault);
}

/* Of a source that is not slow, or in the listing thread. */
static json_t *list_now(struct live *live, int64_t deadline_ns, json_t *faults)
{
    struct err err = ERR_INIT;
    own_json own = json_array();
    json_t *definitions = live->source.ops->list(live->source.state, deadline_ns, own, &err);
    size_t i;
    json_t *fault;
    json_array_foreach (own, i, fault)
        if (!json_object_get(fault, "source"))
            json_object_set_new(fault, "source", json_text(str_of(live->label)));
    json_array_extend(faults, own);
    if (!definitions)
        live_fault(faults, live->label, NULL, &err);
    return definitions;
}

struct listing {
    struct live *live;
    int64_t deadline_ns;
};

static void *list_thread(void *given)
{
    struct listing listing = *(struct listing *)given;
    struct live *live = listing.live;
    free(given);
    json_t *faults = json_array();
    json_t *definitions = list_now(live, listing.deadline_ns, faults);
    pthread_mutex_lock(&live->lock);
    json_decref(live->definitions);
    json_decref(live->faults);
    live->definitions = definitions;
    live->faults = faults;
    live->is_listing = false;
    pthread_cond_broadcast(&live->listed);
    pthread_mutex_unlock(&live->lock);
    live_unref(live);
    return NULL;
}

void live_begin_list(struct live *live, int64_t deadline_ns)
{
    pthread_t thread;
    pthread_mutex_lock(&live->lock);
    if (!live->is_listing) {
        struct listing *listing = buf_alloc(sizeof *listing);
        *listing = (struct listing){ live_ref(live), deadline_ns };
        live->is_listing = pthread_create(&thread, NULL, list_thread, listing) == 0;
        if (live->is_listing) {
            pthread_detach(thread);
        } else {
            live_unref(live);
            free(listing);
        }
    }
    pthread_mutex_unlock(&live->lock);
}

void live_await_list(struct live *live, int64_t deadline_ns)
{
    struct timespec until = { deadline_ns / CLOCK_S, deadline_ns % CLOCK_S };
    pthread_mutex_lock(&live->lock);
    while (live->is_listing && pthread_cond_timedwait(&live->listed, &live->lock, &until) == 0)
        ;
    pthread_mutex_unlock(&live->lock);
}

json_t *live_definitions(struct live *live, json_t *faults)
{
    struct err late = ERR_INIT;
    if (!live->source.ops->is_slow)
        return list_now(live, INT64_MAX, faults);
    pthread_mutex_lock(&live->lock);
    json_t *definitions = live->definitions ? json_deep_copy(live->definitions) : NULL;
    own_json copies = live->faults ? json_deep_copy(live->faults) : json_array();
    json_array_extend(faults, copies);
    bool is_late = live->is_listing && !definitions;
    pthread_mutex_unlock(&live->lock);
    if (is_late) {
        err_set(&late, ERR_SLOW, "it did not list its tools in time");
        live_fault(faults, live->label, NULL, &late);
    }
    return definitions;
}
