/* Looks at tasks without an engine: ls, show, export, rm. Runs in the cli process, after the drop
 * of rights but for the open functions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/own.h"
#include "cli/tasks/tasks.h"
#include "cli/term/term.h"
#include "cli/term/visible.h"
#include "store/tasks/export.h"

#define LIST_MAX (64u << 20)
#define QUESTION_WIDTH 60

int cli_tasks_look_open(struct cli_tasks *tasks, struct err *err)
{
    if (cli_ask_store_open(&tasks->ask.store, /* imports= */ true) == 0)
        return 0;
    err_sys(err, "open the state folder");
    err_hint(err, "set CUPEL_STATE to the folder of the engine");
    return -1;
}

/* 0: open; 1: nothing is stored yet; -1: err. */
static int open_log(struct cli_tasks *tasks, struct err *err)
{
    if (cli_ask_store_ready(&tasks->ask.store, /* reads= */ true, err) == 0)
        return 0;
    return err->kind == ERR_ABSENT ? 1 : -1;
}

static int need_log(struct cli_tasks *tasks, struct err *err)
{
    int rc = open_log(tasks, err);
    if (rc <= 0)
        return rc;
    err_set(err, ERR_ABSENT, "there is no task '%.80s'", cli_tasks_id(tasks));
    err_hint(err, "none is recorded yet");
    return -1;
}

/* --- ls --- */

static void add_line(const json_t *row, struct buf *out)
{
    char began[32] = "";
    struct tm utc;
    time_t at = (time_t)json_number_value(json_object_get(row, "began_at"));
    own_buf question = BUF_INIT(4096);
    if (gmtime_r(&at, &utc))
        strftime(began, sizeof began, "%Y-%m-%d %H:%M", &utc);
    cli_visible_line(json_get_str(row, "question"), QUESTION_WIDTH, &question);
    buf_printf(out, "%-26s  %-16s  %s  %3lld  %s\n", json_get_str(row, "task").at,
               json_get_str(row, "status").at, began,
               (long long)json_integer_value(json_object_get(row, "steps")), buf_str(&question).at);
}

/* A page: on standard output, and where the next one begins. */
static char *print_page(struct cli_tasks *tasks, const struct tasklog_filter *filter, bool first,
                        size_t *out_count, struct err *err)
{
    own_json page = tasklog_list(tasks->ask.store.log, filter, err);
    own_buf out = BUF_INIT(LIST_MAX);
    size_t i;
    json_t *row;
    const json_t *list = json_object_get(page, "tasks");
    bool json = tasks->options.ask.run.json;
    *out_count = json_array_size(list);
    if (first && !json && *out_count > 0)
        buf_printf(&out, "%-26s  %-16s  %-16s  %s  %s\n", "TASK", "STATUS", "BEGAN (UTC)", "STEPS",
                   "QUESTION");
    json_array_foreach (list, i, row) {
        if (json && (json_add(&out, row) < 0 || buf_add_text(&out, "\n") < 0))
            err_set(err, ERR_LIMIT, "the list is too long");
        else if (!json)
            add_line(row, &out);
    }
    cli_term_write(STDOUT_FILENO, buf_str(&out));
    const char *next = json_string_value(json_object_get(page, "next"));
    return next ? buf_strdup(str_of(next)) : NULL;
}

int cli_tasks_ls(struct cli_tasks *tasks, struct err *err)
{
    const struct cli_tasks_options *o = &tasks->options;
    double limit = o->limit.given ? o->limit.value : TASKLOG_PAGE;
    struct tasklog_filter filter = { .owner = o->token, .status = o->status };
    own_str next = NULL;
    size_t count = 0;
    if (limit < 1 || limit > TASKLOG_PAGE_MAX)
        return err_input(err, "limit", NULL, "1 to 1000",
                         "option '--limit' is a number, 1 to 1000");
    filter.limit = o->all ? TASKLOG_PAGE_MAX : (int)limit;
    int rc = open_log(tasks, err);
    if (rc < 0)
        return -1;
    for (bool first = true; rc == 0 && (first || (o->all && next)); first = false) {
        filter.before = next;
        char *after = print_page(tasks, &filter, first, &count, err);
        free(next);
        next = after;
        if (err->kind != ERR_NONE)
            return -1;
        if (first && count == 0)
            rc = 1;
    }
    if (rc == 1)
        cli_term_note("no task is recorded%s", o->status || o->token ? " that fits" : " yet");
    else if (next)
        cli_term_note("there are more: --all lists them, --limit N more of them");
    return 0;
}

/* --- show --- */

int cli_tasks_show(struct cli_tasks *tasks, struct err *err)
{
    struct cli_ask_store *store = &tasks->ask.store;
    own_json report = NULL;
    const char *id = cli_tasks_id(tasks);
    if (need_log(tasks, err) < 0)
        return -1;
    own_json row = tasklog_show(store->log, NULL, id, err);
    if (!row)
        return -1;
    if (tasks->options.ask.run.json) {
        own_json events = tasklog_events(store->log, NULL, id, /* passing= */ false, err);
        own_json files = events ? tasklog_files(store->log, NULL, id, err) : NULL;
        if (!files)
            return -1;
        json_object_set(row, "events", events);
        json_object_set(row, "files", files);
        return cli_term_json(row);
    }
    if (cli_ask_store_show(store, id, &tasks->ask.draw, &report, err) < 0)
        return -1;
    if (!report)
        cli_term_note("the record ends before the task did: it is %s",
                      json_get_str(row, "status").at);
    return 0;
}

/* --- export --- */

/* The folder of the file is opened as the caller; its name is written later by the steward. */
int cli_tasks_export_open(struct cli_tasks *tasks, struct err *err)
{
    const char *out = tasks->options.ask.run.out;
    const char *slash = out ? strrchr(out, '/') : NULL;
    const char *as = tasks->options.as;
    if (as && export_form_find(as) < 0)
        return err_input(err, "as", NULL, EXPORT_FORM_NAMES, "unknown form '%.40s': there are %s",
                         as, EXPORT_FORM_NAMES);
    if (!as && (!out || export_form_of_file(out) < 0)) {
        err_set(err, ERR_USAGE, "in which form? --as takes %s", EXPORT_FORM_NAMES);
        err_hint(err, "or name a file: -o report.html, report.md, report.ipynb");
        return -1;
    }
    if (cli_tasks_look_open(tasks, err) < 0)
        return -1;
    if (!out || strcmp(out, "-") == 0)
        return 0;
    own_str folder = slash ? buf_strdup((struct str){ out, (size_t)(slash - out) + 1 })
                           : buf_strdup(STR("."));
    tasks->file = buf_strdup(str_of(slash ? slash + 1 : out));
    return cli_steward_open(folder, &tasks->steward, err);
}

int cli_tasks_export(struct cli_tasks *tasks, struct err *err)
{
    struct tasklog *log;
    const char *id = cli_tasks_id(tasks), *as = tasks->options.as;
    enum export_form form = (enum export_form)(
        as ? export_form_find(as) : export_form_of_file(tasks->options.ask.run.out));
    own_buf text = BUF_INIT(EXPORT_MAX);
    if (need_log(tasks, err) < 0)
        return -1;
    log = tasks->ask.store.log;
    own_json row = tasklog_show(log, NULL, id, err);
    own_json events = row ? tasklog_events(log, NULL, id, /* passing= */ false, err) : NULL;
    own_json pictures = events ? export_pictures(log, NULL, id, err) : NULL;
    if (!pictures || export_write(form, row, events, pictures, &text, err) < 0)
        return -1;
    if (!tasks->file) {
        cli_term_write(STDOUT_FILENO, buf_str(&text));
        return 0;
    }
    if (cli_steward_write(&tasks->steward, str_of(tasks->file), buf_str(&text), err) < 0)
        return -1;
    cli_term_note("wrote %.200s", tasks->options.ask.run.out);
    return 0;
}

/* --- rm --- */

/* A task that is named twice is there once. */
static int collect(struct cli_tasks *tasks, json_t *rows, json_t *ids, struct err *err)
{
    const struct opt_operands *names = &tasks->options.ask.run.operands;
    for (size_t i = 0; i < names->count; i++) {
        own_json row = tasklog_show(tasks->ask.store.log, NULL, names->at[i], err);
        bool known = false;
        size_t j;
        json_t *one;
        if (!row)
            return -1;
        json_array_foreach (rows, j, one)
            known = known || json_equal(json_object_get(one, "task"), json_object_get(row, "task"));
        if (known)
            continue;
        json_array_append(rows, row);
        json_array_append(ids, json_object_get(row, "task"));
    }
    return 0;
}

static void print_preview(const json_t *rows)
{
    own_buf out = BUF_INIT(LIST_MAX);
    size_t i;
    json_t *row;
    json_array_foreach (rows, i, row)
        add_line(row, &out);
    cli_term_write(STDOUT_FILENO, buf_str(&out));
}

int cli_tasks_rm(struct cli_tasks *tasks, struct err *err)
{
    bool yes = tasks->options.ask.yes;
    own_json rows = json_array();
    own_json ids = json_array();
    if (need_log(tasks, err) < 0 || collect(tasks, rows, ids, err) < 0)
        return -1;
    size_t count = json_array_size(ids);
    for (size_t i = 0; yes && i < count; i++)
        if (tasklog_remove(tasks->ask.store.log, NULL, json_string_value(json_array_get(ids, i)),
                           err) < 0)
            return i ? err_wrap(err, "after %zu of %zu tasks", i, count) : -1;
    if (tasks->options.ask.run.json) {
        own_json told = json_pack("{s:b, s:i, s:O}", "removed", yes, "count", (int)count, "tasks",
                                  ids);
        return cli_term_json(told);
    }
    if (!yes)
        print_preview(rows);
    cli_term_note(yes ? "removed %zu task%s" : "%zu task%s: add --yes to remove", count,
                  count == 1 ? "" : "s");
    return 0;
}
