/* The tokens file as JSON:
 *   {"schema": 1, "tokens": [{"id", "name", "sha256", "created_at", "expires_at", "operator",
 *    "quota": {"runs_at_once", ..., "limits": {...}, "profiles": [...], "images", "tools"}}]}
 * Strict: a mistyped key would silently lift a bound. Runs in the cli and the serve process;
 * pure. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/json.h"
#include "store/tokens.h"

#define SCHEMA 1

/* --- times --- */

void tokens_write_time(int64_t at, char out[TOKENS_TIME_ROOM])
{
    time_t seconds = (time_t)at;
    struct tm tm;
    if (!gmtime_r(&seconds, &tm) || tm.tm_year > 9999 - 1900 ||
        strftime(out, TOKENS_TIME_ROOM, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
        out[0] = 0;
}

/* It must read back as the same text: "2026-02-31" is no time. */
bool tokens_read_time(struct str text, int64_t *out)
{
    char copy[TOKENS_TIME_ROOM] = "", again[TOKENS_TIME_ROOM] = "";
    struct tm tm = { 0 };
    if (text.len != strlen("2026-11-16T15:46:06Z"))
        return false;
    memcpy(copy, text.at, text.len);
    const char *end = strptime(copy, "%Y-%m-%dT%H:%M:%SZ", &tm);
    if (!end || *end)
        return false;
    int64_t at = timegm(&tm);
    if (at < 0)
        return false;
    tokens_write_time(at, again);
    *out = at;
    return strcmp(copy, again) == 0;
}

/* --- one bound --- */

static int refuse(const char *field, const json_t *value, const char *bound, struct err *err)
{
    char brief[80];
    json_brief(value, brief, sizeof brief);
    return err_input(err, field, brief, bound, "'%s' is %s; it must be %s", field,
                     value ? brief : "missing", bound);
}

int tokens_quota_set(struct tokens_quota *quota, enum tokens_quota_id id, const json_t *value,
                     struct err *err)
{
    const struct tokens_quota_row *row = &tokens_quota_rows[id];
    char field[64], bound[64];
    if (json_is_integer(value) && json_integer_value(value) >= 0 &&
        json_integer_value(value) <= row->most) {
        quota->value[id] = json_integer_value(value);
        return 0;
    }
    snprintf(field, sizeof field, "quota.%s", row->name);
    snprintf(bound, sizeof bound, "an integer from 0 to %lld", (long long)row->most);
    return refuse(field, value, bound, err);
}

int tokens_quota_set_limit(struct tokens_quota *quota, const char *name, const json_t *value,
                           struct err *err)
{
    enum limits_id id;
    int64_t stored;
    if (limits_read(name, value, &id, &stored, err) == 0) {
        quota->limits[id] = stored;
        return 0;
    }
    char field[96], bound[sizeof err->bound], hint[sizeof err->hint];
    snprintf(field, sizeof field, "quota.limits.%.60s", name);
    memcpy(bound, err->bound, sizeof bound);
    memcpy(hint, err->hint, sizeof hint);
    if (*bound)
        return refuse(field, value, bound, err);
    err_input(err, field, NULL, NULL, "unknown key '%s'", field);
    err_hint(err, "%s", hint);
    return -1;
}

static bool is_word(struct str word)
{
    if (word.len == 0 || word.len > TOKENS_WORD_MAX)
        return false;
    for (size_t i = 0; i < word.len; i++)
        if ((unsigned char)word.at[i] <= ' ' || word.at[i] == 0x7f)
            return false;
    return true;
}

int tokens_quota_add_word(struct tokens_quota *quota, enum tokens_list_id id, const json_t *word,
                          struct err *err)
{
    char field[64];
    snprintf(field, sizeof field, "quota.%s", tokens_list_names[id]);
    if (!json_is_string(word) || !is_word(json_str(word)))
        return refuse(field, word, "a name of 1 to 200 bytes without spaces", err);
    if (id == TOKENS_PROFILES && !limits_profile_find(json_string_value(word)))
        return refuse(field, word, "the name of a profile: baseline, analysis or strict", err);
    if (!quota->lists[id])
        quota->lists[id] = json_array();
    if (json_array_size(quota->lists[id]) >= TOKENS_LIST_MAX)
        return refuse(field, word, "one of at most 64 names", err);
    json_array_append(quota->lists[id], (json_t *)(uintptr_t)word);
    return 0;
}

/* --- reading --- */

static int set_limits(struct tokens_quota *quota, json_t *limits, struct err *err)
{
    const char *name;
    json_t *value;
    if (!json_is_object(limits))
        return refuse("quota.limits", limits, "an object", err);
    json_object_foreach (limits, name, value)
        if (tokens_quota_set_limit(quota, name, value, err) < 0)
            return -1;
    return 0;
}

static int set_list(struct tokens_quota *quota, enum tokens_list_id id, const json_t *list,
                    struct err *err)
{
    size_t i;
    json_t *word;
    if (!json_is_array(list)) {
        char field[64];
        snprintf(field, sizeof field, "quota.%s", tokens_list_names[id]);
        return refuse(field, list, "a list of names", err);
    }
    quota->lists[id] = json_array(); /* an empty one allows none */
    json_array_foreach (list, i, word)
        if (tokens_quota_add_word(quota, id, word, err) < 0)
            return -1;
    return 0;
}

static int set_bound(struct tokens_quota *quota, const char *name, json_t *value, struct err *err)
{
    for (size_t i = 0; i < TOKENS_QUOTA_COUNT; i++)
        if (strcmp(name, tokens_quota_rows[i].name) == 0)
            return tokens_quota_set(quota, (enum tokens_quota_id)i, value, err);
    for (size_t i = 0; i < TOKENS_LIST_COUNT; i++)
        if (strcmp(name, tokens_list_names[i]) == 0)
            return set_list(quota, (enum tokens_list_id)i, value, err);
    if (strcmp(name, "limits") == 0)
        return set_limits(quota, value, err);
    char field[96];
    snprintf(field, sizeof field, "quota.%.80s", name);
    return err_input(err, field, NULL, NULL, "unknown key '%s'", field);
}

static int read_quota(json_t *value, struct tokens_token *token, struct err *err)
{
    const char *name;
    json_t *bound;
    if (!json_is_object(value))
        return refuse("quota", value, "an object", err);
    json_object_foreach (value, name, bound)
        if (set_bound(&token->quota, name, bound, err) < 0)
            return -1;
    return 0;
}

static int read_id(json_t *value, struct tokens_token *token, struct err *err)
{
    if (!json_is_string(value) || !tokens_is_id(json_str(value)))
        return refuse("id", value, "k_ and 12 hexadecimal digits", err);
    memcpy(token->id, json_string_value(value), sizeof token->id);
    return 0;
}

static int read_name(json_t *value, struct tokens_token *token, struct err *err)
{
    if (!json_is_string(value) || !tokens_is_name(json_str(value)))
        return refuse("name", value, "1 to 64 of A-Z a-z 0-9 . _ -", err);
    snprintf(token->name, sizeof token->name, "%s", json_string_value(value));
    return 0;
}

static int read_sha256(json_t *value, struct tokens_token *token, struct err *err)
{
    struct str hex = json_is_string(value) ? json_str(value) : STR_NONE;
    bool good = hex.len == HASH_HEX_ROOM - 1;
    for (size_t i = 0; good && i < hex.len; i++)
        good = memchr("0123456789abcdef", hex.at[i], 16) != NULL;
    if (!good)
        return refuse("sha256", value, "64 hexadecimal digits", err);
    memcpy(token->sha256, hex.at, hex.len);
    return 0;
}

static int read_created(json_t *value, struct tokens_token *token, struct err *err)
{
    if (json_is_string(value) && tokens_read_time(json_str(value), &token->created_at))
        return 0;
    return refuse("created_at", value, "a time like 2026-11-16T15:46:06Z", err);
}

static int read_expires(json_t *value, struct tokens_token *token, struct err *err)
{
    token->expires_at = TOKENS_NEVER;
    if (json_is_null(value) ||
        (json_is_string(value) && tokens_read_time(json_str(value), &token->expires_at)))
        return 0;
    return refuse("expires_at", value, "null or a time like 2026-11-16T15:46:06Z", err);
}

static int read_operator(json_t *value, struct tokens_token *token, struct err *err)
{
    token->is_operator = json_is_true(value);
    return json_is_boolean(value) ? 0 : refuse("operator", value, "true or false", err);
}

static const struct {
    const char *name;
    int (*read)(json_t *value, struct tokens_token *token, struct err *err);
    bool needed;
} members[] = {
    { "id", read_id, true },
    { "name", read_name, true },
    { "sha256", read_sha256, true },
    { "created_at", read_created, true },
    { "expires_at", read_expires, false },
    { "operator", read_operator, false },
    { "quota", read_quota, false },
};

static int read_token(json_t *object, struct tokens_token *token, struct err *err)
{
    size_t known = 0;
    if (!json_is_object(object))
        return refuse("token", object, "an object", err);
    for (size_t i = 0; i < array_len(members); i++) {
        json_t *value = json_object_get(object, members[i].name);
        known += value != NULL;
        if ((value || members[i].needed) && members[i].read(value, token, err) < 0)
            return -1;
    }
    if (known == json_object_size(object))
        return 0;
    const char *name;
    json_t *value;
    json_object_foreach (object, name, value) {
        size_t i = 0;
        while (i < array_len(members) && strcmp(members[i].name, name) != 0)
            i++;
        if (i == array_len(members))
            return err_input(err, name, NULL, NULL, "unknown key '%.80s'", name);
    }
    return 0;
}

static bool is_twice(const struct tokens *tokens, const struct tokens_token *token)
{
    for (size_t i = 0; i < tokens->count; i++)
        if (strcmp(tokens->at[i].name, token->name) == 0 ||
            strcmp(tokens->at[i].id, token->id) == 0 ||
            strcmp(tokens->at[i].sha256, token->sha256) == 0)
            return true;
    return false;
}

static int read_list(const json_t *list, struct tokens *out, struct err *err)
{
    size_t i;
    json_t *object;
    json_array_foreach (list, i, object) {
        if (i >= TOKENS_MAX)
            return refuse("tokens", NULL, "at most 1024 tokens", err);
        struct tokens_token token = { .expires_at = TOKENS_NEVER };
        tokens_quota_init(&token.quota);
        int failed = read_token(object, &token, err);
        if (!failed && is_twice(out, &token))
            failed = err_input(err, "name", token.name, "each name, id and sha256 once",
                               "'%s', its id or its sha256 is there twice", token.name);
        if (failed) {
            tokens_quota_done(&token.quota);
            return err_wrap(err, "tokens[%zu]", i);
        }
        out->at = buf_list_room(out->at, out->count, sizeof *out->at);
        out->at[out->count++] = token;
    }
    return 0;
}

int tokens_parse(struct str text, struct tokens *out, struct err *err)
{
    own_json root = json_read(text, TOKENS_FILE_MAX, err);
    if (!root)
        return -1;
    const json_t *schema = json_object_get(root, "schema"), *list = json_object_get(root, "tokens");
    if (!json_is_integer(schema) || json_integer_value(schema) != SCHEMA)
        return refuse("schema", schema, "1", err);
    if (!json_is_array(list) || json_object_size(root) != 2)
        return refuse("tokens", list, "a list, and the only key beside schema", err);
    own_tokens tokens = TOKENS_INIT;
    if (read_list(list, &tokens, err) < 0)
        return -1;
    *out = tokens;
    tokens = TOKENS_INIT;
    return 0;
}

/* --- writing --- */

json_t *tokens_quota_json(const struct tokens_quota *quota)
{
    json_t *out = json_object(), *limits = json_object();
    for (size_t i = 0; i < TOKENS_QUOTA_COUNT; i++)
        if (quota->value[i] != TOKENS_NO_BOUND)
            json_object_set_new(out, tokens_quota_rows[i].name, json_integer(quota->value[i]));
    for (enum limits_id id = 0; id < LIMITS_COUNT; id++)
        if (quota->limits[id] != TOKENS_NO_BOUND)
            json_object_set_new(limits, limits_rows[id].name,
                                limits_value_json(id, quota->limits[id]));
    if (json_object_size(limits) > 0)
        json_object_set(out, "limits", limits);
    json_decref(limits);
    for (size_t i = 0; i < TOKENS_LIST_COUNT; i++)
        if (quota->lists[i])
            json_object_set(out, tokens_list_names[i], quota->lists[i]);
    return out;
}

static json_t *time_json(int64_t at)
{
    char text[TOKENS_TIME_ROOM];
    if (at == TOKENS_NEVER)
        return json_null();
    tokens_write_time(at, text);
    return json_string(text);
}

json_t *tokens_to_json(const struct tokens *tokens)
{
    json_t *list = json_array();
    for (size_t i = 0; i < tokens->count; i++) {
        const struct tokens_token *token = &tokens->at[i];
        json_array_append_new(
            list,
            json_pack("{s:s, s:s, s:s, s:o, s:o, s:b, s:o}", "id", token->id, "name", token->name,
                      "sha256", token->sha256, "created_at", time_json(token->created_at),
                      "expires_at", time_json(token->expires_at), "operator", token->is_operator,
                      "quota", tokens_quota_json(&token->quota)));
    }
    return json_pack("{s:i, s:o}", "schema", SCHEMA, "tokens", list);
}
