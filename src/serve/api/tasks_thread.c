/* Threads of tasks. The functions of the header run in the loop's thread; `live` and its callees in
 * a task's.
 * 1. Signals go to the loop's thread.
 * 2. A thread's last act is its `end` note; the loop joins it then. No thread is detached.
 * 3. The mutex of the queue is held for a few instructions, never during a wait or a hook. */
#include "serve/api/tasks_thread.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"
#include "serve/api/tasks_thread_int.h"

#define STACK_BYTES ((size_t)4 << 20)
#define WAITING_MAX 10000 /* notes of one thread: past it, passing ones are left out */

void tasks_end_done(struct tasks_end *end)
{
    json_decref(end->report);
    for (size_t i = 0; i < end->artifact_count; i++) {
        free(end->artifacts[i].path);
        buf_done(&end->artifacts[i].content);
    }
    free(end->artifacts);
    *end = (struct tasks_end){ 0 };
}

static void note_free(struct note *note)
{
    json_decref(note->data);
    tasks_end_done(&note->end);
    free(note);
}

/* --- in a task's thread --- */

static void wake(int fd)
{
    uint64_t one = 1;
    while (write(fd, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

void tasks_thread_tell(struct tasks_thread *thread, enum note_kind what, const char *kind,
                       json_t *data, struct tasks_end *end)
{
    struct tasks_threads *threads = thread->threads;
    struct note *note = buf_alloc_zero(1, sizeof *note);
    note->of = thread;
    note->what = what;
    note->data = data;
    memcpy(note->kind, kind, strnlen(kind, KIND_ROOM - 1));
    if (end)
        note->end = *end;
    pthread_mutex_lock(&threads->lock);
    *threads->last = note;
    threads->last = &note->next;
    thread->waiting++;
    pthread_mutex_unlock(&threads->lock);
    wake(threads->wake_fd);
}

static bool is_crowded(struct tasks_thread *thread)
{
    pthread_mutex_lock(&thread->threads->lock);
    bool crowded = thread->waiting >= WAITING_MAX;
    pthread_mutex_unlock(&thread->threads->lock);
    return crowded;
}

static void on_event(void *user, const char *kind, const json_t *data)
{
    struct tasks_thread *thread = user;
    if (strcmp(kind, "approval") == 0) /* a client that hears of it may decide at once */
        tasks_ask_expect(thread);
    bool passing = strcmp(kind, "text") == 0 || strcmp(kind, "output") == 0;
    const json_t *left = json_object_get(data, "wall_s_left");
    if (strcmp(kind, "budget") == 0 && json_is_number(left))
        thread->wall_until_ns = clock_now_ns() + (int64_t)(json_number_value(left) * 1e9);
    if (strcmp(kind, "end") != 0 && !(passing && is_crowded(thread))) /* the report comes apart */
        tasks_thread_tell(thread, NOTE_EVENT, kind, json_deep_copy(data), NULL);
}

void tasks_models_close(struct tasks_models *models)
{
    if (models->planner != models->model)
        llm_close(models->planner);
    if (models->judge != models->model)
        llm_close(models->judge);
    llm_close(models->model);
    *models = (struct tasks_models){ 0 };
}

static void let_go(struct tasks_thread *thread)
{
    agent_done(take_ptr(thread->agent));
    agent_past_done(&thread->past);
    tasks_record_close(thread);
    if (thread->connected)
        embed_client_close(&thread->client);
    thread->connected = false;
    tasks_models_close(&thread->models);
}

static int connect_engine(struct tasks_thread *thread, struct err *err)
{
    struct embed_link link = EMBED_LINK_INIT;
    if (embed_adopt(take_fd(&thread->now.engine), &link, err) < 0)
        return -1;
    thread->client = EMBED_CLIENT_INIT;
    embed_client_init(&thread->client, &link);
    thread->connected = true;
    return 0;
}

/* An agent that is ready for agent_run. */
static int prepare(struct tasks_thread *thread, struct err *err)
{
    const struct agent_task *task = &thread->now.task;
    own_json past = take_ptr(thread->now.past);
    if (thread->connected)
        return agent_follow(thread->agent, task->question, task->files, task->file_count, err);
    if (connect_engine(thread, err) < 0)
        return -1;
    if (thread->now.resumes)
        return tasks_record_take_up(thread, err);
    return past ? agent_resume(thread->agent, past, err) : 0;
}

static void take_artifacts(const struct agent *agent, struct tasks_end *end)
{
    size_t i;
    json_t *row;
    const json_t *rows = json_object_get(end->report, "artifacts");
    end->artifacts = buf_alloc_zero(json_array_size(rows) + 1, sizeof *end->artifacts);
    json_array_foreach (rows, i, row) {
        const char *path = json_string_value(json_object_get(row, "path"));
        struct str content = path ? agent_artifact(agent, path) : STR_NONE;
        if (!content.at)
            continue;
        struct tasks_artifact *kept = &end->artifacts[end->artifact_count++];
        kept->path = buf_strdup(str_of(path));
        kept->content = BUF_INIT(content.len + 1);
        buf_add_str(&kept->content, content);
    }
}

/* The report of a question that could not begin: all that a report has, and no step. */
static json_t *failed(const struct tasks_thread *thread, const struct err *err)
{
    json_t *cost = json_pack("{s:f, s:i, s:i, s:i, s:i, s:f, s:f, s:f}", "usd", 0.0, "input_tokens",
                             0, "cached_tokens", 0, "output_tokens", 0, "requests", 0, "model_s",
                             0.0, "execution_s", 0.0, "wall_s", 0.0);
    return json_pack("{s:s, s:s, s:n, s:n, s:[], s:[], s:[], s:[], s:i, s:o, s:o, s:o, s:{s:[]}, "
                     "s:n}",
                     "task", thread->id, "status", agent_status_name(AGENT_FAILED), "answer",
                     "values", "trace", "evidence", "checks", "artifacts", "steps", 0, "cost", cost,
                     "reason", json_text_or_null(err->text), "hint", json_text_or_null(err->hint),
                     "plan", "steps", "script");
}

static void answer(struct tasks_thread *thread, const struct agent_watch *watch,
                   struct tasks_end *end)
{
    struct err err = ERR_INIT;
    int rc = prepare(thread, &err);
    own_json report = rc < 0 ? failed(thread, &err) : agent_run(thread->agent, watch, &end->status);
    end->report = json_deep_copy(report); /* the agent keeps parts of the other one */
    take_artifacts(thread->agent, end);
    tasks_record_end(thread, end);
    thread->finishes = rc < 0 || !thread->now.keep;
}

static void replay(struct tasks_thread *thread, struct tasks_end *end)
{
    struct err err = ERR_INIT;
    if (connect_engine(thread, &err) == 0)
        end->report = tasks_record_replay(thread, &err);
    if (!end->report)
        end->fault = err;
    thread->finishes = true;
}

static void *live(void *user)
{
    struct tasks_thread *thread = user;
    struct tasks_end end = { .status = AGENT_FAILED };
    const struct agent_watch watch = { .on = on_event,
                                       .user = thread,
                                       .ask = tasks_ask_user,
                                       .approve = tasks_ask_approve,
                                       .cancel_fd = thread->cancel_fd };
    if (!thread->finishes)
        tasks_record_open(thread);
    if (!thread->finishes && thread->now.replays)
        replay(thread, &end);
    else if (!thread->finishes)
        answer(thread, &watch, &end);
    if (thread->finishes)
        let_go(thread);
    tasks_thread_tell(thread, NOTE_END, "end", NULL, &end);
    return NULL;
}

/* --- in the loop's thread --- */

static void unlink_running(struct tasks_thread *thread)
{
    struct tasks_threads *threads = thread->threads;
    *(thread->before ? &thread->before->after : &threads->first) = thread->after;
    if (thread->after)
        thread->after->before = thread->before;
    thread->before = thread->after = NULL;
    thread->runs = false;
    threads->running--;
}

static void join(struct tasks_thread *thread)
{
    pthread_join(thread->thread, NULL);
    if (!thread->agent)
        own_close_fd(&thread->cancel_fd);
    free(take_ptr(thread->reply));
    unlink_running(thread);
}

static struct note *take_notes(struct tasks_threads *threads)
{
    pthread_mutex_lock(&threads->lock);
    struct note *notes = take_ptr(threads->notes);
    threads->last = &threads->notes;
    for (struct note *note = notes; note; note = note->next)
        note->of->waiting--;
    pthread_mutex_unlock(&threads->lock);
    return notes;
}

static void on_notes(struct loop_source *source, uint32_t events)
{
    struct tasks_threads *threads = loop_owner(source, struct tasks_threads, ready);
    uint64_t count;
    (void)events;
    if (read(source->fd, &count, sizeof count) < 0)
        return;
    for (struct note *note = take_notes(threads), *next; note; note = next) {
        next = note->next;
        if (note->what == NOTE_EVENT) {
            threads->hooks->on_event(note->of->user, note->kind, take_ptr(note->data));
        } else if (note->what == NOTE_ASK) {
            threads->hooks->on_ask(note->of->user, json_string_value(note->data));
        } else {
            join(note->of);
            threads->hooks->on_end(note->of->user, &note->end);
        }
        note_free(note);
    }
}

struct tasks_threads *tasks_threads_open(struct loop *loop, const struct tasks_hooks *hooks,
                                         const struct tasklog_options *store, struct err *err)
{
    own_fd fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct tasks_threads *threads = buf_alloc_zero(1, sizeof *threads);
    threads->loop = loop;
    threads->store = store ? *store : (struct tasklog_options){ .state_dir = -1 };
    threads->hooks = hooks;
    threads->last = &threads->notes;
    threads->ready = (struct loop_source){ .fd = fd, .ready = LOOP_HANDLER(on_notes) };
    pthread_mutex_init(&threads->lock, NULL);
    if (fd < 0 || loop_add(loop, &threads->ready, EPOLLIN) < 0) {
        err_sys(err, "watch the threads of tasks");
        pthread_mutex_destroy(&threads->lock);
        free(threads);
        return NULL;
    }
    threads->wake_fd = take_fd(&fd);
    return threads;
}

unsigned tasks_threads_running(const struct tasks_threads *threads)
{
    return threads->running;
}

void tasks_threads_leave(struct tasks_threads *threads)
{
    if (threads->loop)
        loop_remove(threads->loop, &threads->ready);
    threads->loop = NULL;
}

void tasks_threads_close(struct tasks_threads *threads)
{
    if (!threads)
        return;
    tasks_threads_leave(threads);
    while (threads->first)
        join(threads->first);
    for (struct note *note = take_notes(threads), *next; note; note = next) {
        next = note->next;
        note_free(note);
    }
    own_close_fd(&threads->wake_fd);
    pthread_mutex_destroy(&threads->lock);
    free(threads);
}

struct tasks_thread *tasks_thread_new(struct tasks_threads *threads, void *user)
{
    struct tasks_thread *thread = buf_alloc_zero(1, sizeof *thread);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&thread->told, &monotonic);
    pthread_condattr_destroy(&monotonic);
    thread->threads = threads;
    thread->user = user;
    thread->cancel_fd = -1;
    thread->client = EMBED_CLIENT_INIT;
    return thread;
}

/* The agent for a first question, or for one after the last agent's end. */
static void make_agent(struct tasks_thread *thread, const struct tasks_question *question)
{
    struct agent_task task = question->task;
    task.engine = &thread->client;
    task.model = question->models.model;
    task.planner = question->models.planner;
    task.judge = question->models.judge;
    task.conversation = question->keep;
    task.id = thread->id[0] ? thread->id : NULL;
    task.record = (struct agent_record){ tasks_record_add, thread };
    thread->models = question->models;
    thread->agent = agent_new(&task);
    if (!thread->id[0])
        memcpy(thread->id, agent_id(thread->agent), strnlen(agent_id(thread->agent), 39));
}

static int start(struct tasks_thread *thread, struct err *err)
{
    struct tasks_threads *threads = thread->threads;
    pthread_attr_t how;
    sigset_t all, before;
    uint64_t earlier; /* a cancel of the question before */
    if (thread->cancel_fd < 0)
        thread->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (thread->cancel_fd < 0 ||
        (read(thread->cancel_fd, &earlier, sizeof earlier) < 0 && errno != EAGAIN))
        return err_sys(err, "make a task's eventfd");
    thread->asking = thread->cancelled = thread->deciding = false;
    thread->wall_until_ns = 0;
    sigfillset(&all);
    pthread_attr_init(&how);
    pthread_attr_setstacksize(&how, STACK_BYTES);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&thread->thread, &how, live, thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&how);
    if (rc != 0) {
        err_set(err, ERR_BUSY, "no thread for a task: %s", strerror(rc));
        err_hint(err, "try again later");
        return -1;
    }
    thread->after = threads->first;
    if (threads->first)
        threads->first->before = thread;
    threads->first = thread;
    thread->runs = true;
    threads->running++;
    return 0;
}

int tasks_thread_begin(struct tasks_thread *thread, const struct tasks_question *question,
                       struct err *err)
{
    bool fresh = !thread->agent;
    thread->now = *question;
    thread->finishes = false;
    if (fresh && !question->replays)
        make_agent(thread, question);
    if (start(thread, err) == 0)
        return 0;
    own_close_fd(&thread->now.engine);
    json_decref(take_ptr(thread->now.past));
    if (fresh)
        let_go(thread);
    return -1;
}

int tasks_thread_finish(struct tasks_thread *thread, struct err *err)
{
    thread->finishes = true;
    return start(thread, err);
}

void tasks_thread_free(struct tasks_thread *thread)
{
    if (!thread)
        return;
    pthread_cond_destroy(&thread->told);
    /* The session ends with the engine, or by its age: nobody may wait for it here. */
    err_set(&thread->client.broken, ERR_CANCELLED, "the task was dropped");
    let_go(thread);
    own_close_fd(&thread->cancel_fd);
    free(thread);
}

void tasks_thread_name(struct tasks_thread *thread, const char *id)
{
    snprintf(thread->id, sizeof thread->id, "%s", id);
}

const char *tasks_thread_id(const struct tasks_thread *thread)
{
    return thread->id;
}

bool tasks_thread_runs(const struct tasks_thread *thread)
{
    return thread->runs;
}

bool tasks_thread_has_agent(const struct tasks_thread *thread)
{
    return thread->agent != NULL;
}

void tasks_thread_cancel(struct tasks_thread *thread)
{
    if (!thread->runs)
        return;
    pthread_mutex_lock(&thread->threads->lock);
    thread->cancelled = true;
    pthread_cond_signal(&thread->told);
    pthread_mutex_unlock(&thread->threads->lock);
    wake(thread->cancel_fd);
}
