/* Builds the catalog: asks all sources, checks each definition, refuses the second tool of a name.
 * Runs in the tool host's process, in any thread. */
#include "tool/host/catalog.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/own.h"
#include "tool/host/folder.h"

static struct {
    pthread_mutex_t build; /* folder and sources */
    pthread_mutex_t swap;  /* now */
    struct folder *folder;
    struct catalog *now;
} host = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, NULL, NULL };

static struct catalog *catalog_new(void)
{
    struct catalog *catalog = buf_alloc_zero(1, sizeof *catalog);
    catalog->refs = 1;
    catalog->faults = json_array();
    return catalog;
}

void catalog_open(const struct toolhost_options *options)
{
    host.folder = folder_new(options->folder, options->mcp_file, options->secrets_file);
    host.now = catalog_new();
}

void catalog_put(struct catalog *catalog)
{
    if (!catalog || atomic_fetch_sub(&catalog->refs, 1) != 1)
        return;
    for (size_t i = 0; i < catalog->count; i++) {
        tool_done(&catalog->at[i].tool);
        live_unref(catalog->at[i].live);
    }
    free(catalog->at);
    json_decref(catalog->faults);
    free(catalog);
}

struct catalog *catalog_get(void)
{
    pthread_mutex_lock(&host.swap);
    struct catalog *catalog = host.now;
    atomic_fetch_add(&catalog->refs, 1);
    pthread_mutex_unlock(&host.swap);
    return catalog;
}

static void swap(struct catalog *catalog)
{
    pthread_mutex_lock(&host.swap);
    struct catalog *before = host.now;
    host.now = catalog;
    pthread_mutex_unlock(&host.swap);
    catalog_put(before);
}

/* `taken` has the names so far, each with its source. */
static void add_tool(struct catalog *catalog, json_t *taken, struct live *live,
                     const json_t *definition)
{
    struct err err = ERR_INIT;
    own_tool tool = TOOL_INIT;
    const char *name = json_string_value(json_object_get(definition, "name"));
    own_json whole = json_copy((json_t *)(uintptr_t)definition);
    json_object_set_new(whole, "source", json_text(str_of(live->label)));
    if (catalog->count >= TOOLHOST_TOOLS_MAX) {
        err_set(&err, ERR_LIMIT, "there are more than %d tools", TOOLHOST_TOOLS_MAX);
    } else if (tool_read(whole, &tool, &err) == 0) {
        const char *other = json_string_value(json_object_get(taken, tool.name));
        if (!other) {
            json_object_set_new(taken, tool.name, json_string(live->label));
            catalog->at = buf_list_room(catalog->at, catalog->count, sizeof *catalog->at);
            catalog->at[catalog->count++] = (struct catalog_tool){ tool, live_ref(live) };
            tool = TOOL_INIT;
            return;
        }
        err_input(&err, "name", tool.name, "a name that no other tool has",
                  "the name '%s' is taken by %.200s", tool.name, other);
    }
    live_fault(catalog->faults, live->label, name, &err);
}

static void add_live(struct catalog *catalog, json_t *taken, struct live *live)
{
    own_json definitions = live_definitions(live, catalog->faults);
    size_t i;
    json_t *definition;
    json_array_foreach (definitions, i, definition)
        add_tool(catalog, taken, live, definition);
}

static int by_name(const void *a, const void *b)
{
    const struct catalog_tool *x = a, *y = b;
    return strcmp(x->tool.name, y->tool.name);
}

static void build(void)
{
    struct catalog *catalog = catalog_new();
    own_json taken = json_object();
    json_array_extend(catalog->faults, (json_t *)(uintptr_t)folder_faults(host.folder));
    for (size_t i = 0; i < folder_count(host.folder); i++)
        add_live(catalog, taken, folder_at(host.folder, i));
    if (catalog->count)
        qsort(catalog->at, catalog->count, sizeof *catalog->at, by_name);
    swap(catalog);
}

/* The slow sources among the open ones, each with a reference of ours. */
static struct live **slow_ones(size_t *out_count)
{
    struct live **list = buf_alloc_zero(folder_count(host.folder) + 1, sizeof *list);
    *out_count = 0;
    for (size_t i = 0; i < folder_count(host.folder); i++)
        if (folder_at(host.folder, i)->source.ops->is_slow)
            list[(*out_count)++] = live_ref(folder_at(host.folder, i));
    return list;
}

/* Without the lock: other threads go on with what is known. */
static void ask_slow(struct live **slow, size_t count, int64_t deadline_ns)
{
    if (!slow)
        return;
    for (size_t i = 0; i < count; i++)
        live_begin_list(slow[i], deadline_ns);
    for (size_t i = 0; i < count; i++) {
        live_await_list(slow[i], deadline_ns);
        live_unref(slow[i]);
    }
}

void catalog_refresh(bool is_full, int64_t deadline_ns)
{
    size_t count = 0;
    pthread_mutex_lock(&host.build);
    bool has_changed = folder_has_changed(host.folder);
    if (has_changed)
        folder_read(host.folder);
    struct live **slow = is_full ? slow_ones(&count) : NULL;
    if (has_changed && count == 0)
        build();
    pthread_mutex_unlock(&host.build);
    if (count) {
        ask_slow(slow, count, deadline_ns);
        pthread_mutex_lock(&host.build);
        build();
        pthread_mutex_unlock(&host.build);
    }
    free(slow);
}

const struct catalog_tool *catalog_find(const struct catalog *catalog, const char *name)
{
    size_t low = 0, high = catalog->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = strcmp(name, catalog->at[middle].tool.name);
        if (order == 0)
            return &catalog->at[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}
