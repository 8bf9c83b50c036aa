/* Quotas: counting in before the work starts, and out after it. Runs in the serve process, in its
 * loop: one thread, so nothing comes between a check and its count. A bound that is lowered does
 * not end what is under way. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/log.h"
#include "serve/who/who_int.h"

#define MINUTE_NS (60 * CLOCK_S)

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t bound(const struct who_token *token, enum tokens_quota_id id)
{
    return token->quota.value[id];
}

static int64_t utc_s(const struct who_token *token)
{
    return token->who ? token->who->utc_s() : token->cpu_day * USAGE_DAY_S;
}

/* Any other day begins a new count, also an earlier one: the clock was set. */
void who_new_day(struct who_token *token)
{
    int64_t day = utc_s(token) / USAGE_DAY_S;
    if (day == token->cpu_day)
        return;
    token->cpu_day = day;
    token->cpu_ms = 0;
}

/* --- the last 60 seconds --- */

size_t who_minute_count(struct who_token *token)
{
    struct who_minute *minute = &token->minute;
    int64_t now = token->who ? token->who->now_ns() : 0;
    while (minute->count > 0 && minute->at_ns[minute->first] <= now - MINUTE_NS) {
        minute->first++;
        minute->count--;
    }
    if (minute->count == 0)
        minute->first = 0;
    return minute->count;
}

static void add_start(struct who_token *token)
{
    struct who_minute *minute = &token->minute;
    if (minute->first + minute->count == minute->room) {
        size_t room = minute->first > minute->room / 2 ? minute->room : minute->room * 2 + 16;
        int64_t *list = buf_alloc_zero(room, sizeof *list);
        if (minute->count > 0)
            memcpy(list, minute->at_ns + minute->first, minute->count * sizeof *list);
        free(minute->at_ns);
        *minute = (struct who_minute){ list, 0, minute->count, room };
    }
    minute->at_ns[minute->first + minute->count++] = token->who->now_ns();
}

/* --- refusals --- */

static int refuse(struct who_token *token, enum tokens_quota_id id, int64_t used, int64_t retry_s,
                  struct err *err)
{
    const struct tokens_quota_row *row = &tokens_quota_rows[id];
    char field[64], value[32], most[48];
    snprintf(field, sizeof field, "quota.%s", row->name);
    snprintf(value, sizeof value, "%lld", (long long)used);
    snprintf(most, sizeof most, "at most %lld", (long long)bound(token, id));
    err_input(err, field, value, most, "the token '%s' may have %lld %s, and has %lld", token->name,
              (long long)bound(token, id), row->doc, (long long)used);
    err->kind = ERR_QUOTA;
    token->retry_s = retry_s < 1 ? 1 : retry_s;
    return -1;
}

int64_t who_retry_s(const struct who_token *token)
{
    return token->retry_s;
}

static int check_at_once(struct who_token *token, struct err *err)
{
    int64_t most = bound(token, TOKENS_RUNS_AT_ONCE);
    if (most == TOKENS_NO_BOUND || token->runs < most)
        return 0;
    refuse(token, TOKENS_RUNS_AT_ONCE, token->runs, 1, err);
    if (most == 0)
        err_hint(err, "this token may not run code");
    else
        err_hint(err, "try again when one of its runs has ended");
    return -1;
}

static int check_minute(struct who_token *token, struct err *err)
{
    int64_t most = bound(token, TOKENS_RUNS_A_MINUTE);
    if (most == TOKENS_NO_BOUND)
        return 0;
    size_t count = who_minute_count(token);
    if ((int64_t)count < most)
        return 0;
    int64_t wait_ns = MINUTE_NS;
    if (most > 0) /* until so many have left that one more fits */
        wait_ns += token->minute.at_ns[token->minute.first + count - (size_t)most] -
                   token->who->now_ns();
    int64_t wait_s = (wait_ns + CLOCK_S - 1) / CLOCK_S;
    refuse(token, TOKENS_RUNS_A_MINUTE, (int64_t)count, wait_s, err);
    if (most == 0)
        err_hint(err, "this token may not run code");
    else
        err_hint(err, "try again in %lld s", (long long)token->retry_s);
    return -1;
}

static int check_cpu(struct who_token *token, int64_t cpu_ms, struct err *err)
{
    int64_t most = bound(token, TOKENS_CPU_S_A_DAY);
    if (most == TOKENS_NO_BOUND)
        return 0;
    who_new_day(token);
    int64_t used = token->cpu_ms, left = most * 1000 - used;
    if (left > 0 && cpu_ms <= left - token->reserved_ms)
        return 0;
    int64_t midnight_s = USAGE_DAY_S - utc_s(token) % USAGE_DAY_S;
    bool waits = left > 0 && cpu_ms <= left; /* only runs under way are before it */
    refuse(token, TOKENS_CPU_S_A_DAY, used / 1000, waits ? 1 : midnight_s, err);
    if (waits)
        err_hint(err,
                 "runs under way may still use %lld s: try again when one has ended, or set "
                 "limits.cpu_s to less",
                 (long long)(token->reserved_ms + 999) / 1000);
    else if (left - token->reserved_ms >= 1000)
        err_hint(err,
                 "this run may use %.12g s: set limits.cpu_s to at most %lld, or try again in "
                 "%lld s, after midnight UTC",
                 (double)cpu_ms / 1000, (long long)(left - token->reserved_ms) / 1000,
                 (long long)midnight_s);
    else
        err_hint(err, "try again in %lld s, after midnight UTC", (long long)midnight_s);
    return -1;
}

/* --- runs --- */

int who_run_begins(struct who_token *token, int64_t cpu_ms, struct err *err)
{
    if (!token->who)
        return err_set(err, ERR_BUSY, "the service ends");
    if (check_at_once(token, err) < 0 || check_minute(token, err) < 0 ||
        check_cpu(token, cpu_ms, err) < 0)
        return -1;
    token->runs++;
    token->reserved_ms += cpu_ms;
    if (bound(token, TOKENS_RUNS_A_MINUTE) != TOKENS_NO_BOUND)
        add_start(token);
    return 0;
}

void who_run_ends(struct who_token *token, int64_t reserved_ms, double cpu_ms)
{
    who_new_day(token);
    token->runs -= token->runs > 0;
    token->reserved_ms -= least(reserved_ms, token->reserved_ms);
    if (!(cpu_ms > 0))
        return;
    token->cpu_ms += (int64_t)(cpu_ms < 1e12 ? cpu_ms + 0.5 : 1e12);
    who_changed(token->who);
}

/* --- sessions --- */

int who_session_begins(struct who_token *token, struct err *err)
{
    int64_t most = bound(token, TOKENS_SESSIONS);
    if (most != TOKENS_NO_BOUND && token->sessions >= most) {
        refuse(token, TOKENS_SESSIONS, token->sessions, 60, err);
        if (most == 0)
            err_hint(err, "this token may not make sessions");
        else
            err_hint(err, "end one with DELETE /v1/sessions/ID, or try again when one has expired");
        return -1;
    }
    token->sessions++;
    return 0;
}

void who_session_ends(struct who_token *token)
{
    token->sessions -= token->sessions > 0;
}

/* --- stored bytes --- */

int who_stores(struct who_token *token, int64_t bytes, struct err *err)
{
    int64_t most = bound(token, TOKENS_STORED_BYTES), sum;
    if (bytes < 0 || __builtin_add_overflow(token->stored_bytes, bytes, &sum))
        return err_set(err, ERR_LIMIT, "%lld bytes cannot be stored", (long long)bytes);
    if (most != TOKENS_NO_BOUND && sum > most) {
        refuse(token, TOKENS_STORED_BYTES, token->stored_bytes, 60, err);
        err_hint(err,
                 "%lld more do not fit: remove blobs or files of ended sessions, or try again when "
                 "they have expired",
                 (long long)bytes);
        return -1;
    }
    token->stored_bytes = sum;
    return 0;
}

void who_unstores(struct who_token *token, int64_t bytes)
{
    if (bytes > 0)
        token->stored_bytes -= least(bytes, token->stored_bytes);
}

void who_stored_by(struct who *who, const char *owner, int64_t bytes)
{
    if (!*owner || bytes == 0)
        return;
    struct who_token *token = who_of_id(who, owner, /* make= */ bytes > 0);
    if (!token)
        return;
    if (bytes < 0)
        who_unstores(token, bytes == INT64_MIN ? INT64_MAX : -bytes);
    else if (__builtin_add_overflow(token->stored_bytes, bytes, &token->stored_bytes))
        token->stored_bytes = INT64_MAX;
    who_forget_idle(who);
}
