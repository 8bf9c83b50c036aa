/* Parameters of the routes that list and count records. Runs in the serve process. */
#include <string.h>
#include <time.h>

#include "base/attr.h"
#include "base/hash.h"
#include "contract/request.h"
#include "contract/result.h"
#include "serve/api/records.h"

#define STATS_WINDOW_MS ((int64_t)7 * 86400 * 1000)
#define WORD_MAX 64

const char *const records_list_names[] = { "since",   "until", "status",      "language",
                                           "session", "task",  "token",       "code_sha256",
                                           "text",    "page",  "limit",       NULL };
const char *const records_stats_names[] = { "since", "until", "language", "session",
                                            "task",  "token", NULL };

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* --- values --- */

static int refuse(const char *name, const char *value, const char *bound, struct err *err)
{
    return err_input(err, name, NULL, bound, "parameter '%s' is '%.80s'", name, value);
}

static const char *check_status(const char *value, struct err *err)
{
    static const char *const names[] = {
#define X(id, name, exit_code) name,
        RESULT_STATUSES(X)
#undef X
        "started"
    };
    for (size_t i = 0; i < array_len(names); i++)
        if (strcmp(names[i], value) == 0)
            return value;
    enum err_kind kind = err_kind_find(value); /* a run that was refused after its start */
    if (strcmp(err_kind_name(kind), value) == 0 && kind != ERR_NONE)
        return value;
    refuse("status", value, "started, ok, error, timeout, ... or the kind of an error", err);
    return NULL;
}

static const char *check_language(const char *value, struct err *err)
{
    int found = request_language_find(value);
    if (found >= 0)
        return request_languages[found].name;
    refuse("language", value, REQUEST_ALL_LANGUAGES, err);
    return NULL;
}

static const char *check_sum(const char *value, struct err *err)
{
    size_t len = strlen(value);
    if (len == HASH_HEX_ROOM - 1 && strspn(value, "0123456789abcdef") == len)
        return value;
    refuse("code_sha256", value, "64 hexadecimal digits, lower case", err);
    return NULL;
}

static const char *check_word(const char *name, const char *value, struct err *err)
{
    static const char word[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    if (*value && strlen(value) <= WORD_MAX && strspn(value, word) == strlen(value))
        return value;
    refuse(name, value, "an id", err);
    return NULL;
}

static const char *check_session(const char *value, struct err *err)
{
    return check_word("session", value, err);
}

static const char *check_task(const char *value, struct err *err)
{
    return check_word("task", value, err);
}

/* The store checks these itself. */
static const char *check_later(const char *value, struct err *err)
{
    (void)err;
    return value;
}

static const struct text {
    const char *name;
    const char *(*check)(const char *value, struct err *err);
    size_t at; /* in struct look_filter */
} texts[] = {
    { "status", check_status, offsetof(struct look_filter, status) },
    { "language", check_language, offsetof(struct look_filter, language) },
    { "session", check_session, offsetof(struct look_filter, session) },
    { "task", check_task, offsetof(struct look_filter, task) },
    { "code_sha256", check_sum, offsetof(struct look_filter, code_sha256) },
    { "text", check_later, offsetof(struct look_filter, text) },
    { "page", check_later, offsetof(struct look_filter, page) },
};

static int take_texts(const struct http_exchange *x, struct records_question *out, struct err *err)
{
    for (size_t i = 0; i < array_len(texts); i++) {
        const char *value = http_query(x, texts[i].name);
        if (value && !(value = texts[i].check(value, err)))
            return -1;
        *(const char **)((char *)&out->filter + texts[i].at) = records_question_text(out, value);
    }
    return 0;
}

/* Operators may ask for one token's, or for the socket's with an empty value. */
static int take_token(const struct http_exchange *x, struct records_question *out, struct err *err)
{
    const char *token = http_query(x, "token");
    if (!token || strcmp(token, who_id(x->who)) == 0) {
        if (token)
            out->filter.owner = records_question_text(out, token);
        return 0;
    }
    if (!who_is_operator(x->who)) {
        err_set(err, ERR_FORBIDDEN, "this token sees its own runs alone");
        err_hint(err, "leave 'token' out, or use an operator's token");
        return -1;
    }
    if (*token && !check_word("token", token, err))
        return -1;
    out->filter.owner = records_question_text(out, token);
    return 0;
}

static int take_limit(const struct http_exchange *x, struct records_question *out, struct err *err)
{
    const char *limit = http_query(x, "limit");
    uint64_t value = 0;
    if (!limit)
        return 0;
    if (!str_to_u64(str_of(limit), &value) || value < 1 || value > LOOK_PAGE_MAX)
        return refuse("limit", limit, "1 to 1000", err);
    out->filter.limit = (int)value;
    return 0;
}

static int take_times(const struct http_exchange *x, struct records_question *out, struct err *err)
{
    const char *since = http_query(x, "since"), *until = http_query(x, "until");
    int64_t now = now_ms();
    if ((since && look_time("since", since, now, &out->filter.since_ms, err) < 0) ||
        (until && look_time("until", until, now, &out->filter.until_ms, err) < 0))
        return -1;
    if (since && until && out->filter.since_ms >= out->filter.until_ms)
        return err_input(err, "until", NULL, "later than 'since'",
                         "no time lies between 'since' and 'until'");
    return 0;
}

int records_query(const struct http_exchange *x, const char *const *names,
                  struct records_question *out, struct err *err)
{
    if (http_query_only(x, names, err) < 0 || take_texts(x, out, err) < 0 ||
        take_token(x, out, err) < 0 || take_limit(x, out, err) < 0 || take_times(x, out, err) < 0)
        return -1;
    if (names == records_stats_names && !out->filter.since_ms) {
        int64_t until = out->filter.until_ms ? out->filter.until_ms : now_ms();
        out->filter.since_ms = until > STATS_WINDOW_MS ? until - STATS_WINDOW_MS : 1;
    }
    return 0;
}
