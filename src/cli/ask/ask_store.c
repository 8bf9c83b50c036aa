/* The store of tasks for `cupel ask`, `chat` and `tasks`. Runs in the cli process, and as root for
 * one answer in a child of it: which files a task had must be known while they can be opened as the
 * caller, but nothing of the store is read with the caller's rights. */
#include "cli/ask/ask_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/json.h"
#include "base/own.h"
#include "box/host/box.h"
#include "cli/link/settings.h"
#include "cli/link/state_files.h"
#include "cli/term/term.h"

#define PEEK_MAX (8u << 20)
#define KEPT_MAX ((size_t)64 << 20) /* bytes of all files that were made */

/* A configuration that cannot be read is refused where it matters: with the models. */
static json_t *read_patterns(void)
{
    struct err unheard = ERR_INIT;
    own_config config;
    config_init(&config);
    cli_settings_read(NULL, &config, &unheard);
    return json_deep_copy(config.at[CONFIG_REDACT].value);
}

int cli_ask_store_open(struct cli_ask_store *store, bool imports)
{
    store->patterns = read_patterns();
    store->state_dir = cli_state_open();
    if (store->state_dir >= 0 && imports)
        cli_ask_import_open(store->state_dir, &store->old);
    return store->state_dir < 0 ? -1 : 0;
}

int cli_ask_store_ready(struct cli_ask_store *store, bool reads, struct err *err)
{
    bool makes = !reads || store->old.count > 0;
    size_t count = json_array_size(store->patterns);
    const char **patterns = buf_alloc_zero(count + 1, sizeof *patterns);
    for (size_t i = 0; i < count; i++)
        patterns[i] = json_string_value(json_array_get(store->patterns, i));
    const struct tasklog_options options = { .state_dir = store->state_dir,
                                             .redact = patterns,
                                             .only_if_there = !makes };
    store->log = store->state_dir < 0 ? NULL : tasklog_open(&options, err);
    free(patterns);
    if (store->state_dir < 0)
        return err_set(err, ERR_ABSENT, "there is no state folder");
    if (!store->log)
        return -1;
    cli_ask_import(&store->old, store->log);
    return 0;
}

void cli_ask_store_done(struct cli_ask_store *store)
{
    cli_ask_import_done(&store->old);
    tasklog_close(take_ptr(store->log));
    json_decref(take_ptr(store->patterns));
    own_close_fd(&store->state_dir);
}

/* --- a look as the caller --- */

static json_t *look(struct cli_ask_store *store, const char *id, struct err *err)
{
    struct cli_ask_store mine = { .state_dir = store->state_dir,
                                  .patterns = store->patterns,
                                  .old = store->old };
    if (box_drop_door(err) < 0 || cli_ask_store_ready(&mine, /* reads= */ true, err) < 0)
        return NULL;
    own_json row = tasklog_show(mine.log, NULL, id, err);
    own_json events = row ? tasklog_events(mine.log, NULL, json_get_str(row, "task").at,
                                           /* passing= */ false, err)
                          : NULL;
    json_t *task = NULL, *setup = NULL, *event;
    size_t i;
    json_array_foreach (events, i, event) {
        if (str_is(json_get_str(event, "kind"), "task"))
            task = json_object_get(event, "data");
        else if (str_is(json_get_str(event, "kind"), "setup"))
            setup = json_object_get(event, "data");
    }
    if (events && !task)
        err_set(err, ERR_INPUT, "the record of '%.60s' does not begin with a task", id);
    return task ? json_pack("{s:O, s:O?, s:O}", "task", task, "setup", setup, "row", row) : NULL;
}

static void look_in_child(const struct cli_ask_store *store, const char *id, int fd)
{
    struct err err = ERR_INIT;
    struct cli_ask_store mine = *store;
    own_json found = look(&mine, id, &err);
    own_buf text = BUF_INIT(PEEK_MAX);
    if (found && json_add(&text, found) < 0)
        err_set(&err, ERR_LIMIT, "the record of '%.60s' is too long", id);
    bool told = io_write_all(fd, &err, sizeof err) == 0 &&
                (err.kind != ERR_NONE || io_write_all(fd, text.at, text.len) == 0);
    _exit(told ? 0 : 1);
}

json_t *cli_ask_store_peek(struct cli_ask_store *store, const char *id, struct err *err)
{
    int ends[2];
    own_buf told = BUF_INIT(PEEK_MAX + sizeof *err);
    if (pipe2(ends, O_CLOEXEC) < 0) {
        err_sys(err, "make a pipe");
        return NULL;
    }
    pid_t child = fork();
    if (child == 0)
        look_in_child(store, id, ends[1]);
    close(ends[1]);
    own_fd from = ends[0];
    if (child < 0) {
        err_sys(err, "start a process that looks at the store");
        return NULL;
    }
    int rc = buf_read(&told, from);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    cli_ask_import_done(&store->old); /* the child has imported them */
    if (rc < 0 || told.len < sizeof *err) {
        err_set(err, ERR_BUG, "the process that looks at the store failed");
        return NULL;
    }
    memcpy(err, told.at, sizeof *err);
    err->text[sizeof err->text - 1] = err->hint[sizeof err->hint - 1] = 0;
    if (err->kind != ERR_NONE)
        return NULL;
    return json_read((struct str){ told.at + sizeof *err, told.len - sizeof *err }, PEEK_MAX, err);
}

/* --- the record of a task --- */

int cli_ask_store_begin(struct cli_ask_store *store, const char *id, struct err *err)
{
    int rc = tasklog_begin(store->log, &(struct tasklog_about){ id, "", "cli", 0 }, err);
    store->begun = rc == 0;
    return rc;
}

void cli_ask_store_record(void *user, const char *kind, const json_t *data)
{
    struct cli_ask_store *store = user;
    struct err err = ERR_INIT;
    int rc = 0;
    if (!store->log || store->fault.kind != ERR_NONE)
        return;
    if (!store->begun)
        rc = cli_ask_store_begin(store, json_get_str(data, "task").at, &err);
    if (rc < 0 || tasklog_add(store->log, kind, data, &err) < 0)
        store->fault = err;
}

void cli_ask_store_keep(struct cli_ask_store *store, const struct agent *agent,
                        const json_t *report)
{
    size_t i, left = KEPT_MAX;
    json_t *row;
    struct err err = ERR_INIT;
    if (!store->log || store->fault.kind != ERR_NONE)
        return;
    json_array_foreach (json_object_get(report, "artifacts"), i, row) {
        const char *path = json_string_value(json_object_get(row, "path"));
        struct str bytes = path ? agent_artifact(agent, path) : STR_NONE;
        if (!bytes.at || bytes.len > left)
            continue;
        left -= bytes.len;
        if (tasklog_add_file(store->log, "made", path, json_get_str(row, "mime").at, bytes, &err) <
            0)
            store->fault = err;
    }
}

void cli_ask_store_tell(const struct cli_ask_store *store)
{
    if (store->fault.kind != ERR_NONE)
        cli_term_note("the record of this task is incomplete: %s", store->fault.text);
}

/* --- show --- */

int cli_ask_store_show(struct cli_ask_store *store, const char *id, struct cli_ask_draw *draw,
                       json_t **out_report, struct err *err)
{
    own_json events = tasklog_events(store->log, NULL, id, /* passing= */ true, err);
    size_t i;
    json_t *event;
    if (!events)
        return -1;
    json_array_foreach (events, i, event) {
        json_t *data = json_object_get(event, "data");
        const char *kind = json_get_str(event, "kind").at;
        cli_ask_draw_event(draw, kind, data);
        if (strcmp(kind, "end") == 0) {
            json_decref(*out_report);
            *out_report = json_incref(data);
        } else if (strcmp(kind, "task") == 0 || strcmp(kind, "resumed") == 0) {
            json_decref(take_ptr(*out_report));
        }
    }
    return 0;
}
