/* The strict reader of config.json. Runs in the cli and serve processes; pure. An unknown key, a
 * key twice, a wrong type and a value out of bounds are refused: nothing is guessed or clamped. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/opt.h"
#include "base/own.h"
#include "contract/config.h"
#include "contract/request.h"

#define NAME_ROOM 96

/* ---- bounds, in words ---- */

static void bound_of_number(enum config_key key, int64_t *least, int64_t *most, int64_t *scale)
{
    const struct config_row *row = config_row(key);
    bool ceiling = key >= CONFIG_CEILINGS;
    const struct limits_row *limit = &limits_rows[ceiling ? key - CONFIG_CEILINGS : 0];
    *least = ceiling ? limit->least : row->least;
    *most = ceiling ? limit->most : row->most;
    *scale = ceiling ? limit->scale : row->scale;
}

static void say_numbers(enum config_key key, char *out, size_t room)
{
    int64_t least, most, scale;
    bound_of_number(key, &least, &most, &scale);
    const char *kind = scale == 1 ? "an integer" : "a number";
    double low = (double)least / (double)scale, high = (double)most / (double)scale;
    if (most == LIMITS_NO_MOST)
        snprintf(out, room, "%s, at least %.15g", kind, low);
    else
        snprintf(out, room, "%s, %.15g to %.15g", kind, low, high);
}

static void say_profiles(char *out, size_t room)
{
    size_t len = (size_t)snprintf(out, room, "one of");
    for (size_t i = 0; i < limits_profile_count && len < room; i++)
        len += (size_t)snprintf(out + len, room - len, "%s %s", i ? "," : "",
                                limits_profiles[i].name);
}

static const char *const words[CONFIG_TYPES] = {
    [CONFIG_IS_FLAG] = "true or false",
    [CONFIG_IS_TEXT] = "a text of 1 to 4096 bytes",
    [CONFIG_IS_PATH] = "an absolute path",
    [CONFIG_IS_IMAGE] = REQUEST_IMAGE_BOUND,
    [CONFIG_IS_TEXTS] = "an array of at most 64 texts",
    [CONFIG_IS_ADDRESSES] = "an array of at most 64 texts ADDR:PORT",
    [CONFIG_IS_HOSTS] = "an array of at most 64 names such as cupel.example.org",
    [CONFIG_IS_ORIGINS] = "an array of at most 64 origins such as https://app.example.org",
};

void config_bound(enum config_key key, char *out, size_t room)
{
    const struct config_row *row = config_row(key);
    if (row->type == CONFIG_IS_INTEGER || row->type == CONFIG_IS_NUMBER)
        say_numbers(key, out, room);
    else if (row->type == CONFIG_IS_PROFILE)
        say_profiles(out, room);
    else if (row->type == CONFIG_IS_CHOICE)
        snprintf(out, room, "one of %s", row->choices);
    else
        snprintf(out, room, "%s", words[row->type]);
}

static int refuse(enum config_key key, const json_t *given, const char *why, struct err *err)
{
    char value[sizeof err->value], bound[200];
    json_brief(given, value, sizeof value);
    config_bound(key, bound, sizeof bound);
    return err_input(err, config_row(key)->name, value, bound,
                     "key '%s' is %.120s, %s: allowed is %s", config_row(key)->name, value, why,
                     bound);
}

/* ---- single values ---- */

static bool is_text(const json_t *value)
{
    struct str text = json_is_string(value) ? json_str(value) : STR_NONE;
    if (text.len == 0 || text.len > CONFIG_TEXT_MAX)
        return false;
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.at[i] < ' ' || text.at[i] == 0x7f)
            return false;
    return true;
}

static int check_number(enum config_key key, const json_t *value, struct err *err)
{
    int64_t least, most, scale;
    bound_of_number(key, &least, &most, &scale);
    if (!json_is_number(value))
        return refuse(key, value, "not a number", err);
    double stored = json_number_value(value) * (double)scale;
    if (!(stored >= (double)least))
        return refuse(key, value, "below the minimum", err);
    if (stored > (double)most || stored >= 0x1p63)
        return refuse(key, value, "above the maximum", err);
    if (scale == 1 && !json_is_integer(value))
        return refuse(key, value, "not an integer", err);
    return 0;
}

static bool is_choice(const char *choices, struct str text)
{
    for (const char *at = choices;; at++) {
        size_t len = strcspn(at, "|");
        if (str_eq(text, (struct str){ at, len }))
            return true;
        at += len;
        if (!*at)
            return false;
    }
}

static bool is_host(const char *text)
{
    size_t len = strlen(text);
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)text[i]) && (!strchr(".-_", text[i]) || i == 0))
            return false;
    return len > 0 && len <= 253;
}

static bool is_origin(const char *text)
{
    bool tls = strncmp(text, "https://", 8) == 0;
    if (!tls && strncmp(text, "http://", 7) != 0)
        return false;
    const char *host = text + (tls ? 8 : 7), *colon = strchr(host, ':');
    char name[256];
    uint64_t port = 1;
    snprintf(name, sizeof name, "%.*s", colon ? (int)(colon - host) : 255, host);
    if (colon && (!str_to_u64(str_of(colon + 1), &port) || port == 0 || port > 65535))
        return false;
    return strlen(text) < sizeof name && is_host(name);
}

static int check_member(enum config_key key, const json_t *value, struct err *err)
{
    struct config_address address;
    enum config_type type = config_row(key)->type;
    const char *text = json_string_value(value);
    if (!is_text(value))
        return refuse(key, value, "which has a member that is no text", err);
    if (type == CONFIG_IS_ADDRESSES) {
        struct err why = ERR_INIT;
        if (config_address_read(text, &address, &why) == 0)
            return 0;
        refuse(key, value, "not an address", err);
        err_hint(err, "%s", why.hint);
        return -1;
    }
    if (type == CONFIG_IS_HOSTS && !is_host(text))
        return refuse(key, value, "not a name of a host", err);
    if (type == CONFIG_IS_ORIGINS && !is_origin(text))
        return refuse(key, value, "not an origin", err);
    return 0;
}

static int check_list(enum config_key key, const json_t *value, struct err *err)
{
    size_t i;
    json_t *member;
    if (!json_is_array(value))
        return refuse(key, value, "not an array", err);
    if (json_array_size(value) > CONFIG_LIST_MAX)
        return refuse(key, value, "too long", err);
    json_array_foreach ((json_t *)(uintptr_t)value, i, member)
        if (check_member(key, member, err) < 0)
            return -1;
    return 0;
}

static int check_text(enum config_key key, const json_t *value, struct err *err)
{
    const struct config_row *row = config_row(key);
    if (!is_text(value))
        return refuse(key, value, "not a text", err);
    if (row->type == CONFIG_IS_PATH && json_string_value(value)[0] != '/')
        return refuse(key, value, "not absolute", err);
    if (row->type == CONFIG_IS_CHOICE && !is_choice(row->choices, json_str(value)))
        return refuse(key, value, "unknown", err);
    if (row->type == CONFIG_IS_PROFILE && !limits_profile_find(json_string_value(value)))
        return refuse(key, value, "unknown", err);
    if (row->type == CONFIG_IS_IMAGE && !request_image_is_ref(json_str(value)))
        return refuse(key, value, "not the name of an image", err);
    return 0;
}

static int check_flag(enum config_key key, const json_t *value, struct err *err)
{
    return json_is_boolean(value) ? 0 : refuse(key, value, "not a boolean", err);
}

static int (*const checks[CONFIG_TYPES])(enum config_key, const json_t *, struct err *) = {
    [CONFIG_IS_FLAG] = check_flag,      [CONFIG_IS_INTEGER] = check_number,
    [CONFIG_IS_NUMBER] = check_number,  [CONFIG_IS_TEXT] = check_text,
    [CONFIG_IS_PATH] = check_text,      [CONFIG_IS_CHOICE] = check_text,
    [CONFIG_IS_PROFILE] = check_text,   [CONFIG_IS_IMAGE] = check_text,
    [CONFIG_IS_TEXTS] = check_list,
    [CONFIG_IS_ADDRESSES] = check_list, [CONFIG_IS_HOSTS] = check_list,
    [CONFIG_IS_ORIGINS] = check_list,
};

static int take(struct config *config, enum config_key key, json_t *value, const char *from,
                struct err *err)
{
    own_json owned = value;
    struct config_value *at = &config->at[key];
    if (checks[config_row(key)->type](key, value, err) < 0)
        return -1;
    json_decref(at->value);
    free(at->from);
    *at = (struct config_value){ take_ptr(owned), buf_strdup(str_of(from)) };
    return 0;
}

int config_take(struct config *config, enum config_key key, json_t *value, const char *from,
                struct err *err)
{
    return take(config, key, value, from, err) < 0 ? err_wrap(err, "%.200s", from) : 0;
}

/* ---- the file ---- */

static const char *key_name(const void *table, size_t i)
{
    (void)table;
    return config_row((enum config_key)i)->name;
}

static bool is_group(const char *name)
{
    size_t len = strlen(name);
    for (enum config_key key = 0; key < CONFIG_COUNT; key++)
        if (strncmp(config_row(key)->name, name, len) == 0 && config_row(key)->name[len] == '.')
            return true;
    return false;
}

static int refuse_unknown(const char *name, const json_t *given, struct err *err)
{
    char value[sizeof err->value];
    json_brief(given, value, sizeof value);
    err_input(err, name, value, NULL, "unknown key '%s'", name);
    const char *near = opt_nearest(name, CONFIG_COUNT, key_name, NULL);
    if (near && strchr(near, '.') && !strchr(name, '.'))
        near = NULL;
    if (near && strcmp(near, name) != 0)
        err_hint(err, "did you mean '%s'?", near);
    else
        err_hint(err, "cupel config lists the keys; 'tls.cert' is member cert of the object tls");
    return -1;
}

static int take_member(struct config *config, const char *name, json_t *value, const char *path,
                       struct err *err)
{
    enum config_key key = config_find(name);
    if (key == CONFIG_COUNT)
        return refuse_unknown(name, value, err);
    if (config_row(key)->outside) {
        err_input(err, name, NULL, NULL, "key '%s' is not set in a file", name);
        err_hint(err, "programs that never read config.json need it too: set %s",
                 config_row(key)->variable);
        return -1;
    }
    return take(config, key, json_incref(value), path, err);
}

/* A group is an object in the file's object; its members are no groups. */
static int take_group(struct config *config, const char *group, const json_t *object,
                      const char *path, struct err *err)
{
    const char *name;
    json_t *value;
    if (!json_is_object(object)) {
        char given[64];
        json_brief(object, given, sizeof given);
        return err_input(err, group, given, "an object", "key '%s' is %s, not an object", group,
                         given);
    }
    json_object_foreach ((json_t *)(uintptr_t)object, name, value) {
        char whole[NAME_ROOM];
        snprintf(whole, sizeof whole, "%s.%.60s", group, name);
        if (take_member(config, whole, value, path, err) < 0)
            return -1;
    }
    return 0;
}

static int take_root(struct config *config, const json_t *root, const char *path, struct err *err)
{
    const char *name;
    json_t *value;
    if (!json_is_object(root))
        return err_input(err, "", NULL, "an object", "it holds no JSON object");
    json_object_foreach ((json_t *)(uintptr_t)root, name, value) {
        char whole[NAME_ROOM];
        snprintf(whole, sizeof whole, "%.60s", name);
        int rc = is_group(whole)      ? take_group(config, whole, value, path, err)
                 : strchr(whole, '.') ? refuse_unknown(whole, value, err)
                                      : take_member(config, whole, value, path, err);
        if (rc < 0)
            return -1;
    }
    return 0;
}

int config_take_file(struct config *config, struct str text, const char *path, struct err *err)
{
    own_json root = json_read(text, CONFIG_FILE_MAX, err);
    return !root || take_root(config, root, path, err) < 0 ? err_wrap(err, "%.200s", path) : 0;
}

int config_check(const struct config *config, struct err *err)
{
    bool cert = config_is_set(config, CONFIG_TLS_CERT);
    if (cert != config_is_set(config, CONFIG_TLS_KEY))
        return err_input(err, cert ? "tls.key" : "tls.cert", NULL, NULL,
                         "'%s' is set and '%s' is not: TLS needs both",
                         cert ? "tls.cert" : "tls.key", cert ? "tls.key" : "tls.cert");
    return 0;
}
