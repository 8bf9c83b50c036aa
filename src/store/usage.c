/* The file of the use of tokens:
 *   {"schema": 1, "tokens": {"k_...": {"used_at": "2026-11-16T15:46:06Z", "day": 20773,
 *    "cpu_ms": 1200}}}
 * Runs in the serve process and in the cli process. */
#include "store/usage.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "store/state_file.h"

#define SCHEMA 1
#define LOCK_FILE "usage.lock"

void usage_done(struct usage *usage)
{
    free(usage->at);
    *usage = USAGE_INIT;
}

void usage_add(struct usage *usage, const struct usage_row *row)
{
    usage->at = buf_list_room(usage->at, usage->count, sizeof *usage->at);
    usage->at[usage->count++] = *row;
}

const struct usage_row *usage_find(const struct usage *usage, const char *id)
{
    for (size_t i = 0; i < usage->count; i++)
        if (strcmp(usage->at[i].id, id) == 0)
            return &usage->at[i];
    return NULL;
}

static bool take_count(const json_t *object, const char *name, int64_t *out)
{
    const json_t *value = json_object_get(object, name);
    *out = json_integer_value(value);
    return json_is_integer(value) && *out >= 0;
}

static bool read_row(const char *id, const json_t *object, struct usage_row *row)
{
    if (!tokens_is_id(str_of(id)) || json_object_size(object) != 3)
        return false;
    memcpy(row->id, id, sizeof row->id);
    return tokens_read_time(json_get_str(object, "used_at"), &row->used_at) &&
           take_count(object, "day", &row->day) && take_count(object, "cpu_ms", &row->cpu_ms);
}

int usage_parse(struct str text, struct usage *out, struct err *err)
{
    own_json root = json_read(text, USAGE_FILE_MAX, err);
    if (!root)
        return -1;
    json_t *tokens = json_object_get(root, "tokens");
    const json_t *schema = json_object_get(root, "schema");
    if (!json_is_integer(schema) || json_integer_value(schema) != SCHEMA ||
        !json_is_object(tokens) || json_object_size(root) != 2)
        return err_input(err, "tokens", NULL, NULL, "it has other keys than schema and tokens");
    own_usage usage = USAGE_INIT;
    const char *id;
    json_t *object;
    json_object_foreach (tokens, id, object) {
        struct usage_row row;
        if (usage.count >= TOKENS_MAX || !read_row(id, object, &row))
            return err_input(err, "tokens", NULL, NULL, "the row '%.40s' is not understood", id);
        usage_add(&usage, &row);
    }
    *out = usage;
    usage = USAGE_INIT;
    return 0;
}

int usage_read(int state_dir, struct usage *out, struct err *err)
{
    own_buf text = BUF_INIT(USAGE_FILE_MAX);
    struct stat st;
    int there = state_file_read(state_dir, USAGE_FILE, &text, &st, err);
    if (there == 1 && usage_parse(buf_str(&text), out, err) < 0)
        return err_wrap(err, "'%s' of the state folder", USAGE_FILE);
    return there;
}

int usage_lock(int state_dir, struct err *err)
{
    return state_file_lock(state_dir, LOCK_FILE, /* wait= */ false, err);
}

int usage_write(int state_dir, const struct usage *usage, struct err *err)
{
    own_json tokens = json_object();
    for (size_t i = 0; i < usage->count; i++) {
        const struct usage_row *row = &usage->at[i];
        char time[TOKENS_TIME_ROOM];
        tokens_write_time(row->used_at, time);
        json_object_set_new(tokens, row->id,
                            json_pack("{s:s, s:I, s:I}", "used_at", time, "day",
                                      (json_int_t)row->day, "cpu_ms", (json_int_t)row->cpu_ms));
    }
    own_json root = json_pack("{s:i, s:O}", "schema", SCHEMA, "tokens", tokens);
    char *text = json_write(root, JSON_COMPACT);
    int failed = state_file_write(state_dir, USAGE_FILE, str_of(text), /* durable= */ false, err);
    free(text);
    return failed;
}
