/* A task waits for its user: for a reply to the model, or a decision on a call of a tool. The first
 * part runs in a task's thread, the second in the loop's; both take the lock of the threads. */
#include <time.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"
#include "serve/api/tasks_thread_int.h"

/* --- in a task's thread --- */

void tasks_ask_expect(struct tasks_thread *thread)
{
    pthread_mutex_lock(&thread->threads->lock);
    thread->deciding = true;
    thread->decision = -1;
    pthread_mutex_unlock(&thread->threads->lock);
}

static struct timespec end_of_patience(const struct tasks_thread *thread)
{
    int64_t until = clock_now_ns() + (int64_t)(thread->now.ask_s * 1e9);
    if (thread->wall_until_ns && thread->wall_until_ns < until)
        until = thread->wall_until_ns;
    return (struct timespec){ .tv_sec = until / CLOCK_S, .tv_nsec = until % CLOCK_S };
}

/* Nobody decides in time: no. */
enum agent_decision tasks_ask_approve(void *user, json_t *call)
{
    struct tasks_thread *thread = user;
    pthread_mutex_t *lock = &thread->threads->lock;
    const struct timespec end = end_of_patience(thread);
    int rc = 0;
    pthread_mutex_lock(lock);
    while (call && thread->decision < 0 && !thread->cancelled && rc == 0)
        rc = pthread_cond_timedwait(&thread->told, lock, &end);
    bool allow = call && thread->decision > 0;
    thread->deciding = false;
    pthread_mutex_unlock(lock);
    return allow ? AGENT_APPROVES : AGENT_REFUSES;
}

/* The model's question to the user: waits for the reply, a cancel, or the end of the budget. */
char *tasks_ask_user(void *user, const char *question)
{
    struct tasks_thread *thread = user;
    pthread_mutex_t *lock = &thread->threads->lock;
    const struct timespec end = end_of_patience(thread);
    pthread_mutex_lock(lock);
    thread->asking = true;
    pthread_mutex_unlock(lock);
    tasks_thread_tell(thread, NOTE_ASK, "ask", json_text(str_of(question)), NULL);
    pthread_mutex_lock(lock);
    int rc = 0;
    while (!thread->reply && !thread->cancelled && rc == 0)
        rc = pthread_cond_timedwait(&thread->told, lock, &end);
    thread->asking = false;
    char *reply = take_ptr(thread->reply);
    pthread_mutex_unlock(lock);
    return reply;
}

/* --- in the loop's thread --- */

int tasks_thread_reply(struct tasks_thread *thread, struct str text)
{
    pthread_mutex_lock(&thread->threads->lock);
    bool taken = thread->asking && !thread->reply;
    if (taken) {
        thread->reply = buf_strdup(text);
        pthread_cond_signal(&thread->told);
    }
    pthread_mutex_unlock(&thread->threads->lock);
    return taken ? 0 : -1;
}

int tasks_thread_decide(struct tasks_thread *thread, bool allow)
{
    pthread_mutex_lock(&thread->threads->lock);
    bool taken = thread->deciding && thread->decision < 0;
    if (taken) {
        thread->decision = allow;
        pthread_cond_signal(&thread->told);
    }
    pthread_mutex_unlock(&thread->threads->lock);
    return taken ? 0 : -1;
}
