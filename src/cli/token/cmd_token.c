/* `cupel token`: makes, lists and removes tokens of the HTTP API. Runs in the cli process: the
 * state folder is opened as the caller, then rights are dropped, and only then a file is read or
 * written, with the uid that the service has. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/own.h"
#include "box/host/box.h"
#include "cli/cli.h"
#include "cli/link/state_files.h"
#include "cli/term/term.h"
#include "cli/token/token_options.h"
#include "cli/token/token_show.h"
#include "engine/engine.h"
#include "store/tokens.h"
#include "store/usage.h"

struct place {
    char path[PATH_MAX];
    int fd;
};

/* --- the state folder --- */

static int open_place(struct place *place, struct err *err)
{
    bool named;
    if (!engine_state_path(place->path, sizeof place->path, &named)) {
        err_set(err, ERR_HOST, "there is no state folder for tokens: HOME is not set");
        err_hint(err, "set CUPEL_STATE to a folder, for cupel token and for cupel serve");
        return -1;
    }
    place->fd = cli_state_open();
    if (place->fd < 0) {
        err_sys(err, "open the state folder '%.200s'", place->path);
        err_hint(err, "make it writable for this user, or set CUPEL_STATE to another folder");
        return -1;
    }
    return box_drop_door(err);
}

/* An err of a file, with the fix for a folder that is not ours. */
static int explain(const struct place *place, struct err *err)
{
    if (err->kind == ERR_HOST && (err->sys == EACCES || err->sys == EPERM))
        err_hint(err, "the folder must belong to the uid of the service: 'chown %u %.200s'",
                 (unsigned)geteuid(), place->path);
    return -1;
}

/* --- new --- */

/* Fields that are left out have the profile's value, which this token may not ask for. */
static void note_defaults(const struct tokens_quota *quota)
{
    const struct limits_profile *profile = &limits_profiles[0];
    for (enum limits_id id = 0; id < LIMITS_COUNT; id++)
        if (quota->limits[id] != TOKENS_NO_BOUND && quota->limits[id] < profile->defaults.value[id])
            cli_term_note("profile '%s' has a larger %s: requests of this token must set "
                          "limits.%s themselves",
                          profile->name, limits_rows[id].name, limits_rows[id].name);
}

static int add_token(const struct place *place, const struct cli_token_options *o,
                     struct tokens *tokens, char *out_secret, struct err *err)
{
    struct tokens_quota quota;
    struct stat st;
    int64_t now = (int64_t)time(NULL), expires_at;
    if (cli_token_expiry(o->expires, now, &expires_at, err) < 0 ||
        cli_token_quota(o, &quota, err) < 0)
        return -1;
    own_fd lock = tokens_lock(place->fd, err);
    if (lock < 0 || tokens_read(place->fd, tokens, &st, err) < 0 ||
        tokens_add(tokens, o->names.at[0], now, expires_at, o->is_operator, &quota, out_secret,
                   err) < 0) {
        tokens_quota_done(&quota);
        return -1;
    }
    return tokens_write(place->fd, tokens, err);
}

static int go_new(const struct place *place, const struct cli_token_options *o, struct err *err)
{
    char secret[TOKENS_SECRET_LEN + 1] = "";
    own_tokens tokens = TOKENS_INIT;
    if (add_token(place, o, &tokens, secret, err) < 0)
        return explain(place, err);
    const struct tokens_token *made = &tokens.at[tokens.count - 1];
    if (o->json) {
        own_json out = cli_token_json(made, /* used_at= */ 0);
        json_object_del(out, "last_used_at");
        json_object_set_new(out, "token", json_string(secret));
        return cli_term_json(out);
    }
    own_buf line = BUF_INIT(TOKENS_SECRET_LEN + 2);
    buf_printf(&line, "%s\n", secret);
    cli_term_write(STDOUT_FILENO, buf_str(&line));
    cli_term_note("token '%s' is shown this once; only its hash is kept, in %s/%s", made->name,
                  place->path, TOKENS_FILE);
    note_defaults(&made->quota);
    return 0;
}

/* --- ls --- */

static int go_ls(const struct place *place, const struct cli_token_options *o, struct err *err)
{
    own_tokens tokens = TOKENS_INIT;
    own_usage usage = USAGE_INIT;
    struct stat st;
    struct err none = ERR_INIT;
    if (tokens_read(place->fd, &tokens, &st, err) < 0)
        return explain(place, err);
    if (usage_read(place->fd, &usage, &none) < 0)
        cli_term_note("%s", none.text);
    if (o->json) {
        own_json list = json_array();
        for (size_t i = 0; i < tokens.count; i++) {
            const struct usage_row *row = usage_find(&usage, tokens.at[i].id);
            json_array_append_new(list, cli_token_json(&tokens.at[i], row ? row->used_at : 0));
        }
        own_json out = json_pack("{s:O}", "tokens", list);
        return cli_term_json(out);
    }
    if (tokens.count == 0)
        cli_term_note("there are no tokens in %s; 'cupel token new NAME' makes one", place->path);
    else
        cli_token_show(&tokens, &usage, (int64_t)time(NULL));
    return 0;
}

/* --- rm --- */

static int remove_all(struct tokens *tokens, const struct cli_token_options *o, json_t *out_removed,
                      struct err *err)
{
    for (size_t i = 0; i < o->names.count; i++) {
        const char *name = o->names.at[i];
        struct tokens_token *token = tokens_find(tokens, name);
        if (!token) {
            err_set(err, ERR_ABSENT, "there is no token '%.80s'", name);
            err_hint(err, "nothing was removed; 'cupel token ls' lists the tokens");
            return -1;
        }
        json_array_append_new(out_removed,
                              json_pack("{s:s, s:s}", "id", token->id, "name", token->name));
        tokens_remove(tokens, token);
    }
    return 0;
}

static int go_rm(const struct place *place, const struct cli_token_options *o, struct err *err)
{
    own_tokens tokens = TOKENS_INIT;
    own_json removed = json_array();
    struct stat st;
    own_fd lock = tokens_lock(place->fd, err);
    if (lock < 0 || tokens_read(place->fd, &tokens, &st, err) < 0 ||
        remove_all(&tokens, o, removed, err) < 0 || tokens_write(place->fd, &tokens, err) < 0)
        return explain(place, err);
    own_json out = json_pack("{s:O}", "removed", removed);
    return o->json ? cli_term_json(out) : 0;
}

/* --- the command --- */

static int (*const verbs[CLI_TOKEN_VERBS])(const struct place *place,
                                           const struct cli_token_options *o, struct err *err) = {
    [CLI_TOKEN_NEW] = go_new,
    [CLI_TOKEN_LS] = go_ls,
    [CLI_TOKEN_RM] = go_rm,
};

static int run_verb(enum cli_token_verb verb, int argc, char **argv)
{
    struct cli_token_options options = { 0 };
    struct place place = { .fd = -1 };
    struct err err = ERR_INIT;
    int code = 0;
    int parsed = cli_token_options_parse(verb, argc, argv, &options, &err);
    cli_term_set_quiet(options.quiet);
    if (parsed == 0 && options.help)
        cli_token_options_help(verb);
    else if (parsed < 0 || open_place(&place, &err) < 0 ||
             (code = verbs[verb](&place, &options, &err)) < 0)
        code = cli_term_refuse(&err, options.json);
    own_close_fd(&place.fd);
    cli_token_options_done(verb, &options);
    return code;
}

static const char *verb_name(const void *table, size_t i)
{
    return ((const struct cli_command *)table)[i].name;
}

int cli_cmd_token(int argc, char **argv)
{
    struct err err = ERR_INIT;
    if (argc > 0 && (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0)) {
        cli_token_options_help(CLI_TOKEN_VERBS);
        return 0;
    }
    for (size_t i = 0; argc > 0 && i < cli_token_commands.count; i++)
        if (strcmp(argv[0], cli_token_commands.at[i].name) == 0)
            return run_verb((enum cli_token_verb)i, argc - 1, argv + 1);
    const char *near = argc > 0 ? opt_nearest(argv[0], cli_token_commands.count, verb_name,
                                              cli_token_commands.at)
                                : NULL;
    if (argc == 0)
        err_set(&err, ERR_USAGE, "'cupel token' needs a command");
    else
        err_set(&err, ERR_USAGE, "unknown command 'token %.80s'", argv[0]);
    if (near)
        err_hint(&err, "did you mean cupel token %s?", near);
    else
        err_hint(&err, "cupel token --help lists the commands");
    return cli_term_refuse(&err, /* json= */ false);
}
