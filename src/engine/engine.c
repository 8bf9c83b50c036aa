/* The engine: opening, closing, admission, and a run's begin and end. Runs in the engine. */
#include "engine/engine.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/own.h"
#include "engine/run/run.h"

static void on_admit(struct loop_timer *timer);
static void on_broken_down(struct loop_timer *timer);

/* Both run from the loop, never inside a door's call. */
static void admit_soon(struct house *house)
{
    struct engine *engine = loop_owner(house, struct engine, house);
    loop_set_timer(&engine->loop, &engine->admit, 0);
}

static void break_soon(struct house *house)
{
    struct engine *engine = loop_owner(house, struct engine, house);
    loop_set_timer(&engine->loop, &engine->breakdown, 0);
}

static void on_tidy(struct loop_timer *timer)
{
    struct engine *engine = loop_owner(timer, struct engine, tidy);
    runs_tidy(engine);
    sessions_tidy(engine);
}

void engine_tidy_soon(struct engine *engine)
{
    loop_set_timer(&engine->loop, &engine->tidy, 0);
}

void engine_set_places(struct engine *engine, struct str places)
{
    free(engine->places);
    engine->places = buf_strdup(places);
    engine->attached.places = (struct str){ engine->places, places.len };
}

static int open_broker(struct engine *engine, struct err *err)
{
    const struct engine_attached *from = engine->options.attached;
    struct box_attach attach[ENGINE_FILES_MAX + ENGINE_TREES_MAX + 2];
    own_fd trees = engine_state_trees(engine->state);
    size_t count = 0;
    if (trees >= 0)
        attach[count++] = (struct box_attach){ .fd = trees, .kind = BOX_ATTACH_IMAGES };
    if (from && from->mode != ENGINE_FOLDER_NONE)
        attach[count++] = (struct box_attach){ from->folder, BOX_ATTACH_DIR,
                                               from->mode == ENGINE_FOLDER_WRITE };
    for (size_t i = 0; from && i < from->file_count && i < ENGINE_FILES_MAX; i++)
        attach[count++] = (struct box_attach){ from->files[i], BOX_ATTACH_FILE, false };
    for (size_t i = 0; from && i < from->tree_count && i < ENGINE_TREES_MAX; i++)
        attach[count++] = (struct box_attach){ from->trees[i], BOX_ATTACH_TREE, false };
    return box_broker_open(&engine->house.broker, attach, count, err);
}

struct engine *engine_open(const struct engine_options *options, struct err *err)
{
    struct engine *engine = buf_alloc_zero(1, sizeof *engine);
    engine->loop = LOOP_INIT;
    engine->house = (struct house){ .broker = BOX_BROKER_INIT,
                                    .source.fd = -1,
                                    .on_broken = break_soon,
                                    .on_released = admit_soon };
    engine->state = -1;
    engine->trace = getenv("CUPEL_TRACE") != NULL;
    engine->options = *options;
    if (options->attached) {
        engine->attached = *options->attached;
        engine->options.attached = &engine->attached;
        engine_set_places(engine, options->attached->places);
    }
    loop_due(&engine->admit, on_admit);
    loop_due(&engine->breakdown, on_broken_down);
    loop_due(&engine->tidy, on_tidy);
    queue_init(&engine->queue, options->runs_max, options->queue_max);
    if (state_open(&engine->state, err) == 0 && open_broker(engine, err) == 0 &&
        box_drop_door(err) == 0) {
        if (loop_open(&engine->loop) == 0 && house_open(&engine->house, &engine->loop) == 0)
            return engine;
        err_sys(err, "make the event loop");
    }
    engine_close(engine);
    return NULL;
}

int engine_warm_up(struct engine *engine, struct err *err)
{
    struct engine_image *image = images_find(engine, "host", err);
    if (!image || engine_probe(engine, err) < 0)
        return -1;
    prepare_find_fonts(engine, image, /* make= */ true);
    return pools_open(&engine->pools, engine, err);
}

void engine_close(struct engine *engine)
{
    if (!engine)
        return;
    engine->house.on_released = NULL;
    engine_asks_silence(engine);
    for (struct engine_run *run = engine->runs; run; run = run->after)
        run->over = true; /* no hook is called after this */
    sessions_close(engine);
    pools_close(&engine->pools);
    house_close(&engine->house);
    while (engine->runs)
        run_drop(engine->runs);
    prepare_done(engine);
    loop_close(&engine->loop);
    images_close(engine);
    own_close_fd(&engine->state);
    free(engine->places);
    free(engine);
}

struct loop *engine_loop(struct engine *engine)
{
    return &engine->loop;
}

bool engine_is_broken(const struct engine *engine, struct err *err)
{
    if (engine->house.broken.kind == ERR_NONE)
        return false;
    *err = engine->house.broken;
    return true;
}

static void on_broken_down(struct loop_timer *timer)
{
    struct engine *engine = loop_owner(timer, struct engine, breakdown);
    box_broker_close(&engine->house.broker); /* all boxes die with the broker */
    sessions_end_all(engine, "the engine's broker died");
    pools_close(&engine->pools);
    for (struct engine_run *run = engine->runs; run; run = run->after)
        run_abandon(run, &engine->house.broken);
}

static int check_tools(const struct request *request, const struct engine_hooks *hooks,
                       struct err *err)
{
    if (!request->tools || hooks->tools)
        return 0;
    err_input(err, "tools", NULL, "a client that answers calls",
              "field 'tools' needs a client that answers the calls");
    err_hint(err, "send the request to a service (`cupel serve`), with events");
    return -1;
}

struct engine_run *engine_begin(struct engine *engine, const struct request *request,
                                const void *client, const struct engine_hooks *hooks,
                                struct err *err)
{
    if (engine_is_broken(engine, err) || check_tools(request, hooks, err) < 0)
        return NULL;
    if (request->session)
        return session_begin_cell(engine, request, client, hooks, err);
    struct engine_image *image = engine_find_image(engine, request, err);
    if (!image || plan_check_installed(request, &image->image, err) < 0 ||
        plan_check_venv(request, &image->image, err) < 0)
        return NULL;
    struct engine_run *run = run_new(engine, request, image, hooks);
    run->queued.held = hooks->held;
    if (queue_enter(&engine->queue, &run->queued, client, err) < 0) {
        run_drop(run);
        return NULL;
    }
    admit_soon(&engine->house);
    return run;
}

void engine_release(struct engine_run *run)
{
    run->queued.held = false;
    admit_soon(&run->engine->house);
}

static void on_admit(struct loop_timer *timer)
{
    struct engine *engine = loop_owner(timer, struct engine, admit);
    for (;;) {
        bool boxes = engine->house.taken < engine->house.limit;
        struct queue_entry *entry = queue_next(&engine->queue, boxes);
        if (!entry)
            return;
        run_start(loop_owner(entry, struct engine_run, queued));
    }
}

void engine_make_id(char out[ENGINE_ID_ROOM])
{
    memcpy(out, "r_", 2);
    hash_random_hex(out + 2, 24);
}

const char *engine_run_id(const struct engine_run *run)
{
    return run->result.run;
}

const struct result *engine_run_result(const struct engine_run *run)
{
    return &run->result;
}

void engine_admit(struct engine *engine)
{
    admit_soon(&engine->house);
}

int engine_input(struct engine_run *run, struct str text, bool end, struct err *err)
{
    if (run->stage != RUN_GOING || run->asked == 0 || run->to_driver.len > 0) {
        err_set(err, ERR_ABSENT, "the code does not wait for input");
        err_hint(err, "answer each 'input' event once");
        return -1;
    }
    own_str line = plan_input_line(run->asked, text, end);
    run->asked = 0;
    run->driver.input_number = 0;
    if (run_say_line(run, str_of(line)) == 0)
        return 0;
    err_set(err, ERR_BUSY, "the code does not read its answers");
    return -1;
}

void engine_set_gate(struct engine *engine, bool (*may_go)(const void *client))
{
    engine->queue.may_go = may_go;
}

void engine_interrupt(struct engine_run *run)
{
    struct err err = ERR_INIT;
    if (run->stage == RUN_GOING) {
        run_wish_to_stop(run);
        return;
    }
    if (run->stage == RUN_FILES_OUT)
        return; /* its result is on the way */
    err_set(&err, ERR_CANCELLED, "cancelled before the code began");
    run_refuse(run, &err);
}

void engine_cancel(struct engine_run *run)
{
    bool going = run->stage == RUN_GOING;
    engine_interrupt(run);
    if (going)
        run_wish_to_stop(run);
}

/* --- the blocking form --- */

struct blocking {
    struct loop_source interrupt;
    struct engine_run *run;
    struct engine *engine;
    void (*on_event)(void *user, const struct engine_event *event);
    void *user;
    struct result *out;
    struct err *err;
    int rc;
};

static void on_blocking_event(void *user, const struct engine_event *event)
{
    struct blocking *blocking = user;
    if (blocking->on_event)
        blocking->on_event(blocking->user, event);
}

static void on_blocking_end(void *user, struct result *result, const struct err *err)
{
    struct blocking *blocking = user;
    blocking->run = NULL;
    blocking->rc = result ? 0 : -1;
    if (!result) {
        *blocking->err = *err;
        return;
    }
    result_done(blocking->out);
    *blocking->out = *result;
    result_init(result); /* taken over */
}

static void on_interrupt(struct loop_source *source, uint32_t events)
{
    struct blocking *blocking = loop_owner(source, struct blocking, interrupt);
    char byte;
    (void)events;
    if (read(source->fd, &byte, 1) != 1)
        loop_remove(&blocking->engine->loop, source);
    else if (blocking->run)
        engine_interrupt(blocking->run);
}

int engine_run_begun(struct engine *engine, const struct request *request,
                     void (*begun)(void *user, struct engine_run *run),
                     void (*on_event)(void *user, const struct engine_event *event), void *user,
                     int interrupt_fd, struct result *out, struct err *err)
{
    struct blocking blocking = {
        .interrupt = { .fd = interrupt_fd, .ready = LOOP_HANDLER(on_interrupt) },
        .engine = engine,
        .on_event = on_event,
        .user = user,
        .out = out,
        .err = err,
    };
    struct engine_hooks hooks = { .on_event = on_blocking_event,
                                  .on_end = on_blocking_end,
                                  .user = &blocking };
    struct engine_image *image = request->session ? NULL : engine_find_image(engine, request, err);
    if (!image && !request->session)
        return -1;
    if (image && !engine->preparing && prepare_wants_fonts(request)) {
        images_hold(image);
        prepare_find_fonts(engine, image, /* make= */ true);
        images_drop(engine, image);
    }
    blocking.run = engine_begin(engine, request, &blocking, &hooks, err);
    if (!blocking.run)
        return -1;
    if (begun)
        begun(user, blocking.run);
    if (interrupt_fd >= 0 && loop_add(&engine->loop, &blocking.interrupt, EPOLLIN) < 0)
        blocking.interrupt.fd = -1;
    while (blocking.run) {
        if (loop_turn(&engine->loop) < 0)
            house_break(&engine->house, "the event loop failed");
    }
    loop_remove(&engine->loop, &blocking.interrupt);
    return blocking.rc;
}

int engine_run(struct engine *engine, const struct request *request,
               void (*on_event)(void *user, const struct engine_event *event), void *user,
               int interrupt_fd, struct result *out, struct err *err)
{
    return engine_run_begun(engine, request, /* begun= */ NULL, on_event, user, interrupt_fd, out,
                            err);
}

const struct ledger *engine_ledger(const struct engine *engine)
{
    return &engine->ledger;
}

json_t *engine_describe(const struct engine *engine)
{
    return json_pack("{s:i, s:i, s:i, s:i, s:I, s:f, s:o, s:o}", "runs", (int)engine->queue.going,
                     "queued", (int)engine->queue.waiting, "boxes", (int)engine->house.taken,
                     "sessions", (int)engine->session_count, "stalls",
                     (json_int_t)engine->loop.stalls, "longest_turn_ms",
                     (double)engine->loop.longest_ns / 1e6, "pools", pools_describe(&engine->pools),
                     "zygotes", pools_describe_zygotes(&engine->pools));
}
