/* One run, stage by stage: a box from a pool or built, files in, start, watch, files out, the
 * result. News from the broker or the porter ends each stage. However a run ends, its box is
 * vacated and never used again. Runs in the engine. */
#include "engine/run/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/own.h"
#include "box/zygote/zygote.h"

#define RUN_START_MS 10000 /* for an occupant to appear; its time begins then */

void run_drop(struct engine_run *run)
{
    *(run->before ? &run->before->after : &run->engine->runs) = run->after;
    if (run->after)
        run->after->before = run->before;
    queue_leave(&run->engine->queue, &run->queued);
    session_leave(&run->job);
    int hold = run->clean ? run_take_pipe(run, RUN_REQUESTS) : -1;
    run_unwatch(run);
    files_drop(&run->files);
    if (run->box != HOUSE_NOBODY)
        house_vacate(&run->engine->house, run->box, run->clean, hold);
    for (int i = 0; i < BOX_NEWS_FDS; i++)
        own_close_fd(&run->taken.fd[i]);
    for (int i = 0; i < BOX_CHANNEL; i++)
        own_close_fd(&run->channel[i]);
    driver_done(&run->driver);
    order_done(&run->order);
    buf_done(&run->lines);
    run_free_larges(run);
    plan_done(&run->plan);
    buf_done(&run->spill[0]);
    buf_done(&run->spill[1]);
    result_done(&run->result);
    images_drop(run->engine, run->image);
    free(run->line);
    free(run);
}

/* The hook may begin another run. The loop frees this one in its next turn, when the answer is
 * sent. */
static void end(struct engine_run *run, const struct err *err)
{
    struct engine *engine = run->engine;
    run->over = true;
    loop_set_timer(&engine->loop, &run->timer, LOOP_NEVER);
    queue_leave(&engine->queue, &run->queued);
    ledger_add(&engine->ledger, run->request->language, err ? NULL : &run->result, err);
    run->hooks.on_end(run->hooks.user, err ? NULL : &run->result, err);
    if (run->session)
        run->cell_ops->ended(run);
    session_leave(&run->job);
    engine_tidy_soon(engine);
    engine_admit(engine);
}

void runs_tidy(struct engine *engine)
{
    for (struct engine_run *run = engine->runs, *after; run; run = after) {
        after = run->after;
        if (run->over)
            run_drop(run);
    }
}

void run_refuse(struct engine_run *run, const struct err *err)
{
    struct err kept = *err;
    end(run, &kept);
}

static void end_with_result(struct engine_run *run, const struct err *ours)
{
    struct result *result = &run->result;
    run->finished_ns = run->finished_ns ? run->finished_ns : clock_now_ns();
    result->collect_ms = clock_ms_between(run->finished_ns, clock_now_ns());
    run_conclude(run, ours);
    if (run->engine->trace)
        fprintf(stderr, "trace: kill_to_empty_ms=%.3f\n",
                (double)run->stats.kill_to_empty_us / 1000);
    end(run, NULL);
}

/* The code ran, so there is a result, even if the failure is ours. */
void run_give_up(struct engine_run *run, const struct err *err)
{
    struct err kept = *err;
    if (run->facts.started)
        end_with_result(run, &kept);
    else
        end(run, &kept);
}

void run_finish(struct engine_run *run)
{
    end_with_result(run, NULL);
}

void run_session_ended(struct engine_run *run, const char *why, bool called_off)
{
    struct err err = ERR_INIT;
    err_set(&err, ERR_BUG, "the session ended: %s", why);
    run->box = HOUSE_NOBODY;
    run->result.state = RESULT_STATE_LOST;
    if (run->over)
        return;
    if (run->facts.started && called_off) {
        run->facts.killed_for = RESULT_INTERRUPTED;
        end_with_result(run, NULL);
        return;
    }
    if (called_off)
        err.kind = ERR_ABSENT;
    run_give_up(run, &err);
}

void run_abandon(struct engine_run *run, const struct err *err)
{
    if (run->over)
        return;
    run_drain(run);
    run_give_up(run, err);
}

static void fail_with(struct engine_run *run, enum err_kind kind, const char *text)
{
    struct err err = ERR_INIT;
    err_set(&err, kind, "%s", text);
    run_give_up(run, &err);
}

/* --- the stages --- */

static void write_line(struct engine_run *run)
{
    bool bash = run->request->language == REQUEST_BASH;
    free(run->line);
    if (run->request->command) {
        run->line = plan_command_message(run->request->command);
        run->to_driver = (struct str){ run->line, PLAN_COMMAND_MESSAGE };
        return;
    }
    /* A bash that did not wait finds its code in a file. */
    run->line = bash ? plan_bash_message(run->request, run->hooks.tools, run->pooled)
                     : plan_driver_line(run->request, run->hooks.tools, run->order.secret,
                                        run->forked || run->pooled);
    run->to_driver = run->line ? str_of(run->line) : STR_NONE;
}

static void go(struct engine_run *run, int fds[BOX_NEWS_FDS], const struct box_news *news)
{
    for (int i = 0; i < BOX_CHANNEL && run->channel[i] >= 0; i++)
        fds[RUN_WORDS + i] = take_fd(&run->channel[i]);
    run->to_stdin = run->request->stdin_text;
    run->result.warm = run->forked || run->pooled;
    if (run_watch(run, fds, news) < 0)
        fail_with(run, ERR_HOST, "cannot watch the pipes of the box");
}

static void go_pooled(struct engine_run *run)
{
    struct box_news news = { .walls = run->taken.walls, .stats = run->taken.stats };
    /* If the broker itself watches the box, it must begin now. */
    if (!(news.walls & BOX_WALL_BIT(MEMORY_CG)) || run->taken.fd[RUN_PIPES + BOX_COUNTER_CPU] < 0)
        house_ask(&run->engine->house, BOX_OP_BEGIN, run->box);
    write_line(run);
    go(run, run->taken.fd, &news);
}

/* The request is in the channel before the occupant exists, so it need not wait for us. */
static int open_channel(struct engine_run *run, int theirs[BOX_CHANNEL])
{
    for (int i = 0; i < BOX_CHANNEL; i++)
        own_close_fd(&run->channel[i]);
    if (house_open_channel(run->channel, theirs) < 0)
        return -1;
    run_write_some(run->channel[BOX_REQUESTS], &run->to_driver);
    return 0;
}

static void start_occupant(struct engine_run *run)
{
    struct box_call *call = &run->plan.start;
    run->stage = RUN_STARTING;
    call->box = run->box;
    run->forked = pools_zygote(&run->engine->pools, run->image, run->request, &call->start.zygote);
    call->op = run->forked ? BOX_OP_FORK : BOX_OP_START;
    call->start.rehearsal = ZYGOTE_NO_REHEARSAL;
    struct err err = ERR_INIT;
    if (!run->forked && plan_add_exec(run->request, &run->image->image, &run->plan, &err) < 0) {
        run_refuse(run, &err);
        return;
    }
    write_line(run);
    int fds[1 + BOX_CHANNEL] = { run->plan.exec_block };
    if (open_channel(run, fds + 1) < 0) {
        fail_with(run, ERR_HOST, "cannot make the pipes of the box");
        return;
    }
    due_set(run->engine->house.broker.due, run->box,
            clock_now_ns() + (RUN_START_MS + run_limit(run, LIMITS_TIMEOUT)) * CLOCK_MS, 0);
    house_call(&run->engine->house, call, fds + run->forked, array_len(fds) - run->forked);
    close(fds[1 + BOX_WORDS]);
    close(fds[1 + BOX_REQUESTS]);
}

static void on_files_in(struct files_job *job)
{
    struct engine_run *run = loop_owner(job, struct engine_run, files);
    struct err err = job->err;
    files_drop(job);
    if (err.kind != ERR_NONE)
        run_refuse(run, &err);
    else if (run->pooled)
        go_pooled(run);
    else
        start_occupant(run);
}

static void on_files_out(struct files_job *job)
{
    struct engine_run *run = loop_owner(job, struct engine_run, files);
    struct err err = job->err;
    run->facts.artifact_bytes_hit = job->bytes_hit;
    run->facts.artifact_files_hit = job->count_hit;
    files_drop(job);
    end_with_result(run, err.kind == ERR_NONE ? NULL : &err);
}

static void ask_for_porter(struct engine_run *run, enum run_stage stage)
{
    struct box_call call = { .op = BOX_OP_PORTER, .box = run->box };
    run->stage = stage;
    call.porter.collect = stage == RUN_FILES_OUT;
    call.porter.layer = call.porter.collect && run_folder(run) == ENGINE_FOLDER_LAYER;
    house_call(&run->engine->house, &call, NULL, 0);
}

static void on_built(struct engine_run *run)
{
    if (run->request->file_count > 0)
        ask_for_porter(run, RUN_FILES_IN);
    else
        start_occupant(run);
}

/* Counting free blocks and inodes is not enough: code can remove as many elsewhere. */
static bool has_files(const struct engine_run *run)
{
    if (run_folder(run) != ENGINE_FOLDER_NONE)
        return run_folder(run) == ENGINE_FOLDER_LAYER; /* what was written through is no result */
    return run->request->file_count > 0 || run->stats.work_size < 0 ||
           run->stats.work_size != run->stats.work_at_start;
}

void run_box_is_empty(struct engine_run *run)
{
    run->finished_ns = clock_now_ns();
    const bool is_kept = !run->request->command || run_folder(run) == ENGINE_FOLDER_LAYER;
    if (has_files(run) && is_kept)
        ask_for_porter(run, RUN_FILES_OUT);
    else
        end_with_result(run, NULL);
}

/* An input may have changed, even a read-only one: the code owns it. */
static bool may_be_final(const struct engine_run *run)
{
    return run->engine->options.warm && run->request->file_count == 0;
}

void run_is_done(struct engine_run *run)
{
    run_thaw(run); /* its last word was on the way; the rest needs live processes */
    if (run->session) {
        run->cell_ops->done(run);
        return;
    }
    bool failed = run->driver.error.kind != RESULT_E_NONE || run->driver.done_code != 0;
    bool counted = counters_read(run->counter, &run->stats) == 0;
    run->asked_at_done = !counted && (failed || may_be_final(run));
    /* Without a cgroup, only the current processes tell of a reached limit. */
    struct box_call stat = { .op = BOX_OP_STAT, .box = run->box, .stat.brief = !failed };
    if (run->asked_at_done)
        house_call(&run->engine->house, &stat, NULL, 0);
    else if (!run_final_if_clean(run))
        run_let_exit(run);
}

bool run_final_if_clean(struct engine_run *run)
{
    const struct box_stats *stats = &run->stats;
    if (!may_be_final(run) || run->killed || run->occupant_gone || run->facts.interrupt_sent ||
        run->notify.reports > 0)
        return false;
    bool wrote = has_files(run) || stats->blocks_free != stats->blocks_at_start ||
                 stats->inodes_free != stats->inodes_at_start;
    bool clean = stats->oom_kills == 0 && stats->pids_hits == 0 && !wrote;
    if (!clean || stats->cpu_us / 1000 >= run_limit(run, LIMITS_CPU) || !run_drain(run))
        return false;
    run->clean = true;
    run->facts.exited = true;
    run->facts.exit_code = run->driver.done_code;
    run->result.wall_ms = run_wall_ms(run, clock_now_ns());
    end_with_result(run, NULL);
    return true;
}

static void on_news(struct house_tenant *tenant, const struct box_news *news, int fds[BOX_NEWS_FDS])
{
    struct engine_run *run = loop_owner(tenant, struct engine_run, tenant);
    struct err err = ERR_INIT;
    if (run->over)
        return;
    if (news->kind == BOX_NEWS_FAILED && run->stage == RUN_STARTING && run->forked) {
        pools_zygote_failed(&run->engine->pools, run->plan.start.start.zygote);
        start_occupant(run); /* exec needs no zygote */
    } else if (news->kind == BOX_NEWS_FAILED) {
        if (news->step != BOX_STEP_EXEC ||
            plan_blame_image(run->request, &run->image->image, news->error, &err) == 0)
            box_failure(news, &err);
        run_give_up(run, &err);
    } else if (news->kind == BOX_NEWS_READY && run->stage == RUN_BUILDING) {
        on_built(run);
    } else if (news->kind == BOX_NEWS_PORTER && run->stage == RUN_FILES_IN) {
        files_put(&run->files, &run->engine->loop, take_fd(&fds[0]), run->request, on_files_in);
    } else if (news->kind == BOX_NEWS_PORTER && run->stage == RUN_FILES_OUT) {
        run_collect(run, take_fd(&fds[0]), on_files_out);
    } else if (news->kind == BOX_NEWS_STARTED && run->stage == RUN_STARTING) {
        go(run, fds, news);
    } else if (run->stage == RUN_GOING) {
        run_on_news(run, news);
    } else if (news->kind == BOX_NEWS_EMPTY && run->stage < RUN_GOING) {
        fail_with(run, ERR_BUG, "the box died before the code began");
    }
}

/* --- begin and end --- */

struct engine_run *run_new(struct engine *engine, const struct request *request,
                           struct engine_image *image, const struct engine_hooks *hooks)
{
    struct engine_run *run = buf_alloc_zero(1, sizeof *run);
    size_t spill = (size_t)request->limits.value[LIMITS_ARTIFACT_BYTES];
    *run = (struct engine_run){
        .engine = engine, .request = request, .image = images_hold(image), .hooks = *hooks,
        .tenant.news = on_news,
        .box = HOUSE_NOBODY, .channel = { -1, -1 }, .plan = PLAN_INIT, .files = FILES_JOB_INIT,
        .driver = DRIVER_INIT, .notify.fd = -1, .spill = { BUF_INIT(spill), BUF_INIT(spill) },
        .deadline_ns = LOOP_NEVER, .cpu_look_ns = LOOP_NEVER, .again_ns = LOOP_NEVER,
        .hear_ns = LOOP_NEVER, .lines = BUF_INIT(RUN_LINES_MAX),
    };
    run->driver.may_call = hooks->tools != NULL;
    if (spill < DRIVER_TOTAL_MAX - DRIVER_RESULTS_BYTES)
        run->driver.results_most = DRIVER_RESULTS_BYTES + spill;
    for (int i = 0; i < BOX_NEWS_FDS; i++)
        run->taken.fd[i] = -1;
    for (int i = 0; i < BOX_COUNTERS; i++)
        run->counter[i] = -1;
    for (int i = 0; i < RUN_PIPES; i++)
        run->pipe[i] = (struct run_pipe){ .source.fd = -1, .run = run };
    run->after = engine->runs;
    if (run->after)
        run->after->before = run;
    engine->runs = run;
    result_init(&run->result);
    run_outputs_init(run);
    if (hooks->id)
        snprintf(run->result.run, sizeof run->result.run, "%s", hooks->id);
    else
        engine_make_id(run->result.run);
    run->result.limits = request->limits;
    run->result.inline_artifacts = request->inline_artifacts;
    run->result.has_seed = request->has_seed;
    run->result.seed = request->seed;
    run->result.tier = "native";
    hash_hex(request->code, run->result.code_sha256);
    request_inputs_sha256(request, run->result.inputs_sha256);
    return run;
}

static void build(struct engine_run *run)
{
    struct engine *engine = run->engine;
    struct err err = ERR_INIT;
    const struct plan_image in = plan_image_of(run->image, prepare_wants_fonts(run->request));
    if (plan_make(run->request, &in, &run->plan, &err) < 0) {
        run_refuse(run, &err);
        return;
    }
    if (!in.font_list && !run_attached(run))
        run->box = pools_take_box(&engine->pools, run->image, run->request, &run->tenant);
    if (run->box != HOUSE_NOBODY) {
        on_built(run);
        return;
    }
    run->box = run_attached(run) ? house_take_attached(&engine->house, &run->tenant)
                                 : house_take(&engine->house, &run->tenant);
    if (run->box == HOUSE_NOBODY) {
        fail_with(run, ERR_BUSY, "every box is taken");
        return;
    }
    run->stage = RUN_BUILDING;
    bool again = engine->options.warm && run->request->language != REQUEST_BASH;
    run->plan.create.create.plants.again = again;
    run->plan.create.box = run->box;
    if (run_attached(run)) {
        if (run_create_attached(run) < 0)
            fail_with(run, ERR_HOST, "cannot make the list of hidden files");
        return;
    }
    house_call(&engine->house, &run->plan.create, run->plan.plant_fds,
               run->plan.create.create.plants.count);
}

void run_start(struct engine_run *run)
{
    struct engine *engine = run->engine;
    run->began_ns = clock_now_ns();
    run->result.queue_ms = clock_ms_between(run->queued.since_ns, run->began_ns);
    run->image = run->session ? run->image : images_renew(engine, run->image);
    run->result.image = buf_strdup(str_of(run->image->image.name));
    run->result.image_digest = buf_strdup(str_of(run->image->image.digest));
    if (run->session) {
        run->cell_ops->start(run);
        return;
    }
    run->pooled = !run->request->command &&
                  pools_take(&engine->pools, run->image, run->request, &run->tenant, &run->taken);
    if (!run->pooled) {
        build(run);
        return;
    }
    run->box = run->taken.box;
    if (run->request->file_count > 0)
        ask_for_porter(run, RUN_FILES_IN);
    else
        go_pooled(run);
}
