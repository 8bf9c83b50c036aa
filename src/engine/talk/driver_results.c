/* Takes the values that a driver shows. Runs in the engine; every byte comes from the box. A value
 * is a bundle of MIME types. With a display id it can be updated: the new bundle takes the place of
 * the old one. */
#include "engine/talk/driver_results.h"

#include <string.h>

#include "base/json.h"

#define BUNDLE_KEYS_MAX 16
#define BUNDLE_KEY_MAX 100

static void empty(struct driver *driver)
{
    json_array_clear(driver->results);
    json_array_clear(driver->about);
    driver->results_bytes = 0;
    driver->clear_next = false;
    driver_tell(driver, DRIVER_CLEARED, 0);
}

void driver_results_done(struct driver *driver)
{
    json_decref(driver->results);
    json_decref(driver->about);
    json_decref(driver->text);
    driver->results = driver->about = driver->text = NULL;
}

bool driver_results_are_full(const struct driver *driver)
{
    return driver->results_bytes + driver->line.len > driver->results_most;
}

static bool is_base64(struct str text)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t len = text.len;
    if (len % 4 != 0)
        return false;
    while (len > 0 && text.len - len < 2 && text.at[len - 1] == '=')
        len--;
    for (size_t i = 0; i < len; i++) {
        if (!text.at[i] || !strchr(plain, text.at[i]))
            return false;
    }
    return true;
}

/* Types whose value is JSON, not text. */
static bool holds_json(const char *key, size_t len)
{
    return strcmp(key, "application/json") == 0 || strcmp(key, "e2b/chart") == 0 ||
           (strncmp(key, "application/", 12) == 0 && len > 17 &&
            strcmp(key + len - 5, "+json") == 0);
}

/* Is this an accepted MIME type with a value of the right form? */
static bool is_member(const char *key, const json_t *value)
{
    size_t len = strlen(key);
    const char *slash = strchr(key, '/');
    if (len > BUNDLE_KEY_MAX || !slash || slash == key || !slash[1])
        return false;
    for (const char *c = key; *c; c++) {
        bool plain = (*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9') || strchr("/+.-_", *c);
        if (!plain)
            return false;
    }
    if (holds_json(key, len))
        return true;
    if (!json_is_string(value))
        return false;
    bool picture = strncmp(key, "image/", 6) == 0 && strcmp(key, "image/svg+xml") != 0;
    return !picture || is_base64(json_str(value));
}

static bool is_bundle(json_t *data)
{
    const char *key;
    json_t *value;
    if (!json_is_object(data) || json_object_size(data) == 0 ||
        json_object_size(data) > BUNDLE_KEYS_MAX)
        return false;
    json_object_foreach (data, key, value) {
        if (!is_member(key, value))
            return false;
    }
    return true;
}

/* The result with this display id, the latest first; -1: none. */
static int find_shown(const struct driver *driver, const json_t *id, int before)
{
    for (int i = before - 1; i >= 0; i--) {
        if (json_equal(json_object_get(json_array_get(driver->about, (size_t)i), "display_id"), id))
            return i;
    }
    return -1;
}

/* The members beside the data, or NULL if one is wrong. */
static json_t *read_about(const json_t *line)
{
    json_t *id = json_object_get(line, "display_id"), *metadata = json_object_get(line, "metadata");
    if ((id && (!json_is_string(id) || json_string_length(id) == 0 ||
                json_string_length(id) > DRIVER_DISPLAY_ID_MAX)) ||
        (metadata && !json_is_object(metadata)))
        return NULL;
    json_t *about = json_object();
    if (id)
        json_object_set(about, "display_id", id);
    if (metadata && json_object_size(metadata) > 0)
        json_object_set(about, "metadata", metadata);
    if (json_is_true(json_object_get(line, "main")))
        json_object_set(about, "main", json_true());
    return about;
}

/* Every result with this display id gets the new data. False: there is none. */
static bool update(struct driver *driver, json_t *data, const json_t *about)
{
    const json_t *id = json_object_get(about, "display_id");
    int at = find_shown(driver, id, (int)json_array_size(driver->results));
    bool found = at >= 0;
    for (; at >= 0 && !driver_results_are_full(driver); at = find_shown(driver, id, at)) {
        json_t *old = json_array_get(driver->about, (size_t)at);
        json_t *metadata = json_object_get(about, "metadata");
        driver->results_bytes += driver->line.len - driver->result_bytes[at];
        driver->result_bytes[at] = (uint32_t)driver->line.len;
        json_array_set(driver->results, (size_t)at, data);
        json_object_del(old, "metadata");
        if (metadata)
            json_object_set(old, "metadata", metadata);
        driver_tell(driver, DRIVER_UPDATED, (size_t)at);
    }
    return found;
}

static void keep_text(struct driver *driver, const json_t *data)
{
    const json_t *plain = json_object_get(data, "text/plain");
    json_decref(driver->text);
    driver->text = NULL;
    if (!json_is_string(plain))
        return;
    struct str text = json_str(plain);
    driver->text = json_stringn(text.at, str_cut_utf8(text, DRIVER_TEXT_MAX));
}

bool driver_results_take(struct driver *driver, json_t *line)
{
    json_t *data = json_object_get(line, "data");
    own_json about = is_bundle(data) ? read_about(line) : NULL;
    bool updates = json_is_true(json_object_get(line, "update"));
    if (!about || (updates && !json_object_get(about, "display_id")))
        return false;
    if (!driver->results) {
        driver->results = json_array();
        driver->about = json_array();
    }
    if (driver->clear_next)
        empty(driver);
    bool many = json_array_size(driver->results) >= DRIVER_RESULTS_MAX;
    bool full = driver_results_are_full(driver);
    if (!full && updates && update(driver, data, about))
        return true;
    if (many || full) {
        driver->left_out++;
        return false;
    }
    driver->result_bytes[json_array_size(driver->results)] = (uint32_t)driver->line.len;
    driver->results_bytes += driver->line.len;
    json_array_append(driver->results, data);
    json_array_append(driver->about, about);
    if (json_object_get(about, "main"))
        keep_text(driver, data);
    driver_tell(driver, DRIVER_RESULT, json_array_size(driver->results) - 1);
    return true;
}

bool driver_results_clear(struct driver *driver, json_t *line)
{
    if (json_is_true(json_object_get(line, "wait")))
        driver->clear_next = true;
    else
        empty(driver);
    return true;
}
