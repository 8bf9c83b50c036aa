/* Tells the events of a run that has ended, from its result: for clients that follow a run which
 * need not run again. Runs in the serve process. The text may come from the store: whatever it
 * holds, only events come of it. */
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/own.h"
#include "serve/work/work.h"

static const char *const about_members[] = { "display_id", "metadata", "main" };

static void tell_value(const json_t *entry, const json_t *results,
                       void (*on_event)(void *user, const struct engine_event *event), void *user)
{
    json_int_t index = json_integer_value(json_object_get(entry, "index"));
    json_t *data = index >= 0 ? json_array_get(results, (size_t)index) : NULL;
    own_json about = json_object();
    for (size_t i = 0; i < array_len(about_members); i++) {
        json_t *value = json_object_get(entry, about_members[i]);
        if (value)
            json_object_set(about, about_members[i], value);
    }
    const struct engine_event event = { .kind = ENGINE_RESULT, .index = (size_t)index,
                                        .data = data, .about = about };
    if (data)
        on_event(user, &event);
}

static void tell_bytes(enum engine_event_kind kind, const json_t *entry,
                       void (*on_event)(void *user, const struct engine_event *event), void *user)
{
    const json_t *coded = json_object_get(entry, "base64");
    struct str text = json_get_str(entry, "text");
    size_t len = 0;
    own_str bytes = json_is_string(coded) ? base64_decode(json_str(coded), &len) : NULL;
    const struct engine_event event = { .kind = kind,
                                        .bytes = bytes ? (struct str){ bytes, len } : text };
    if (event.bytes.len > 0)
        on_event(user, &event);
}

void work_retell(struct str json, void (*on_event)(void *user, const struct engine_event *event),
                 void *user)
{
    own_json result = json_loadb(json.at, json.len, JSON_ALLOW_NUL, NULL);
    const json_t *outputs = json_object_get(result, "outputs");
    const struct engine_event start = { .kind = ENGINE_START };
    on_event(user, &start);
    for (size_t i = 0; i < json_array_size(outputs); i++) {
        const json_t *entry = json_array_get(outputs, i);
        struct str type = json_get_str(entry, "type");
        if (str_is(type, "result"))
            tell_value(entry, json_object_get(result, "results"), on_event, user);
        else if (str_is(type, "stdout") || str_is(type, "stderr"))
            tell_bytes(str_is(type, "stdout") ? ENGINE_STDOUT : ENGINE_STDERR, entry, on_event,
                       user);
    }
}
