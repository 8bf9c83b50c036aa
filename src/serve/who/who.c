/* Tokens at work: the list, and the token behind a secret. Runs in the serve process, in its loop.
 * A changed tokens file takes effect at the next request. A file that cannot be read or understood
 * lets nobody in: the old list might hold a token that was removed. */
#include "serve/who/who.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/log.h"
#include "serve/who/who_int.h"

static int64_t utc_now_s(void)
{
    return (int64_t)time(NULL);
}

/* --- the list --- */

static void free_token(struct who_token *token)
{
    tokens_quota_done(&token->quota);
    free(token->minute.at_ns);
    free(token);
}

struct who_token *who_of_id(struct who *who, const char *id, bool make)
{
    for (size_t i = 0; i < who->count; i++)
        if (strcmp(who->tokens[i]->id, id) == 0)
            return who->tokens[i];
    if (!make || strlen(id) >= WHO_ID_ROOM)
        return NULL;
    struct who_token *token = buf_alloc_zero(1, sizeof *token);
    token->who = who;
    token->expires_at = TOKENS_NEVER;
    memcpy(token->id, id, strlen(id) + 1);
    tokens_quota_init(&token->quota);
    who->tokens = buf_list_room(who->tokens, who->count, sizeof(struct who_token *));
    who->tokens[who->count++] = token;
    return token;
}

static bool is_needed(const struct who_token *token)
{
    return token->known || token->refs > 0 || token->stored_bytes > 0;
}

struct who_token *who_owner(struct who *who, const char *id)
{
    struct who_token *token = who_of_id(who, id, /* make= */ false);
    return token && token->known ? token : NULL;
}

void who_forget_idle(struct who *who)
{
    size_t kept = 0;
    for (size_t i = 0; i < who->count; i++) {
        if (is_needed(who->tokens[i]))
            who->tokens[kept++] = who->tokens[i];
        else
            free_token(who->tokens[i]);
    }
    who->count = kept;
}

/* --- the file --- */

static void complain(struct who *who, const struct err *err)
{
    if (strcmp(who->broken.text, err->text) != 0)
        log_line(LOG_LINE_ERROR, "tokens",
                 json_pack("{s:o, s:o}", "message", json_text(str_of(err->text)), "hint",
                           json_text_or_null(err->hint)));
    who->broken = *err;
}

static void adopt(struct who *who, struct tokens *file)
{
    for (size_t i = 0; i < who->count; i++)
        who->tokens[i]->known = false;
    tokens_done(&who->file);
    free(who->of_file);
    who->file = *file;
    who->of_file = buf_alloc_zero(file->count + 1, sizeof(struct who_token *));
    for (size_t i = 0; i < file->count; i++) {
        const struct tokens_token *from = &file->at[i];
        struct who_token *token = who_of_id(who, from->id, /* make= */ true);
        if (!token) /* no id of the file is that long */
            continue;
        token->known = true;
        token->is_operator = from->is_operator;
        token->expires_at = from->expires_at;
        memcpy(token->name, from->name, sizeof token->name);
        tokens_quota_done(&token->quota);
        tokens_quota_copy(&token->quota, &from->quota);
        who->of_file[i] = token;
    }
    who_forget_idle(who);
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
           clock_ns(a->st_mtim) == clock_ns(b->st_mtim) &&
           clock_ns(a->st_ctim) == clock_ns(b->st_ctim);
}

/* Reads the file if it is another one than before. A broken file is read again once it changes; one
 * that could not be read, at every request. */
static int refresh(struct who *who, struct err *err)
{
    struct stat now = { 0 }, read = { 0 };
    if (who->state_dir < 0)
        return 0;
    if (fstatat(who->state_dir, TOKENS_FILE, &now, AT_SYMLINK_NOFOLLOW) < 0 && errno != ENOENT)
        now.st_ino = 0;
    else if (is_same_file(&now, &who->seen)) {
        *err = who->broken;
        return who->broken.kind == ERR_NONE ? 0 : -1;
    }
    struct tokens file = TOKENS_INIT;
    if (tokens_read(who->state_dir, &file, &read, err) < 0) {
        complain(who, err);
        who->seen = read;
        if (read.st_ino == 0)
            who->seen.st_size = -1; /* no file looks like that */
        return -1;
    }
    who->seen = read;
    who->broken = ERR_INIT;
    adopt(who, &file);
    return 0;
}

/* --- open and close --- */

static void on_write(struct loop_timer *timer)
{
    who_usage_write(loop_owner(timer, struct who, write));
}

void who_changed(struct who *who)
{
    if (who && !who->write.set)
        loop_set_timer(who->loop, &who->write, who->now_ns() + WHO_WRITE_NS);
}

struct who *who_open(struct loop *loop, int state_dir, struct err *err)
{
    struct who *who = buf_alloc_zero(1, sizeof *who);
    *who = (struct who){ .loop = loop, .state_dir = state_dir, .usage_lock = -1,
                         .now_ns = clock_now_ns, .utc_s = utc_now_s };
    loop_due(&who->write, on_write);
    if (refresh(who, err) < 0) {
        who_close(who);
        return NULL;
    }
    if (state_dir >= 0)
        who_usage_open(who);
    return who;
}

void who_close(struct who *who)
{
    if (!who)
        return;
    if (who->write.set)
        who_usage_write(who);
    loop_set_timer(who->loop, &who->write, LOOP_NEVER);
    if (who->usage_lock >= 0)
        close(who->usage_lock);
    for (size_t i = 0; i < who->count; i++) {
        who->tokens[i]->who = NULL;
        if (who->tokens[i]->refs == 0)
            free_token(who->tokens[i]);
    }
    tokens_done(&who->file);
    free(who->of_file);
    free(who->tokens);
    free(who);
}

/* --- one token --- */

static int refuse(struct str secret, struct err *err)
{
    if (secret.len == 0) {
        err_set(err, ERR_TOKEN, "a token is needed");
        err_hint(err, "send the header 'Authorization: Bearer cupel_...'; "
                      "'cupel token new NAME' makes a token");
    } else {
        err_set(err, ERR_TOKEN, "the token is not known");
        err_hint(err, "it was removed or mistyped; 'cupel token new NAME' makes another");
    }
    return -1;
}

static int refuse_expired(const struct who_token *token, struct err *err)
{
    char time[TOKENS_TIME_ROOM];
    tokens_write_time(token->expires_at, time);
    err_set(err, ERR_TOKEN, "the token '%s' expired at %s", token->name, time);
    err_hint(err, "'cupel token rm %s' and 'cupel token new %s' make another", token->name,
             token->name);
    return -1;
}

struct who_token *who_find(struct who *who, struct str secret, struct err *err)
{
    struct err why = ERR_INIT;
    if (refresh(who, &why) < 0) {
        err_set(err, ERR_HOST, "the tokens of this service cannot be read");
        err_hint(err, "the log of the service has the reason");
        return NULL;
    }
    const struct tokens_token *found = tokens_find_secret(&who->file, secret);
    if (!found) {
        refuse(secret, err);
        return NULL;
    }
    struct who_token *token = who->of_file[found - who->file.at];
    int64_t now = who->utc_s();
    if (now >= token->expires_at) {
        refuse_expired(token, err);
        return NULL;
    }
    if (token->used_at != now) {
        token->used_at = now;
        who_changed(who);
    }
    return who_ref(token);
}

struct who_token *who_ref(struct who_token *token)
{
    token->refs++;
    return token;
}

void who_unref(struct who_token *token)
{
    if (!token)
        return;
    token->refs--;
    if (token->refs > 0)
        return;
    if (!token->who) /* the table is closed: nobody counts any more */
        free_token(token);
    else if (!is_needed(token))
        who_forget_idle(token->who);
}

const char *who_name(const struct who_token *token)
{
    return token->name;
}

const char *who_id(const struct who_token *token)
{
    return token->id;
}

bool who_is_operator(const struct who_token *token)
{
    return token->is_operator;
}

bool who_may_see(const struct who_token *token, const char *owner)
{
    return token->is_operator || (*owner && strcmp(owner, token->id) == 0);
}

json_t *who_describe(const struct who *who)
{
    json_t *list = json_array();
    for (size_t i = 0; i < who->count; i++) {
        struct who_token *token = who->tokens[i];
        if (!token->known)
            continue;
        who_new_day(token);
        json_t *used = json_pack(
            "{s:I, s:I, s:f, s:I, s:I}", tokens_quota_rows[TOKENS_RUNS_AT_ONCE].name,
            (json_int_t)token->runs, tokens_quota_rows[TOKENS_RUNS_A_MINUTE].name,
            (json_int_t)who_minute_count(token), tokens_quota_rows[TOKENS_CPU_S_A_DAY].name,
            (double)token->cpu_ms / 1000, tokens_quota_rows[TOKENS_SESSIONS].name,
            (json_int_t)token->sessions, tokens_quota_rows[TOKENS_STORED_BYTES].name,
            (json_int_t)token->stored_bytes);
        json_array_append_new(list, json_pack("{s:s, s:s, s:b, s:o, s:o}", "id", token->id, "name",
                                              token->name, "operator", token->is_operator, "used",
                                              used, "quota", tokens_quota_json(&token->quota)));
    }
    return list;
}
