/* One run, stage by stage: build, files in, start, the loop until the occupant
 * ended and the box is empty, collect, decide. Whatever ends a run, the box is
 * killed and seen empty before its result is made: nothing can change afterwards.
 * Runs in the engine. */
#include "engine/run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "engine/files.h"
#include "engine/plan.h"

#define SNIPPET_MAX 400 /* bytes of one source line in an error */

/* Wait for one kind of news while nothing else can happen yet. */
static int await(struct run *run, enum box_news_kind kind, struct box_news *news, int fds[5],
                 struct err *err)
{
    for (;;) {
        if (box_receive(&run->engine->broker, news, fds, err) < 0)
            return -1;
        if (news->box == run->box && news->kind == BOX_NEWS_FAILED)
            return box_failure(news, err);
        if (news->box == run->box && news->kind == kind)
            return 0;
        for (int i = 0; i < 5; i++)
            own_close_fd(&fds[i]);
    }
}

static int porter(struct run *run, bool collect, struct err *err)
{
    struct box_call call = { .op = BOX_OP_PORTER, .box = run->box };
    struct box_news news;
    int fds[5];
    call.porter.collect = collect;
    if (box_send(&run->engine->broker, &call, NULL, 0, err) < 0 ||
        await(run, BOX_NEWS_PORTER, &news, fds, err) < 0)
        return -1;
    return fds[0];
}

static int build(struct run *run, struct plan *plan, struct err *err)
{
    struct box_news news;
    int fds[5];
    plan->create.box = plan->start.box = run->box;
    if (box_send(&run->engine->broker, &plan->create, plan->plant_fds,
                 plan->create.create.plant_count, err) < 0 ||
        await(run, BOX_NEWS_READY, &news, fds, err) < 0)
        return -1;
    run->created = true;
    if (run->request->file_count == 0)
        return 0;
    own_fd sock = porter(run, /* collect= */ false, err);
    return sock < 0 ? -1 : files_put(sock, run->request, err);
}

static void note_walls(struct run *run, uint32_t walls)
{
    for (int i = 0; i < BOX_WALL_COUNT; i++) {
        json_t *list = walls & 1u << i ? run->result->walls : run->result->missing;
        json_array_append_new(list, json_string(box_wall_names[i]));
    }
}

static int start(struct run *run, struct plan *plan, struct err *err)
{
    struct box_news news;
    int fds[5];
    if (box_send(&run->engine->broker, &plan->start, &plan->exec_block, 1, err) < 0 ||
        await(run, BOX_NEWS_STARTED, &news, fds, err) < 0)
        return -1;
    run->started_ns = clock_now_ns();
    run->deadline_ns = run->started_ns + run_limit(run, LIMITS_TIMEOUT) * 1000000;
    run->facts.started = true;
    note_walls(run, news.walls);
    static const enum run_source places[] = { RUN_IN, RUN_OUT, RUN_ERR, RUN_CONTROL, RUN_LISTENER };
    static const uint32_t events[] = { EPOLLOUT, EPOLLIN, EPOLLIN, EPOLLIN | EPOLLOUT, EPOLLIN };
    for (size_t i = 0; i < array_len(places); i++) {
        if (fcntl(fds[i], F_SETFL, O_NONBLOCK) < 0 && places[i] != RUN_LISTENER)
            return err_sys(err, "set a pipe non-blocking");
        if (run_add_source(run, places[i], fds[i], events[i]) < 0)
            return err_sys(err, "watch a pipe of the box");
    }
    run->notify.fd = run->fd[RUN_LISTENER];
    if (run->to_stdin.len == 0)
        run_drop_source(run, RUN_IN);
    run_plan_cpu_look(run);
    return 0;
}

static void add_spill(struct run *run, int which, const struct result_stream *stream,
                      const char *path)
{
    struct buf *spill = &run->spill[which];
    if (!stream->truncated || spill->len == 0)
        return;
    uint64_t len = spill->len;
    result_add_artifact(run->result, str_of(path), buf_take(spill), len, NULL);
}

/* With nothing written since the start there is nothing to collect. */
static bool wrote_files(const struct run *run)
{
    return run->request->file_count > 0 || run->stats.blocks_free != run->stats.blocks_at_start ||
           run->stats.inodes_free != run->stats.inodes_at_start;
}

static int collect(struct run *run, struct err *err)
{
    struct files_caps caps = { 0 };
    if (wrote_files(run)) {
        own_fd sock = porter(run, /* collect= */ true, err);
        if (sock < 0 || files_collect(sock, run->request, run->result, &caps, err) < 0)
            return -1;
    }
    add_spill(run, 0, &run->result->out, ".cupel/stdout");
    add_spill(run, 1, &run->result->err_stream, ".cupel/stderr");
    run->facts.artifact_bytes_hit = caps.bytes_hit;
    run->facts.artifact_files_hit = caps.count_hit;
    return 0;
}

/* Bash reports the line of its last failing command; it is the run's if its code
 * is. The source line comes from our own copy of the code, for syntax errors too. */
static void take_fail_line(struct run *run)
{
    struct result_error *error = &run->result->error;
    struct str code = run->request->code;
    if (error->kind == RESULT_E_NONE && run->driver.fail_code == run->facts.exit_code)
        error->line = run->driver.fail_line;
    if (run->request->language != REQUEST_BASH || error->line <= 0 || error->snippet)
        return;
    const char *at = code.at, *end = code.at + code.len;
    for (int64_t line = 1; at && line < error->line; line++) {
        at = memchr(at, '\n', (size_t)(end - at));
        at = at ? at + 1 : NULL;
    }
    if (!at || at >= end)
        return;
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    struct str text = { at, (size_t)((stop ? stop : end) - at) };
    text.len = str_cut_utf8(text, SNIPPET_MAX);
    error->snippet = buf_strdup(text);
}

static void conclude(struct run *run)
{
    struct result *result = run->result;
    struct result_facts *facts = &run->facts;
    facts->oom_kills = (uint64_t)run->stats.oom_kills;
    facts->pids_hits = (uint64_t)run->stats.pids_hits;
    facts->stdout_hit = result->out.truncated;
    facts->stderr_hit = result->err_stream.truncated;
    facts->driver_exception = run->driver.error.kind != RESULT_E_NONE;
    facts->driver_interrupted = run->driver.interrupted;
    result->cpu_ms = (double)run->stats.cpu_us / 1000;
    result->memory_peak_bytes = run->stats.memory_peak_bytes;
    if (run->driver.results) {
        json_decref(result->results);
        result->results = take_ptr(run->driver.results);
    }
    result->error = run->driver.error;
    memset(&run->driver.error, 0, sizeof run->driver.error);
    take_fail_line(run);
    notify_report(&run->notify, result);
    if (facts->signal == SIGSYS)
        result_add_denied(result, "foreign_abi", 1);
    result_decide(result, facts);
    result_explain(result, facts);
}

static int run_stages(struct run *run, struct plan *plan, struct err *err)
{
    int64_t began = clock_now_ns();
    if (build(run, plan, err) < 0 || start(run, plan, err) < 0)
        return -1;
    run->result->start_ms = clock_ms_between(began, run->started_ns);
    own_str line = plan_driver_line(run->request);
    run->to_control = str_of(line);
    run_loop(run, err);
    int64_t ended = clock_now_ns();
    /* It ran, so there is a result, even if it says that the failure is ours. */
    bool ours = run->broken || collect(run, err) < 0;
    run->facts.killed_for = ours ? RESULT_INTERNAL : run->facts.killed_for;
    run->result->collect_ms = clock_ms_between(ended, clock_now_ns());
    conclude(run);
    if (ours) {
        free(run->result->error.message);
        run->result->error.message = buf_strdup(str_of(err->text));
    }
    if (run->engine->trace)
        fprintf(stderr, "trace: kill_to_empty_ms=%.3f\n",
                (double)run->stats.kill_to_empty_us / 1000);
    return 0;
}

int run_on_box(struct engine *engine, const struct request *request, const char *font_list,
               int font_fd, const struct engine_hooks *hooks, struct result *out, struct err *err)
{
    struct plan plan attr_cleanup(plan_done) = PLAN_INIT;
    size_t spill = (size_t)request->limits.value[LIMITS_ARTIFACT_BYTES];
    struct run run = {
        .engine = engine, .request = request, .hooks = hooks, .result = out,
        .box = engine->next_box++ % BOX_MAX, .fd = { -1, -1, -1, -1, -1, -1, -1, -1 },
        .to_stdin = request->stdin_text, .driver = DRIVER_INIT, .notify.fd = -1,
        .spill = { BUF_INIT(spill), BUF_INIT(spill) },
        .deadline_ns = INT64_MAX, .cpu_look_ns = INT64_MAX, .again_ns = INT64_MAX,
    };
    if (plan_make(request, font_list, font_fd, &plan, err) < 0)
        return -1;
    own_fd epoll = epoll_create1(EPOLL_CLOEXEC);
    own_fd timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    run.epoll = epoll;
    run.timer = timer;
    bool watched = epoll >= 0 && timer >= 0 &&
                   run_add_source(&run, RUN_BROKER, engine->broker.sock, EPOLLIN) == 0 &&
                   run_add_source(&run, RUN_TIMER, timer, EPOLLIN) == 0;
    if (watched && hooks->interrupt_fd >= 0)
        watched = run_add_source(&run, RUN_INTERRUPT, hooks->interrupt_fd, EPOLLIN) == 0;
    if (!watched)
        return err_sys(err, "make the event loop");
    int failed = run_stages(&run, &plan, err);
    struct err ignored = ERR_INIT;
    for (int source = RUN_IN; source <= RUN_LISTENER; source++)
        run_drop_source(&run, (enum run_source)source);
    driver_done(&run.driver);
    buf_done(&run.spill[0]);
    buf_done(&run.spill[1]);
    struct box_call release = { .op = BOX_OP_RELEASE, .box = run.box };
    if (run.broken)
        box_broker_close(&engine->broker); /* its death takes everything with it */
    else if (run.created)
        box_send(&engine->broker, &release, NULL, 0, &ignored);
    return failed;
}
