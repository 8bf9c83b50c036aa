/* Tokens for people and for programs. Runs in the cli process. */
#include "cli/token/token_show.h"

#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "cli/term/term.h"

#define LINE_MAX_BYTES (1u << 20)

static json_t *time_json(int64_t at, int64_t none)
{
    char text[TOKENS_TIME_ROOM];
    if (at == none)
        return json_null();
    tokens_write_time(at, text);
    return json_string(text);
}

json_t *cli_token_json(const struct tokens_token *token, int64_t used_at)
{
    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:b, s:o}", "id", token->id, "name", token->name,
                     "created_at", time_json(token->created_at, -1), "expires_at",
                     time_json(token->expires_at, TOKENS_NEVER), "last_used_at",
                     time_json(used_at, 0), "operator", token->is_operator, "quota",
                     tokens_quota_json(&token->quota));
}

/* "2026-11-16 15:46" */
static void add_time(struct buf *out, int64_t at, int64_t none, const char *instead)
{
    char text[TOKENS_TIME_ROOM];
    if (at == none) {
        buf_printf(out, "%-18s", instead);
        return;
    }
    tokens_write_time(at, text);
    buf_printf(out, "%.10s %.5s  ", text, text + 11);
}

/* "operator, runs_at_once 4, stored_bytes 1.0 GiB, limits.timeout_s 60, profiles baseline" */
static void add_quota(struct buf *out, const struct tokens_token *token)
{
    const struct tokens_quota *quota = &token->quota;
    size_t before = out->len, word;
    json_t *name;
    if (token->is_operator)
        buf_add_text(out, "operator");
    for (size_t i = 0; i < TOKENS_QUOTA_COUNT; i++) {
        if (quota->value[i] == TOKENS_NO_BOUND)
            continue;
        buf_printf(out, "%s%s ", out->len > before ? ", " : "", tokens_quota_rows[i].name);
        if (i == TOKENS_STORED_BYTES)
            cli_term_add_size(out, (double)quota->value[i]);
        else
            buf_printf(out, "%lld", (long long)quota->value[i]);
    }
    for (enum limits_id id = 0; id < LIMITS_COUNT; id++) {
        if (quota->limits[id] == TOKENS_NO_BOUND)
            continue;
        own_json value = limits_value_json(id, quota->limits[id]);
        char text[40];
        json_brief(value, text, sizeof text);
        buf_printf(out, "%slimits.%s %s", out->len > before ? ", " : "", limits_rows[id].name,
                   text);
    }
    for (size_t i = 0; i < TOKENS_LIST_COUNT; i++) {
        if (!quota->lists[i])
            continue;
        buf_printf(out, "%s%s", out->len > before ? ", " : "", tokens_list_names[i]);
        json_array_foreach (quota->lists[i], word, name)
            buf_printf(out, " %s", json_string_value(name));
    }
    if (out->len == before)
        buf_add_text(out, "no bound");
}

void cli_token_show(const struct tokens *tokens, const struct usage *usage, int64_t now)
{
    own_buf out = BUF_INIT(LINE_MAX_BYTES);
    int width = (int)strlen("NAME");
    for (size_t i = 0; i < tokens->count; i++)
        if ((int)strlen(tokens->at[i].name) > width)
            width = (int)strlen(tokens->at[i].name);
    buf_printf(&out, "%-*s  %-14s  %-16s  %-16s  %-16s  QUOTA\n", width, "NAME", "ID", "CREATED",
               "EXPIRES", "LAST USED");
    for (size_t i = 0; i < tokens->count; i++) {
        const struct tokens_token *token = &tokens->at[i];
        const struct usage_row *row = usage_find(usage, token->id);
        buf_printf(&out, "%-*s  %-14s  ", width, token->name, token->id);
        add_time(&out, token->created_at, -1, "");
        if (token->expires_at <= now)
            buf_printf(&out, "%-18s", "expired");
        else
            add_time(&out, token->expires_at, TOKENS_NEVER, "never");
        add_time(&out, row ? row->used_at : 0, 0, "not yet");
        add_quota(&out, token);
        buf_add_text(&out, "\n");
    }
    cli_term_write(STDOUT_FILENO, buf_str(&out));
}
