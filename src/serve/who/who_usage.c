/* The use of tokens, kept across restarts in usage.json. Runs in the serve process, in its loop. It
 * is never fatal: without the file, counting begins anew and the log says so. One service counts in
 * a state folder; a second one, as during a restart, takes over once the first has gone. */
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "serve/who/who_int.h"

static void complain(struct who *who, const struct err *err)
{
    if (!who->complained)
        log_line(LOG_LINE_WARN, "usage",
                 json_pack("{s:o, s:s}", "message", json_text(str_of(err->text)), "hint",
                           "use is counted, but not kept across a restart"));
    who->complained = true;
}

/* The larger of both counts holds: the file may be older or newer than ours. */
static void take_row(struct who *who, const struct usage_row *row)
{
    struct who_token *token = who_of_id(who, row->id, /* make= */ false);
    if (!token)
        return;
    if (row->used_at > token->used_at)
        token->used_at = row->used_at;
    if (row->day == token->cpu_day && row->cpu_ms < token->cpu_ms)
        return;
    if (row->day >= token->cpu_day) {
        token->cpu_day = row->day;
        token->cpu_ms = row->cpu_ms;
    }
}

static void read_usage(struct who *who)
{
    own_usage usage = USAGE_INIT;
    struct err err = ERR_INIT;
    if (usage_read(who->state_dir, &usage, &err) < 0)
        complain(who, &err);
    for (size_t i = 0; i < usage.count; i++)
        take_row(who, &usage.at[i]);
}

void who_usage_open(struct who *who)
{
    struct err err = ERR_INIT;
    read_usage(who);
    who->usage_lock = usage_lock(who->state_dir, &err);
    if (who->usage_lock < 0)
        complain(who, &err);
}

static bool has_lock(struct who *who, struct err *err)
{
    if (who->usage_lock >= 0)
        return true;
    who->usage_lock = who->state_dir < 0 ? -1 : usage_lock(who->state_dir, err);
    if (who->usage_lock < 0)
        return false;
    read_usage(who);
    return true;
}

/* Tokens that are not in tokens.json are left out: their ids do not come back. */
void who_usage_write(struct who *who)
{
    struct err err = ERR_INIT;
    own_usage usage = USAGE_INIT;
    loop_set_timer(who->loop, &who->write, LOOP_NEVER);
    if (who->state_dir < 0)
        return;
    if (!has_lock(who, &err)) {
        complain(who, &err);
        who_changed(who);
        return;
    }
    for (size_t i = 0; i < who->count; i++) {
        const struct who_token *token = who->tokens[i];
        if (!token->known)
            continue;
        struct usage_row row = { .used_at = token->used_at, .day = token->cpu_day,
                                 .cpu_ms = token->cpu_ms };
        memcpy(row.id, token->id, sizeof row.id);
        usage_add(&usage, &row);
    }
    if (usage_write(who->state_dir, &usage, &err) < 0) {
        complain(who, &err);
        who_changed(who);
        return;
    }
    who->complained = false;
}
