/* Cells: runs in a session's box. A cell borrows the session's descriptors and gives them
 * back; what it did to the state of the session is settled before its result is told.
 * Runs in the engine. */
#include "engine/session/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "engine/run/run.h"

static void go(struct session *session);

/* --- begin --- */

/* Words that nobody asked for: of background work, or forged. They are no cell's. */
static bool drain_words(int fd)
{
    char bytes[4096];
    int i = 0;
    while (i < 64 && read(fd, bytes, sizeof bytes) > 0)
        i++;
    return i > 0;
}

static void tell_news(struct engine_run *run)
{
    struct session *session = run->session;
    if (!session->news[0])
        return;
    run_say(run, session->news);
    session->news[0] = 0;
}

/* May it begin now? If not, what is to be done is done. */
static bool may_go(struct session *session)
{
    struct engine_run *run = session->cell;
    struct err err = session->failed;
    files_drop(&session->files);
    if (!run) { /* it was taken back meanwhile */
        session_next(session);
        return false;
    }
    if (err.kind != ERR_NONE) {
        run_refuse(run, &err);
        return false;
    }
    if (session->gone) { /* while the cell waited for its turn */
        session_died_idle(session, go);
        return false;
    }
    return true;
}

static void go(struct session *session)
{
    struct engine_run *run = session->cell;
    struct box_news news = { .walls = session->walls, .stats = session->stats };
    if (!may_go(session))
        return;
    session->stage = SESSION_CELL;
    run->box = session->box;
    run->result.cell = ++session->cells;
    driver_expect(&run->driver);
    run->line = run->request->language == REQUEST_BASH
                    ? plan_bash_cell(run->request, session->cells, run->driver.nonce)
                    : plan_cell_line(run->request,
                                     session->forked && session->fresh ? &session->request : NULL,
                                     session->cells, run->driver.nonce, session->hush,
                                     run->hooks.input);
    if (run->request->language == REQUEST_PYTHON)
        run->to_stdin = run->request->stdin_text;
    session->fresh = false;
    session->stayed[0] = 0;
    run->to_driver = str_of(run->line);
    drain_words(session->fd[RUN_WORDS]);
    for (int i = 0; i < BOX_NEWS_FDS; i++)
        run->taken.fd[i] = take_fd(&session->fd[i]);
    run->since_ns = session_files_now_ns();
    run->result.warm = true;
    news.stats.cpu_us_at_start = news.stats.oom_kills_at_start = news.stats.pids_hits_at_start = 0;
    if (counters_read(run->taken.fd + RUN_PIPES, &news.stats) == 0) {
        news.stats.cpu_us_at_start = news.stats.cpu_us;
        news.stats.oom_kills_at_start = news.stats.oom_kills;
        news.stats.pids_hits_at_start = news.stats.pids_hits;
    }
    news.stats.cpu_us = news.stats.oom_kills = news.stats.pids_hits = 0;
    if (run_watch(run, run->taken.fd, &news) < 0) {
        session_end(session, "its pipes could not be watched");
        return;
    }
    tell_news(run);
}

static void on_porter(struct session *session)
{
    if (session->failed.kind != ERR_NONE || !session->cell) {
        go(session);
        return;
    }
    const struct request *request = session->cell->request;
    session_await_files(session, go);
    files_session_put(&session->files, &session->engine->loop, session->porter, request->files,
                      request->file_count, session_files_done);
}

void session_cell_start(struct engine_run *run)
{
    struct session *session = run->session;
    run->pooled = true; /* it waited: its figures are differences */
    run->stage = RUN_FILES_IN;
    session->failed = ERR_INIT;
    if (run->request->file_count > 0)
        session_need_porter(session, on_porter);
    else
        go(session);
}

/* --- end --- */

/* The session has its descriptors again; the run keeps nothing of the box. */
static void take_back(struct engine_run *run)
{
    struct session *session = run->session;
    for (int i = 0; i < RUN_PIPES; i++) {
        if (i != RUN_IN)
            session->fd[i] = run_take_pipe(run, (enum run_pipe_id)i);
    }
    for (int i = 0; i < BOX_COUNTERS; i++)
        session->fd[RUN_PIPES + i] = take_fd(&run->counter[i]);
    run_unwatch(run);
    due_set(run->engine->house.broker.due, session->box, 0, 0);
    run->box = HOUSE_NOBODY;
}

static void close_channel(struct session *session)
{
    own_close_fd(&session->fd[RUN_WORDS]);
    own_close_fd(&session->fd[RUN_REQUESTS]);
}

static void finish(struct session *session, enum result_state state)
{
    struct engine_run *run = session->cell;
    session->cell = NULL;
    session->stage = SESSION_WORKING;
    session->hush = run->facts.interrupt_sent; /* it is sent twice, the second may come late */
    run->result.state = session->last = state;
    if (state == RESULT_STATE_ROLLED_BACK) {
        run->result.state_cell = session->state;
        run->result.lost = session_lost_json(session->lost);
    }
    run_finish(run);
    if (state == RESULT_STATE_KEPT) {
        session->since++;
        session->state = session->cells;
        session->is_protected = false;
    }
    if (session->is_protected)
        session_next(session);
    else
        session_protect(session);
}

/* Neither what was kept nor a new interpreter is there. */
static void on_restarted(struct session *session)
{
    if (session->failed.kind != ERR_NONE) {
        session_end(session, "its interpreter died, and no other could be started");
        return;
    }
    finish(session, RESULT_STATE_LOST);
}

static void restart(struct session *session)
{
    session_forget_places(session);
    session_restart(session, on_restarted);
}

static void on_swept_again(struct session *session)
{
    if (session->failed.kind != ERR_NONE)
        session_end(session, "its box could not be emptied");
    else
        restart(session);
}

static void on_porter_out(struct session *session);

static void keep_cell(struct session *session)
{
    if (session_has_files(session))
        session_need_porter(session, on_porter_out);
    else
        finish(session, RESULT_STATE_KEPT);
}

static void on_back(struct session *session)
{
    if (session->failed.kind == ERR_NONE)
        finish(session, RESULT_STATE_ROLLED_BACK);
    else if (session->stayed[0])
        keep_cell(session);
    else
        session_sweep(session, on_swept_again);
}

static void on_collected(struct session *session)
{
    struct engine_run *run = session->cell;
    run->facts.artifact_bytes_hit = session->files.bytes_hit;
    run->facts.artifact_files_hit = session->files.count_hit;
    files_drop(&session->files);
    if (session->gone && session->levels > 0)
        session_go_back(session, session_newest(session), on_back); /* just after its last word */
    else if (session->gone)
        session_sweep(session, on_swept_again);
    else
        finish(session, RESULT_STATE_KEPT);
}

static void on_porter_out(struct session *session)
{
    struct engine_run *run = session->cell;
    if (session->failed.kind != ERR_NONE) {
        on_collected(session);
        return;
    }
    session_await_files(session, on_collected);
    files_session_collect(&session->files, &session->engine->loop, session->porter, run->request,
                          &run->result, run->since_ns, &session->seen, session_files_done);
}

static bool failed(const struct engine_run *run)
{
    return run->driver.error.kind != RESULT_E_NONE || run->driver.done_code != 0;
}

void session_cell_done(struct engine_run *run)
{
    struct session *session = run->session;
    if (run->killed)
        return; /* too late: what it says is swept with it */
    session->unproven = false;
    run_read_counters(run);
    if (run->stats.oom_kills > 0 || !run_drain(run)) {
        run_kill(run, RESULT_OK); /* not all of it lives on, or it floods */
        return;
    }
    run->finished_ns = clock_now_ns();
    run->facts.exited = true;
    run->facts.exit_code = run->driver.done_code;
    run->facts.disk_full = run->stats.blocks_free == 0 || run->stats.inodes_free == 0;
    run->result.wall_ms = clock_ms_between(run->started_ns, run->finished_ns);
    run->stage = RUN_FILES_OUT;
    take_back(run);
    session->stage = SESSION_WORKING;
    bool unwanted = run->request->on_error == REQUEST_ROLLBACK && failed(run);
    if (unwanted && !session->is_protected)
        snprintf(session->stayed, sizeof session->stayed, "%s", session->unprotected);
    if (unwanted && session->is_protected)
        session_go_back(session, session_newest(session), on_back);
    else
        keep_cell(session);
}

void session_cell_swept(struct engine_run *run)
{
    struct session *session = run->session;
    run->empty = true;
    run_drain(run);
    run->finished_ns = clock_now_ns();
    run->stage = RUN_FILES_OUT;
    take_back(run);
    close_channel(session);
    session->stage = SESSION_WORKING;
    if (session->levels > 0)
        session_go_back(session, session_newest(session), on_back);
    else if (session_has_files(session))
        session_need_porter(session, on_porter_out);
    else
        restart(session);
}

void session_cell_ended(struct engine_run *run)
{
    struct session *session = run->session;
    if (session->cell != run || session->stage == SESSION_ENDED)
        return;
    session->cell = NULL;
    if (session->wait == SESSION_NO_WAIT) /* else its step goes on to here */
        session_next(session);
}

/* --- between cells --- */

static void tell_idle_death(struct session *session, enum result_state became)
{
    session->stage = SESSION_WORKING;
    session_tell_death(session, "between cells", became);
    session->idle_then(session);
}

static void on_idle_restarted(struct session *session)
{
    if (session->failed.kind != ERR_NONE)
        session_end(session, "its interpreter died between cells, and could not be replaced");
    else
        tell_idle_death(session, RESULT_STATE_LOST);
}

static void on_idle_swept(struct session *session)
{
    if (session->failed.kind != ERR_NONE) {
        on_idle_restarted(session);
        return;
    }
    session_forget_places(session);
    session_restart(session, on_idle_restarted);
}

static void on_idle_back(struct session *session)
{
    if (session->failed.kind != ERR_NONE)
        session_sweep(session, on_idle_swept);
    else
        tell_idle_death(session, RESULT_STATE_ROLLED_BACK);
}

void session_died_idle(struct session *session, void (*then)(struct session *session))
{
    session->idle_then = then;
    session->stage = SESSION_WORKING;
    if (session->unproven && !drain_words(session->fd[RUN_WORDS]) && session->levels > 0)
        session_leave_newest(session); /* it died before its first word, and would again */
    close_channel(session);
    session->unproven = false;
    if (session->levels > 0)
        session_go_back(session, session_newest(session), on_idle_back);
    else
        session_sweep(session, on_idle_swept);
}

/* --- what the result says of it --- */

void session_explain(struct engine_run *run)
{
    struct session *session = run->session;
    struct result_error *error = &run->result.error;
    enum result_state state = run->result.state;
    char name[RESULT_STATE_TEXT];
    own_buf text = BUF_INIT(4096);
    if (error->hint) {
        buf_add_text(&text, error->hint);
        buf_add_text(&text, "; ");
    }
    if (session->ended[0]) {
        buf_printf(&text, "the session ended: %s", session->ended);
    } else if (state == RESULT_STATE_ROLLED_BACK) {
        buf_printf(&text, "the session goes on from %s: what came later is undone, and background "
                   "processes have ended", result_state_text(session->state, name));
        session_lost_text(session->lost, &text);
    } else if (state == RESULT_STATE_LOST) {
        buf_add_text(&text, "the interpreter was started anew: names are gone, files are as the "
                            "cell left them");
    } else if (state == RESULT_STATE_KEPT && session->stayed[0]) {
        buf_printf(&text, "what the cell did is kept: the state before it cannot be brought back: "
                   "%s", session->stayed);
    } else {
        return;
    }
    if (error->kind != RESULT_E_NONE) {
        free(error->hint);
        error->hint = buf_take(&text);
    } else if (!session->ended[0] && state != RESULT_STATE_KEPT) {
        /* It ended well, and its interpreter died just after: the result has no error to say it. */
        session_tell_death(session, "just after the cell", state);
    }
}
