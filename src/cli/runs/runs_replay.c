/* `cupel runs replay`: a recorded run once more, on a running engine or on one of our own. Runs in
 * the cli process: engine and secrets are opened as the caller, records are read after the drop of
 * rights. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/own.h"
#include "cli/link/engine_start.h"
#include "cli/runs/runs.h"
#include "cli/term/interrupt.h"
#include "cli/term/term.h"
#include "replay/remake.h"
#include "replay/replay.h"

#define SECRET_MAX ((size_t)1 << 20)
#define TEXT_MAX ((size_t)64 << 20)

static int refuse_secret(const char *given, struct err *err)
{
    err_set(err, ERR_USAGE, "'--secret %.20s' is not HASH=VALUE or HASH=@FILE", given);
    err_hint(err, "HASH is the last part of a marker: 0123abcd of [redacted:aws-key:0123abcd]");
    return -1;
}

/* The text after '@': a file, without its last newline. */
static json_t *read_secret(const char *path, struct err *err)
{
    own_buf bytes = BUF_INIT(SECRET_MAX);
    own_fd fd = strcmp(path, "-") == 0 ? dup(STDIN_FILENO)
                                       : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0 || buf_read(&bytes, fd) < 0) {
        err_sys(err, "read the secret in '%.200s'", path);
        return NULL;
    }
    if (bytes.len > 0 && bytes.at[bytes.len - 1] == '\n')
        bytes.len--;
    json_t *text = json_stringn(buf_str(&bytes).at, bytes.len);
    if (!text)
        err_set(err, ERR_USAGE, "the secret in '%.200s' is not UTF-8 text", path);
    return text;
}

static int take_secret(json_t *secrets, const char *given, struct err *err)
{
    const char *value = strchr(given, '=');
    char name[REMAKE_HASH + 1] = "";
    if (!value || (size_t)(value - given) != REMAKE_HASH ||
        strspn(given, "0123456789abcdef") != REMAKE_HASH)
        return refuse_secret(given, err);
    memcpy(name, given, REMAKE_HASH);
    json_t *text = value[1] == '@' ? read_secret(value + 2, err) : json_string(value + 1);
    if (!text)
        return err->kind == ERR_NONE ? refuse_secret(given, err) : -1;
    return json_object_set_new(secrets, name, text);
}

int cli_runs_replay_open(struct cli_runs *runs, struct err *err)
{
    runs->secrets = json_object();
    for (size_t i = 0; i < runs->options.secrets.count; i++)
        if (take_secret(runs->secrets, runs->options.secrets.at[i], err) < 0)
            return -1;
    return cli_session_carry(&runs->remote, err);
}

static void on_cell(void *user, const json_t *cell)
{
    const struct cli_runs *runs = user;
    size_t count = json_array_size(json_object_get(cell, "differences"));
    if (runs->options.json || count == 0)
        return;
    cli_term_note("cell %lld already differs",
                  (long long)json_integer_value(json_object_get(cell, "cell")));
}

static void add_one(struct buf *out, const json_t *one)
{
    const char *run = json_string_value(json_object_get(one, "run"));
    const char *now = json_string_value(json_object_get(one, "replayed_as"));
    const json_t *list = json_object_get(one, "differences");
    buf_printf(out, "%s replayed as %s: ", run ? run : "?", now ? now : "?");
    cli_runs_add_total(out, list);
    buf_add_text(out, "\n");
    cli_runs_add_differences(out, list);
}

static void show(const json_t *report)
{
    own_buf out = BUF_INIT(TEXT_MAX);
    size_t i;
    json_t *cell;
    json_array_foreach (json_object_get(report, "cells"), i, cell) {
        if (json_is_true(json_object_get(cell, "same")))
            continue;
        buf_printf(&out, "cell %lld, ",
                   (long long)json_integer_value(json_object_get(cell, "cell")));
        add_one(&out, cell);
    }
    add_one(&out, report);
    cli_term_write(STDOUT_FILENO, buf_str(&out));
}

int cli_runs_replay(struct cli_runs *runs, struct err *err)
{
    own_fd interrupt = -1;
    own_json record = cli_runs_find(runs, runs->options.rest.at[0], err);
    if (!record)
        return -1;
    if (cli_interrupt_open(&interrupt, err) < 0)
        return -1;
    const struct replay how = {
        .engine = &runs->remote.client, .db = runs->db, .state_dir = runs->state_dir,
        .secrets = runs->secrets, .any_image = runs->options.any_image, .cancel_fd = interrupt,
        .on_step = on_cell, .user = runs,
    };
    own_json report = replay_run(&how, json_string_value(json_object_get(record, "run")), err);
    if (!report)
        return -1;
    int code = json_is_true(json_object_get(report, "same")) ? 0 : 1;
    if (runs->options.json)
        return cli_term_json(report) == 0 ? code : 125;
    show(report);
    return code;
}
