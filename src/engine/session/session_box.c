/* The box of a session: orders to the broker, its porter and files, and questions to the
 * interpreter between cells. Runs in the engine. */
#include "engine/session/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"
#include "engine/run/run.h"

/* If the broker cannot be reached, every session ends. */
void session_order(struct session *session, struct box_call *order, const int *fds, size_t count,
                   enum session_stage stage)
{
    order->box = session->box.id;
    session_await(session, stage);
    house_call(&session->engine->house, order, fds, count);
}

/* The same with a new channel for an interpreter, behind `fd` if it is not -1. */
void session_order_channel(struct session *session, struct box_call *order, int fd,
                           enum session_stage stage)
{
    int ours[BOX_CHANNEL], fds[1 + BOX_CHANNEL] = { fd };
    if (house_open_channel(ours, fds + 1) < 0) {
        session_await(session, stage);
        session_step_failed(session, ERR_HOST, "cannot make a channel for the session");
        return;
    }
    for (int i = 0; i < BOX_CHANNEL; i++) {
        own_close_fd(&session->streams.fd[RUN_WORDS + i]);
        session->streams.fd[RUN_WORDS + i] = ours[i];
    }
    session_order(session, order, fds + (fd < 0), array_len(fds) - (fd < 0), stage);
    close(fds[1 + BOX_WORDS]);
    close(fds[1 + BOX_REQUESTS]);
}

static void order_unless(bool done, struct session *session, struct box_call order,
                         enum session_stage stage)
{
    if (!done) {
        session_order(session, &order, NULL, 0, stage);
        return;
    }
    session_await(session, stage);
    session_step_done(session);
}

void session_sweep(struct session *session, enum session_stage stage)
{
    order_unless(session->box.interpreter == SESSION_I_SWEPT, session,
                 (struct box_call){ .op = BOX_OP_SWEEP }, stage);
}

void session_need_porter(struct session *session, enum session_stage stage)
{
    order_unless(session->box.porter >= 0, session,
                 (struct box_call){ .op = BOX_OP_PORTER, .porter.resident = 1 }, stage);
}

void session_drop_copy(struct session *session, uint32_t at, uint64_t ticket)
{
    struct box_call order = { .op = BOX_OP_DROP,
                              .box = session->box.id,
                              .keep = { .state = at, .ticket = ticket } };
    house_call(&session->engine->house, &order, NULL, 0);
}

void session_drop_state(struct session *session, uint32_t at)
{
    struct session_kept *kept = &session->states.kept[at];
    if (!kept->birth)
        session_drop_copy(session, at, kept->ticket);
    if (kept->snapped && session->box.porter >= 0)
        files_session_forget(session->box.porter, at);
    *kept = (struct session_kept){ .used = false };
}

/* --- files --- */

static void on_files(struct files_job *job)
{
    struct session *session = loop_owner(job, struct session, box.files);
    session->step.err = job->err;
    if (job->err.kind == ERR_BUG) { /* the porter died, and its snapshots with it */
        own_close_fd(&session->box.porter);
        session_forget_states(session);
    }
    session_happens(session, SESSION_E_FILES);
}

struct files_job *session_await_files(struct session *session, enum session_stage stage)
{
    session_await(session, stage);
    return files_session_begin(&session->box.files, &session->engine->loop, session->box.porter,
                               on_files);
}

/* By the free space of the disk, which counts everything writable, also /workspace. */
bool session_has_others(const struct session *session)
{
    struct statfs fs;
    int disk = session->streams.fd[RUN_PIPES + BOX_COUNTER_DISK];
    return disk < 0 || fstatfs(disk, &fs) < 0 ||
           (int64_t)fs.f_bfree != session->box.stats.blocks_at_start ||
           (int64_t)fs.f_ffree != session->box.stats.inodes_at_start;
}

bool session_has_files(const struct session *session)
{
    int disk = session->streams.fd[RUN_PIPES + BOX_COUNTER_DISK];
    if (session_has_folder(session))
        return false;
    return session->box.porter >= 0 || session_has_others(session) ||
           counters_work_size(disk, "") != session->box.stats.work_at_start;
}

void session_note_files(struct session *session, enum session_stage stage)
{
    files_session_collect(session_await_files(session, stage), &session->request, NULL,
                          session_files_now_ns(), &session->box.seen);
}

int64_t session_files_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    return clock_ns(now);
}

/* --- questions to the interpreter --- */

static void on_requests(struct loop_source *source, uint32_t events)
{
    struct session *session = loop_owner(source, struct session, streams.requests);
    if (run_write_some(source->fd, &session->streams.to_driver))
        loop_remove(&session->engine->loop, source);
    if (events & EPOLLERR)
        session_step_failed(session, ERR_HOST, "the interpreter has closed its channel");
}

static bool has_answered(const struct session *session)
{
    const struct driver *driver = &session->streams.driver;
    enum session_stage stage = session->step.stage;
    return stage == SESSION_GREETING   ? driver->ready
           : stage == SESSION_RENEWING ? driver->renewed
                                       : driver->answer != NULL;
}

static void on_words(struct loop_source *source, uint32_t events)
{
    static char bytes[65536];
    struct session *session = loop_owner(source, struct session, streams.words);
    (void)events;
    ssize_t n = read(source->fd, bytes, sizeof bytes);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        session_step_failed(session, ERR_HOST, "the interpreter has closed its channel");
        return;
    }
    if (n > 0)
        driver_feed(&session->streams.driver, bytes, (size_t)n);
    if (has_answered(session))
        session_happens(session, SESSION_E_WORD);
    else if (session->streams.driver.deaf)
        session_step_failed(session, ERR_LIMIT, "the interpreter says too much");
}

void session_ask_driver(struct session *session, char *line, enum session_stage stage)
{
    struct session_streams *streams = &session->streams;
    struct loop *loop = &session->engine->loop;
    if (!line) { /* the greeting of an interpreter has no nonce: no code has run in it */
        driver_done(&streams->driver);
        streams->driver = DRIVER_INIT;
    }
    free(streams->line);
    streams->line = line;
    streams->to_driver = line ? str_of(line) : STR_NONE;
    session_await(session, stage);
    streams->words = (struct loop_source){ streams->fd[RUN_WORDS], LOOP_HANDLER(on_words) };
    bool failed = loop_add(loop, &streams->words, EPOLLIN) < 0;
    if (!run_write_some(streams->fd[RUN_REQUESTS], &streams->to_driver)) {
        streams->requests = (struct loop_source){ streams->fd[RUN_REQUESTS],
                                                  LOOP_HANDLER(on_requests) };
        failed |= loop_add(loop, &streams->requests, EPOLLOUT) < 0;
    }
    if (failed)
        session_step_failed(session, ERR_HOST, "cannot watch the channel of the session");
}

char *session_renew_line(struct session *session)
{
    struct driver *driver = &session->streams.driver;
    driver_expect(driver);
    own_json line = json_pack("{s:s, s:s, s:b}", "op", "renew", "nonce", driver->nonce, "seeds", 0);
    return plan_line(line);
}

int session_renew_later(struct session *session)
{
    own_str line = session_renew_line(session);
    ssize_t len = (ssize_t)strlen(line);
    session->box.interpreter = session_is_dead(session) ? SESSION_I_STILLBORN : SESSION_I_WOKEN;
    session->streams.tasks_wait = true; /* it may have some */
    return write(session->streams.fd[RUN_REQUESTS], line, (size_t)len) == len ? 0 : -1;
}

void session_let_tasks_run(struct session *session)
{
    static const char line[] = "{\"op\":\"go\"}\n";
    struct session_streams *streams = &session->streams;
    if (!streams->tasks_wait || session->request.language != REQUEST_PYTHON)
        return;
    streams->tasks_wait = false;
    streams->tasks_run = write(streams->fd[RUN_REQUESTS], line, sizeof line - 1) > 0;
}
