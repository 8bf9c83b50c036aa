/* Reading and writing locks. Runs in the cli process, after the drop of rights; pure. */
#include "image/make/lock.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "image/make/want.h"

#define MODULES "node_modules/"

void make_lock_done(struct make_lock *lock)
{
    for (size_t kind = 0; kind < MAKE_KINDS; kind++)
        free(lock->items[kind]);
    *lock = (struct make_lock){ 0 };
}

static bool is_hex(struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!strchr("0123456789abcdef", text.at[i]) || !text.at[i])
            return false;
    return text.len == 64;
}

static bool is_integrity(struct str text)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    /* 64 bytes are 86 letters and two fillers. */
    if (text.len != 7 + 88 || memcmp(text.at, "sha512-", 7) != 0)
        return false;
    for (size_t i = 7; i < 7 + 86; i++)
        if (!text.at[i] || !strchr(letters, text.at[i]))
            return false;
    return text.at[93] == '=' && text.at[94] == '=';
}

const char *make_npm_name(const char *path)
{
    const char *name = path;
    for (const char *at = path; (at = strstr(at, MODULES)); at += sizeof MODULES - 1)
        name = at + sizeof MODULES - 1;
    return name;
}

/* "node_modules/NAME" once or more, with "/" between. */
static bool is_npm_path(struct str path)
{
    const struct str modules = STR(MODULES);
    while (path.len > modules.len && memcmp(path.at, modules.at, modules.len) == 0) {
        path = (struct str){ path.at + modules.len, path.len - modules.len };
        const char *next = memmem(path.at, path.len, "/" MODULES, modules.len + 1);
        struct str name = { path.at, next ? (size_t)(next - path.at) : path.len };
        if (!make_name_valid(MAKE_NPM, name))
            return false;
        if (!next)
            return true;
        path = (struct str){ next + 1, path.len - name.len - 1 };
    }
    return false;
}

static bool is_name(enum make_kind kind, struct str name)
{
    if (name.len >= MAKE_PATH_ROOM)
        return false;
    return kind == MAKE_NPM ? is_npm_path(name) : make_name_valid(kind, name);
}

static void put(char *to, struct str text)
{
    memcpy(to, text.at, text.len);
    to[text.len] = '\0';
}

int make_lock_add(struct make_lock *lock, enum make_kind kind, struct str name, struct str version,
                  struct str hash, struct err *err)
{
    struct make_locked item = { 0 };
    char shown[120], python[MAKE_NAME_ROOM];
    const char *member = make_kind_names[kind];
    if (lock->counts[kind] == MAKE_LOCK_ITEMS)
        return err_input(err, member, NULL, "at most 5000 packages",
                         "a lock has at most %d packages of one kind", MAKE_LOCK_ITEMS);
    str_plain(shown, sizeof shown, name);
    if (!is_name(kind, name))
        return err_input(err, member, shown, "the name of a package",
                         "package %zu of '%s' has no good name: '%s'", lock->counts[kind] + 1,
                         member, shown);
    if (!make_version_valid(version))
        return err_input(err, member, shown,
                         "letters, digits and . + ! - _ ~ :", "the version of '%s' in '%s' is none",
                         shown, member);
    if (!(kind == MAKE_NPM ? is_integrity(hash) : is_hex(hash)))
        return err_input(err, member, shown,
                         kind == MAKE_NPM ? "sha512- and 88 characters" : "64 hexadecimal digits",
                         "the hash of '%s' in '%s' is none", shown, member);
    if (kind == MAKE_PIP && make_name_python(name, python))
        name = str_of(python);
    put(item.name, name);
    put(item.version, version);
    put(item.hash, hash);
    lock->items[kind] = buf_list_room(lock->items[kind], lock->counts[kind], sizeof item);
    lock->items[kind][lock->counts[kind]++] = item;
    return 0;
}

int make_lock_alias(struct make_locked *item, struct str name, struct err *err)
{
    char shown[120];
    str_plain(shown, sizeof shown, name);
    if (!make_name_valid(MAKE_NPM, name))
        return err_input(err, "npm", shown, "the name of a package",
                         "'%.200s' of 'npm' has no good name: '%s'", item->name, shown);
    put(item->alias, name);
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct make_locked *)a)->name, ((const struct make_locked *)b)->name);
}

int make_lock_sort(struct make_lock *lock, struct err *err)
{
    for (size_t kind = 0; kind < MAKE_KINDS; kind++) {
        struct make_locked *items = lock->items[kind];
        if (lock->counts[kind] > 1)
            qsort(items, lock->counts[kind], sizeof *items, by_name);
        for (size_t i = 1; i < lock->counts[kind]; i++)
            if (strcmp(items[i - 1].name, items[i].name) == 0)
                return err_input(err, make_kind_names[kind], items[i].name, "each package once",
                                 "'%s' is in '%s' twice", items[i].name, make_kind_names[kind]);
    }
    return 0;
}

const struct make_locked *make_lock_find(const struct make_lock *lock, enum make_kind kind,
                                         const char *name)
{
    for (size_t i = 0; i < lock->counts[kind]; i++)
        if (strcmp(lock->items[kind][i].name, name) == 0)
            return &lock->items[kind][i];
    return NULL;
}

/* ---- JSON ---- */

static const struct {
    const char *name, *hash;
} members[MAKE_KINDS] = {
    [MAKE_PIP] = { "name", "sha256" },
    [MAKE_NPM] = { "path", "integrity" },
    [MAKE_APT] = { "name", "sha256" },
};

static int take_kind(const json_t *value, enum make_kind kind, struct make_lock *out,
                     struct err *err)
{
    const json_t *list = json_object_get(value, make_kind_names[kind]);
    size_t i;
    json_t *item;
    if (list && !json_is_array(list))
        return err_input(err, make_kind_names[kind], NULL, "an array", "'%s' of a lock is no array",
                         make_kind_names[kind]);
    json_array_foreach ((json_t *)(uintptr_t)list, i, item) {
        const json_t *alias = kind == MAKE_NPM ? json_object_get(item, "name") : NULL;
        if (json_object_size(item) != (alias ? 4 : 3))
            return err_input(err, make_kind_names[kind], NULL, "an object of three texts",
                             "package %zu of '%s' must have '%s', 'version' and '%s' alone", i + 1,
                             make_kind_names[kind], members[kind].name, members[kind].hash);
        if (make_lock_add(out, kind, json_get_str(item, members[kind].name),
                          json_get_str(item, "version"), json_get_str(item, members[kind].hash),
                          err) < 0)
            return -1;
        if (alias &&
            make_lock_alias(&out->items[kind][out->counts[kind] - 1], json_str(alias), err) < 0)
            return -1;
    }
    return 0;
}

static bool is_plain(struct str text, size_t room)
{
    for (size_t i = 0; i < text.len; i++)
        if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789._:-", text.at[i]) || !text.at[i])
            return false;
    return text.len < room;
}

static int take_text(const json_t *value, const char *name, char *to, size_t room, struct err *err)
{
    struct str text = json_get_str(value, name);
    const json_t *member = json_object_get(value, name);
    if ((member && !json_is_string(member)) || !is_plain(text, room))
        return err_input(err, name, NULL, "a short text of a-z 0-9 . _ : -",
                         "'%s' of a lock is none", name);
    put(to, text);
    return 0;
}

static int check_members(const json_t *value, struct err *err)
{
    static const char *const known[] = { "schema", "base", "python", "platform", "pip", "npm",
                                         "apt" };
    const json_t *schema = json_object_get(value, "schema");
    const char *name;
    json_t *member;
    if (!json_is_object(value) || !json_is_integer(schema) || json_integer_value(schema) != 1)
        return err_input(err, "schema", NULL, "1", "a lock is an object with \"schema\": 1");
    json_object_foreach ((json_t *)(uintptr_t)value, name, member) {
        bool found = false;
        for (size_t i = 0; i < array_len(known); i++)
            found |= strcmp(known[i], name) == 0;
        if (!found)
            return err_input(err, name, NULL, "schema, base, python, platform, pip, npm, apt",
                             "a lock has no member '%.80s'", name);
    }
    return 0;
}

int make_lock_from_json(const json_t *value, struct make_lock *out, struct err *err)
{
    own_make_lock lock = { 0 };
    if (check_members(value, err) < 0 ||
        take_text(value, "base", lock.base, sizeof lock.base, err) < 0 ||
        take_text(value, "python", lock.python, sizeof lock.python, err) < 0 ||
        take_text(value, "platform", lock.platform, sizeof lock.platform, err) < 0)
        return -1;
    for (enum make_kind kind = 0; kind < MAKE_KINDS; kind++)
        if (take_kind(value, kind, &lock, err) < 0)
            return -1;
    if (make_lock_sort(&lock, err) < 0)
        return -1;
    *out = lock;
    lock = (struct make_lock){ 0 };
    return 0;
}

int make_lock_read(struct str text, struct make_lock *out, struct err *err)
{
    own_json value = json_read(text, MAKE_LOCK_BYTES, err);
    if (!value)
        return -1;
    return make_lock_from_json(value, out, err);
}

json_t *make_lock_to_json(const struct make_lock *lock)
{
    json_t *out = json_pack("{s:i, s:s, s:s, s:s}", "schema", 1, "base", lock->base, "python",
                            lock->python, "platform", lock->platform);
    for (size_t kind = 0; kind < MAKE_KINDS; kind++) {
        json_t *list = json_array();
        for (size_t i = 0; i < lock->counts[kind]; i++) {
            const struct make_locked *item = &lock->items[kind][i];
            json_array_append_new(
                list, json_pack("{s:s, s:s, s:s, s:s*}", members[kind].name, item->name, "version",
                                item->version, members[kind].hash, item->hash, "name",
                                kind == MAKE_NPM && item->alias[0] ? item->alias : NULL));
        }
        json_object_set_new(out, make_kind_names[kind], list);
    }
    return out;
}
