/* Cells: runs in a session's box. A cell borrows the session's file descriptors and gives them
 * back. The session settles its own state before it tells the result. Runs in the engine. */
#include "engine/session/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "engine/run/run.h"

/* --- begin --- */

bool session_drain_words(struct session *session)
{
    char bytes[4096];
    int i = 0;
    while (i < 64 && read(session->streams.fd[RUN_WORDS], bytes, sizeof bytes) > 0)
        i++;
    return i > 0;
}

/* May the cell begin now? If not, the rest is done here. */
static bool may_go(struct session *session)
{
    struct engine_run *run = session->queue.cell;
    files_drop(&session->box.files);
    if (run && session->step.err.kind == ERR_NONE && !session_is_dead(session))
        return true;
    if (!run) /* the client cancelled it */
        session_next(session);
    else if (session->step.err.kind != ERR_NONE)
        run_refuse(run, &session->step.err);
    else
        session_mend(session); /* the interpreter died while the cell waited for its turn */
    return false;
}

static void write_line(struct session *session, struct engine_run *run)
{
    const struct request *request = run->request;
    const struct session_box *box = &session->box;
    bool bare = box->forked && box->interpreter == SESSION_I_FRESH;
    run->result.cell = ++session->queue.cells;
    run->result.base_cell = session->states.cell;
    driver_expect(&run->driver);
    run->driver.may_call = run->hooks.tools != NULL;
    /* One secret for all cells: code of an earlier one may write at any time. */
    if (session->streams.secret[0])
        memcpy(run->order.secret, session->streams.secret, sizeof run->order.secret);
    else
        memcpy(session->streams.secret, run->order.secret, sizeof session->streams.secret);
    run->line = request->language == REQUEST_BASH
                    ? plan_bash_cell(request, run->hooks.tools, session->queue.cells,
                                     run->driver.nonce)
                    : plan_cell_line(request, bare ? &session->request : NULL,
                                     &(struct plan_cell){ .number = session->queue.cells,
                                                          .nonce = run->driver.nonce,
                                                          .sign = run->order.secret,
                                                          .tools = run->hooks.tools,
                                                          .hush = session->streams.hush,
                                                          .input = run->hooks.input });
    run->to_driver = str_of(run->line);
    if (request->language == REQUEST_PYTHON)
        run->to_stdin = request->stdin_text;
    /* Python keeps an interrupt until it has read the line; only the first line of an interpreter,
     * and a hushed one, discard it. */
    run->may_miss_interrupt = request->language != REQUEST_PYTHON || session->streams.hush ||
                              box->interpreter == SESSION_I_FRESH;
}

void session_cell_go(struct session *session)
{
    struct engine_run *run = session->queue.cell;
    struct box_news news = { .walls = session->box.walls, .stats = session->box.stats };
    struct box_stats *stats = &news.stats;
    if (!may_go(session))
        return;
    session_await(session, SESSION_RUNNING);
    session->step.task = SESSION_T_CELL;
    run->box = session->box.id;
    session_late_drain(session); /* of the last cell */
    write_line(session, run);
    order_hand_over(&session->late.order, &run->order);
    if (session->box.interpreter == SESSION_I_FRESH)
        session->box.interpreter = SESSION_I_USED;
    session->states.stayed[0] = 0;
    session_drain_words(session);
    for (int i = 0; i < BOX_NEWS_FDS; i++)
        run->taken.fd[i] = take_fd(&session->streams.fd[i]);
    run->since_ns = session_files_now_ns();
    run->result.warm = true;
    stats->cpu_us_at_start = stats->oom_kills_at_start = stats->pids_hits_at_start = 0;
    if (counters_read(run->taken.fd + RUN_PIPES, stats) == 0) {
        stats->cpu_us_at_start = stats->cpu_us;
        stats->oom_kills_at_start = stats->oom_kills;
        stats->pids_hits_at_start = stats->pids_hits;
    }
    stats->cpu_us = stats->oom_kills = stats->pids_hits = 0;
    if (run_watch(run, run->taken.fd, &news) < 0) {
        session_end(session, "its pipes could not be watched");
        return;
    }
    if (session->states.news[0])
        run_say(run, session->states.news);
    session->states.news[0] = 0;
}

void session_cell_on_in_porter(struct session *session)
{
    if (!session->queue.cell) {
        session_cell_go(session);
        return;
    }
    const struct request *request = session->queue.cell->request;
    files_session_put(session_await_files(session, SESSION_IN_FILES), request->files,
                      request->file_count);
}

void session_cell_on_admitted(struct session *session)
{
    struct engine_run *run = session->queue.cell;
    run->pooled = true; /* it waited: its figures are differences */
    run->stage = RUN_FILES_IN;
    if (run->request->file_count > 0)
        session_need_porter(session, SESSION_IN_PORTER);
    else
        session_cell_go(session);
}

/* --- end --- */

/* The session has its file descriptors again; the run keeps nothing of the box. */
static void take_back(struct session *session)
{
    struct engine_run *run = session->queue.cell;
    run->finished_ns = clock_now_ns();
    run->stage = RUN_FILES_OUT;
    for (int i = 0; i < RUN_PIPES; i++) {
        if (i != RUN_IN)
            session->streams.fd[i] = run_take_pipe(run, (enum run_pipe_id)i);
    }
    for (int i = 0; i < BOX_COUNTERS; i++)
        session->streams.fd[RUN_PIPES + i] = take_fd(&run->counter[i]);
    order_hand_over(&run->order, &session->late.order);
    run_unwatch(run);
    due_set(run->engine->house.broker.due, session->box.id, 0, 0);
    run->box = HOUSE_NOBODY;
}

static void finish(struct session *session, enum result_state state)
{
    struct engine_run *run = session->queue.cell;
    session->queue.cell = NULL;
    /* An interrupt that did not end a Python cell may come late. To node any may: it was perhaps
     * sent again, or node's own watch kept it (forgetInterrupts in drivers/cells.cjs). */
    session->streams.hush = run->facts.interrupt_sent &&
                            (session->request.language != REQUEST_PYTHON ||
                             !run->driver.interrupted || run->may_miss_interrupt);
    run->result.state = session->states.last = state;
    run->result.late = session_late_take(session);
    if (state == RESULT_STATE_ROLLED_BACK) {
        run->result.state_cell = session->states.cell;
        run->result.lost = session_lost_json(session->states.lost);
    }
    run_finish(run);
    if (state == RESULT_STATE_KEPT) {
        session->states.since++;
        session->states.cell = session->queue.cells;
        session->states.is_protected = false;
    }
    if (session->states.is_protected)
        session_next(session);
    else
        session_protect(session);
}

void session_cell_on_anew(struct session *session)
{
    if (session->step.err.kind != ERR_NONE)
        session_end(session, "its interpreter died, and no other could be started");
    else
        finish(session, RESULT_STATE_LOST);
}

static void keep_cell(struct session *session)
{
    if (session_has_files(session))
        session_need_porter(session, SESSION_OUT_PORTER);
    else
        finish(session, RESULT_STATE_KEPT);
}

void session_cell_on_back(struct session *session)
{
    if (session->step.err.kind == ERR_NONE)
        finish(session, RESULT_STATE_ROLLED_BACK);
    else if (session->states.stayed[0])
        keep_cell(session);
    else
        session_sweep(session, SESSION_EMPTYING);
}

static void undo_cell(struct session *session)
{
    if (session->states.levels > 0)
        session_go_back(session, session_newest(session), SESSION_T_CELL);
    else
        session_sweep(session, SESSION_EMPTYING);
}

void session_cell_on_collected(struct session *session)
{
    struct engine_run *run = session->queue.cell;
    run->facts.artifact_bytes_hit = session->box.files.bytes_hit;
    run->facts.artifact_files_hit = session->box.files.count_hit;
    files_drop(&session->box.files);
    if (session_is_dead(session))
        undo_cell(session); /* it died just after its last word */
    else
        finish(session, RESULT_STATE_KEPT);
}

void session_cell_on_out_porter(struct session *session)
{
    struct engine_run *run = session->queue.cell;
    files_session_collect(session_await_files(session, SESSION_OUT_FILES), run->request,
                          &run->result, run->since_ns, &session->box.seen);
}

void session_cell_on_done(struct session *session)
{
    struct engine_run *run = session->queue.cell;
    struct session_states *states = &session->states;
    if (session->box.interpreter == SESSION_I_WOKEN)
        session->box.interpreter = SESSION_I_USED;
    session->streams.tasks_wait = run->driver.tasks;
    session->streams.tasks_run = false;
    run->facts.exited = true;
    run->facts.exit_code = run->driver.done_code;
    run->facts.disk_full = run->stats.blocks_free == 0 || run->stats.inodes_free == 0;
    take_back(session);
    run->result.wall_ms = run_wall_ms(run, run->finished_ns);
    bool failed = run->driver.error.kind != RESULT_E_NONE || run->driver.done_code != 0;
    bool unwanted = run->request->on_error == REQUEST_ROLLBACK && failed;
    if (unwanted && states->is_protected) {
        undo_cell(session);
        return;
    }
    if (unwanted)
        snprintf(states->stayed, sizeof states->stayed, "%s", states->unprotected);
    keep_cell(session);
}

/* --- what the result says of the session --- */

static void explain(struct engine_run *run)
{
    struct session *session = run->session;
    const struct session_states *states = &session->states;
    struct result_error *error = &run->result.error;
    enum result_state state = run->result.state;
    char name[RESULT_STATE_TEXT];
    own_buf text = BUF_INIT(4096);
    if (error->hint) {
        buf_add_text(&text, error->hint);
        buf_add_text(&text, "; ");
    }
    if (session->life.ended[0]) {
        buf_printf(&text, "the session ended: %s", session->life.ended);
    } else if (state == RESULT_STATE_ROLLED_BACK) {
        buf_printf(&text,
                   "the session goes on from %s: what came later is undone, and background "
                   "processes have ended",
                   result_state_text(states->cell, name));
        session_lost_text(states->lost, &text);
    } else if (state == RESULT_STATE_LOST) {
        buf_add_text(&text, "the interpreter was started anew: names are gone, files are as the "
                            "cell left them");
    } else if (state == RESULT_STATE_KEPT && states->stayed[0]) {
        buf_printf(&text,
                   "what the cell did is kept: the state before it cannot be brought back: "
                   "%s",
                   states->stayed);
    } else if (state == RESULT_STATE_KEPT && run->facts.timed_out) {
        buf_add_text(&text, "the cell was interrupted: what it did before is kept, and threads and "
                            "processes that it started may go on");
    } else {
        return;
    }
    if (error->kind != RESULT_E_NONE) {
        free(error->hint);
        error->hint = buf_take(&text);
    } else if (!session->life.ended[0] && state != RESULT_STATE_KEPT) {
        /* The cell ended well, and its interpreter died just after: the result has no error. */
        session_tell_death(session, "just after the cell", state);
    }
}

/* --- the run of a cell --- */

void session_cell_on_news(struct session *session)
{
    run_on_news(session->queue.cell, session->step.news);
}

static void cell_admitted(struct engine_run *run)
{
    session_happens(run->session, SESSION_E_ADMITTED);
}

/* The words of a cell that was killed come too late: a sweep ends it. */
static void cell_done(struct engine_run *run)
{
    if (run->killed)
        return;
    run_read_counters(run);
    run_drain_written(run); /* before its last word; the rest is late */
    if (run->stats.oom_kills > 0)
        run_kill(run, RESULT_OK); /* a part of it was killed */
    else
        session_happens(run->session, SESSION_E_DONE);
}

static void cell_swept(struct engine_run *run)
{
    struct session *session = run->session;
    session->step.stage = SESSION_BUSY;
    run->empty = true;
    run_drain(run);
    take_back(session);
    own_close_fd(&session->streams.fd[RUN_WORDS]);
    own_close_fd(&session->streams.fd[RUN_REQUESTS]);
    if (session->states.levels == 0 && session_has_files(session))
        session_need_porter(session, SESSION_OUT_PORTER);
    else
        undo_cell(session);
}

/* A cell that never began is over: its session goes on, after its step if it has one. The files
 * that are being put are the request's, which goes with the cell. */
static void cell_ended(struct engine_run *run)
{
    struct session *session = run->session;
    enum session_stage stage = session->step.stage;
    if (session->queue.cell != run || stage == SESSION_ENDED)
        return;
    session->queue.cell = NULL;
    if (stage == SESSION_BUSY || stage == SESSION_QUEUED)
        session_next(session);
    else if (stage == SESSION_IN_FILES)
        session_step_failed(session, ERR_CANCELLED, "the cell was cancelled");
    else if (stage == SESSION_RUNNING)
        session_end(session, "its cell could not be ended");
}

static void cell_late(struct engine_run *run, uint32_t cell, bool is_err, struct str bytes)
{
    session_late_add(run->session, cell, is_err, bytes);
}

static const struct run_cell_ops cell_ops = {
    .start = cell_admitted, .done = cell_done, .late = cell_late, .swept = cell_swept,
    .ended = cell_ended, .explain = explain,
};

/* The cell has its turn: now the engine admits it as any run. */
static void begin(struct session_job *job)
{
    struct engine_run *run = loop_owner(job, struct engine_run, job);
    struct session *session = run->session;
    struct err err = ERR_INIT;
    session->queue.cell = run;
    if (queue_enter(&run->engine->queue, &run->queued, run->queued.client, &err) < 0) {
        run_refuse(run, &err);
        return;
    }
    run->queued.housed = true;
    session_await(session, SESSION_QUEUED);
    engine_admit(run->engine);
}

static void refuse(struct session_job *job, const struct err *err)
{
    run_refuse(loop_owner(job, struct engine_run, job), err);
}

/* A cell may insist on a digest, and on packages: those of the session's image. */
static int check_image(const struct session *session, const struct request *request,
                       struct err *err)
{
    const struct image *image = &session->image->image;
    struct str missing;
    char text[160];
    if (image_check_pin(image, request->image_digest, err) < 0)
        return -1;
    if (!request->packages || images_have(image, request->packages, &missing))
        return 0;
    snprintf(text, sizeof text, "%.*s", (int)(missing.len < 120 ? missing.len : 120), missing.at);
    err_input(err, "packages", text, "packages of the session's image",
              "image '%s' of the session does not have package '%s'", image->name, text);
    err_hint(err, "start a new session with these packages, or with another image");
    return -1;
}

struct engine_run *session_begin_cell(struct engine *engine, const struct request *request,
                                      const void *client, const struct engine_hooks *hooks,
                                      struct err *err)
{
    struct session *session = session_find(engine, request->session, err);
    if (!session || check_image(session, request, err) < 0 ||
        session_check_folder(engine, request, -1, err) < 0)
        return NULL;
    struct engine_run *run = run_new(engine, request, session->image, hooks);
    run->session = session;
    run->cell_ops = &cell_ops;
    run->job = (struct session_job){ .begin = begin, .refuse = refuse };
    run->queued.client = client;
    run->queued.held = hooks->held;
    memcpy(run->result.session, session->id, sizeof run->result.session);
    if (session_enter(session, &run->job, err) == 0)
        return run;
    run_drop(run);
    return NULL;
}
