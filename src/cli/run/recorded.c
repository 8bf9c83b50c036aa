/* A run by our own engine with its record. Runs in the cli process, in the engine's loop; the
 * records have a thread of their own (store/records/records.h). The engine's gate is shut until the
 * start is stored. */
#include "cli/run/recorded.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/own.h"
#include "cli/link/settings.h"
#include "cli/link/state_files.h"
#include "cli/term/term.h"
#include "store/records/records.h"

struct recorded {
    struct engine *engine;
    struct engine_run *run; /* NULL: it has ended */
    struct records *records;
    struct record *record;
    const struct request *request;
    void (*on_event)(void *user, const struct engine_event *event);
    void *user;
    bool begun, told; /* the start was handed over, and answered */
    bool ended;       /* the end was answered */
    struct err why;   /* an end that was not stored; a start that was not */
};

/* The gate knows the engine's client alone. There is one run in this process. */
static bool gate_is_open;

static bool may_go(const void *client)
{
    (void)client;
    return gate_is_open;
}

int cli_recorded_open(struct cli_recorded *out, struct err *err)
{
    char path[PATH_MAX];
    bool named;
    config_init(&out->config);
    if (cli_settings_read(/* file= */ NULL, &out->config, err) < 0)
        return -1;
    if (!engine_state_path(path, sizeof path, &named)) {
        err_set(err, ERR_HOST, "there is no state folder for the record: HOME is not set");
        err_hint(err, "set CUPEL_STATE to a folder, or leave --record out");
        return -1;
    }
    out->state_dir = cli_state_open();
    if (out->state_dir >= 0)
        return 0;
    err_sys(err, "open the state folder '%.200s' for the record", path);
    err_hint(err, "make it writable for this user, set CUPEL_STATE to another folder, or leave "
                  "--record out");
    return -1;
}

void cli_recorded_close(struct cli_recorded *recorded)
{
    own_close_fd(&recorded->state_dir);
    config_done(&recorded->config);
}

static void on_start_stored(void *user, const struct err *err)
{
    struct recorded *recorded = user;
    recorded->told = true;
    if (err->kind != ERR_NONE) {
        recorded->why = *err;
        if (recorded->run)
            engine_cancel(recorded->run);
        return;
    }
    gate_is_open = true;
    engine_admit(recorded->engine);
}

static void on_begun(void *user, struct engine_run *run)
{
    struct recorded *recorded = user;
    const struct record_about about = { .run = engine_run_id(run), .owner = "", .door = "cli" };
    recorded->run = run;
    recorded->begun = true;
    recorded->record = records_begin(recorded->records, recorded->request, &about, on_start_stored,
                                     recorded);
}

static void on_event(void *user, const struct engine_event *event)
{
    struct recorded *recorded = user;
    if (recorded->on_event)
        recorded->on_event(recorded->user, event);
}

static void on_end_stored(void *user, const struct err *err)
{
    struct recorded *recorded = user;
    recorded->ended = true;
    recorded->why = *err;
}

/* Turns of the loop until the thread has answered. */
static int wait_for(struct recorded *recorded, const bool *answered, struct err *err)
{
    while (!*answered)
        if (loop_turn(engine_loop(recorded->engine)) < 0)
            return err_sys(err, "wait for the record");
    return 0;
}

static int store_end(struct recorded *recorded, const struct result *result, struct err *err)
{
    own_json object = result_to_json(result);
    own_str json = json_write(object, JSON_COMPACT);
    if (!json)
        return err_set(err, ERR_BUG, "the result cannot be written as JSON");
    record_end(recorded->record, result, str_of(json), /* cache= */ NULL, on_end_stored, recorded);
    if (wait_for(recorded, &recorded->ended, err) < 0)
        return -1;
    if (recorded->why.kind == ERR_NONE)
        return 0;
    *err = recorded->why;
    return err_wrap(err, "the run ended, but its record has no end");
}

static int run_and_store(struct recorded *recorded, int interrupt_fd, struct result *out,
                         struct err *out_unstored, struct err *err)
{
    int rc = engine_run_begun(recorded->engine, recorded->request, on_begun, on_event, recorded,
                              interrupt_fd, out, err);
    recorded->run = NULL;
    if (recorded->begun && wait_for(recorded, &recorded->told, err) < 0)
        return -1;
    if (recorded->begun && recorded->why.kind != ERR_NONE) {
        *err = recorded->why;
        return err_wrap(err, "nothing ran, because its record could not be started");
    }
    if (rc < 0 && recorded->record)
        record_fail(recorded->record, err);
    if (rc == 0)
        store_end(recorded, out, out_unstored);
    return rc;
}

/* Retention is the engine's work: a command that runs once removes nothing. */
static struct records *open_records(struct engine *engine, const struct cli_recorded *where,
                                    struct err *err)
{
    const char **patterns = config_texts(&where->config, CONFIG_REDACT);
    const struct records_options options = {
        .loop = engine_loop(engine),
        .state_dir = where->state_dir,
        .durable = json_is_true(where->config.at[CONFIG_DURABLE].value),
        .redact = patterns,
    };
    struct records *records = records_open(&options, err);
    free(patterns);
    return records;
}

int cli_recorded_run(struct engine *engine, const struct cli_recorded *where,
                     const struct request *request,
                     void (*on_event_given)(void *user, const struct engine_event *event),
                     void *user, int interrupt_fd, struct result *out, struct err *out_unstored,
                     struct err *err)
{
    struct recorded recorded = { .engine = engine,
                                 .request = request,
                                 .on_event = on_event_given,
                                 .user = user,
                                 .why = ERR_INIT };
    recorded.records = open_records(engine, where, err);
    if (!recorded.records)
        return -1;
    gate_is_open = false;
    engine_set_gate(engine, may_go);
    int rc = run_and_store(&recorded, interrupt_fd, out, out_unstored, err);
    engine_set_gate(engine, NULL);
    records_close(recorded.records);
    return rc;
}
