/* Would a supplied value be stored in clear? Runs wherever something is replayed. */
#include "replay/supplied.h"

#include <string.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/own.h"
#include "store/redact/redact.h"

/* *out: the redaction of the store that made the markers; NULL: it made none yet. */
static int open_redact(struct db *db, struct redact **out, struct err *err)
{
    struct db_query *query = db_ask(db, "SELECT value FROM meta WHERE name = 'redact_key'", err);
    int rc = query ? db_next(query, err) : -1;
    struct str key = rc > 0 ? db_bytes(query, 0) : STR_NONE;
    if (key.len == REDACT_KEY_BYTES)
        *out = redact_open(/* extra= */ NULL, (const unsigned char *)key.at, err);
    if (rc > 0)
        db_stop(query);
    return rc < 0 || (key.len == REDACT_KEY_BYTES && !*out) ? -1 : 0;
}

int supplied_open(struct supplied *supplied, struct db *db, const json_t *secrets, struct err *err)
{
    const char *hash;
    json_t *value;
    *supplied = (struct supplied){ NULL, NULL };
    if (json_object_size(secrets) == 0)
        return 0;
    if (open_redact(db, &supplied->redact, err) < 0)
        return -1;
    supplied->others = json_object();
    json_object_foreach ((json_t *)(uintptr_t)secrets, hash, value)
        if (supplied->redact && json_string_length(value) > 0 &&
            !redact_is(supplied->redact, json_str(value), hash))
            json_object_set(supplied->others, hash, value);
    return 0;
}

void supplied_done(struct supplied *supplied)
{
    redact_close(supplied->redact);
    json_decref(supplied->others);
}

/* Standard input that is no UTF-8. */
static bool holds_coded(const json_t *value, struct str what)
{
    size_t len;
    own_str bytes = json_is_string(value) ? base64_decode(json_str(value), &len) : NULL;
    return bytes && memmem(bytes, len, what.at, what.len);
}

static bool holds(const json_t *value, struct str what)
{
    const char *name;
    json_t *member;
    size_t i;
    if (json_is_string(value))
        return memmem(json_string_value(value), json_string_length(value), what.at, what.len);
    json_object_foreach ((json_t *)(uintptr_t)value, name, member)
        if (memmem(name, strlen(name), what.at, what.len) ||
            (strcmp(name, "stdin_base64") == 0 && holds_coded(member, what)) ||
            (strcmp(name, "base64") != 0 && holds(member, what))) /* bytes of files stay */
            return true;
    json_array_foreach (value, i, member)
        if (holds(member, what))
            return true;
    return false;
}

int supplied_check(const struct supplied *supplied, const json_t *request, struct err *err)
{
    const char *hash;
    json_t *value;
    if (json_object_size(supplied->others) == 0)
        return 0;
    own_json stored = json_deep_copy(request);
    redact_json(supplied->redact, stored);
    json_object_foreach (supplied->others, hash, value) {
        if (!holds(stored, json_str(value)))
            continue;
        err_set(err, ERR_CONFLICT,
                "the value for '%.8s' is not the one that was hidden, and it would be stored in "
                "clear: nothing there looks like a secret",
                hash);
        err_hint(err, "supply the value that was hidden, or run the code anew with the other one");
        return -1;
    }
    return 0;
}
