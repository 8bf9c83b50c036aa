/* Servers as programs. Runs in the tool host. One thread for each server moves bytes; callers queue
 * their lines and wait for an event of their own, so that a server which does not read, floods or
 * falls silent stops nobody else.
 * 1. The queue to the server, each message of it, and bytes that nobody asked for are bounded.
 * 2. The program and its descendants end with this: tool/host/program.h. */
#include "tool/host/mcp_stdio.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"
#include "tool/host/mcp_wire.h"
#include "tool/host/program.h"
#include "tool/host/source.h"

#define QUEUE_MAX ((size_t)24 << 20)
#define REPLIES_MAX ((size_t)1 << 20) /* of the queue, for the server's own requests */
#define UNASKED_MAX ((size_t)64 << 20)
#define NOTES_MAX 1024
#define GRACE_MS 300
#define STOP_MS 3000

struct waiter {
    int64_t id;
    int event;
    json_t *response;
    struct waiter *next;
};

struct mcp_stdio {
    int refs;
    pthread_mutex_t lock;
    pthread_t pump;
    const struct secrets *secrets;
    int handle, in, out, notes, wake;
    struct buf queue;
    struct waiter *waiters;
    bool stopping, dead, news;
    struct err why;
    /* The thread's own: */
    struct mcp_lines lines;
    size_t unasked; /* bytes since the last response that somebody waited for */
    char said[NOTES_MAX]; /* the end of its standard error */
    size_t said_len;
};

/* ---- messages ---- */

/* With the lock. */
static int enqueue(struct mcp_stdio *stdio, const json_t *message, size_t most)
{
    size_t before = stdio->queue.len;
    if (before > most || json_add(&stdio->queue, message) < 0)
        return -1;
    if (buf_add_text(&stdio->queue, "\n") == 0)
        return 0;
    stdio->queue.len = before;
    return -1;
}

static void wake(const struct mcp_stdio *stdio)
{
    eventfd_write(stdio->wake, 1);
}

/* Takes the message: a value belongs to one thread. */
static void respond(struct mcp_stdio *stdio, int64_t id, json_t *message)
{
    for (struct waiter *waiter = stdio->waiters; waiter; waiter = waiter->next)
        if (waiter->id == id && !waiter->response) {
            waiter->response = message;
            stdio->unasked = 0;
            eventfd_write(waiter->event, 1);
            return;
        }
    json_decref(message);
}

static void on_message(void *user, json_t *message)
{
    struct mcp_stdio *stdio = user;
    int64_t id = 0;
    pthread_mutex_lock(&stdio->lock);
    switch (mcp_wire_kind_of(message, &id)) {
    case MCP_RESPONSE: respond(stdio, id, take_ptr(message)); break;
    case MCP_REQUEST: {
        own_json reply = mcp_wire_reply(message);
        enqueue(stdio, reply, REPLIES_MAX);
        break;
    }
    case MCP_NOTIFICATION:
        if (str_is(json_get_str(message, "method"), "notifications/tools/list_changed"))
            stdio->news = true;
        break;
    case MCP_GARBAGE: break;
    }
    pthread_mutex_unlock(&stdio->lock);
    json_decref(message);
}

/* ---- the pump ---- */

static void read_notes(struct mcp_stdio *stdio)
{
    char part[4096];
    ssize_t n = read(stdio->notes, part, sizeof part);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        own_close_fd(&stdio->notes);
    if (n <= 0)
        return;
    size_t len = (size_t)n, keep = len < NOTES_MAX ? NOTES_MAX - len : 0;
    keep = keep < stdio->said_len ? keep : stdio->said_len;
    memmove(stdio->said, stdio->said + stdio->said_len - keep, keep);
    size_t take = len < NOTES_MAX - keep ? len : NOTES_MAX - keep;
    memcpy(stdio->said + keep, part + len - take, take);
    stdio->said_len = keep + take;
}

/* 0, or -1 with err: the server is done for. */
static int read_lines(struct mcp_stdio *stdio, struct err *err)
{
    char part[65536];
    ssize_t n = read(stdio->out, part, sizeof part);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0)
        return err_set(err, ERR_HOST, "it ended");
    stdio->unasked += (size_t)n;
    if (stdio->unasked > UNASKED_MAX)
        return err_set(err, ERR_HOST, "it wrote %zu MiB that nobody asked for", UNASKED_MAX >> 20);
    return mcp_lines_feed(&stdio->lines, (struct str){ part, (size_t)n }, err);
}

static void write_queue(struct mcp_stdio *stdio)
{
    pthread_mutex_lock(&stdio->lock);
    ssize_t n = write(stdio->in, stdio->queue.at, stdio->queue.len);
    if (n > 0)
        buf_drop(&stdio->queue, (size_t)n);
    else if (n < 0 && errno != EAGAIN && errno != EINTR)
        own_close_fd(&stdio->in); /* it reads no more; its end is seen elsewhere */
    pthread_mutex_unlock(&stdio->lock);
}

/* One wait. 0, or -1: to be ended. */
static int turn(struct mcp_stdio *stdio, struct err *err)
{
    pthread_mutex_lock(&stdio->lock);
    bool stopping = stdio->stopping, full = stdio->queue.len > 0;
    pthread_mutex_unlock(&stdio->lock);
    struct pollfd fds[] = { { stdio->wake, POLLIN, 0 },
                            { stdio->out, POLLIN, 0 },
                            { stdio->notes, POLLIN, 0 },
                            { full ? stdio->in : -1, POLLOUT, 0 },
                            { stdio->handle, POLLIN, 0 } };
    eventfd_t count;
    if (stopping)
        return err_set(err, ERR_HOST, "it was ended");
    if (poll(fds, array_len(fds), -1) < 0)
        return errno == EINTR ? 0 : err_sys(err, "wait for it");
    if (fds[0].revents)
        eventfd_read(stdio->wake, &count);
    if (fds[2].revents)
        read_notes(stdio);
    if (fds[3].revents)
        write_queue(stdio);
    if (fds[1].revents)
        return read_lines(stdio, err);
    return fds[4].revents ? err_set(err, ERR_HOST, "it ended") : 0;
}

/* The reason in words: the exit and the last line of its standard error. */
static void explain(struct mcp_stdio *stdio, struct err *why)
{
    struct program_end end = { 0 };
    struct pollfd fds[] = { { stdio->notes, POLLIN, 0 } };
    bool ended = program_ended(stdio->handle, &end) == 0;
    if (stdio->notes >= 0 && poll(fds, 1, 0) > 0)
        read_notes(stdio);
    own_str said = secrets_hide(stdio->secrets, stdio->said, stdio->said_len);
    struct str rest = str_trim(str_of(said));
    const char *line = rest.len > 0 ? memrchr(rest.at, '\n', rest.len) : NULL;
    char last[300], how[64] = "";
    str_plain(last, sizeof last,
              line ? (struct str){ line + 1, rest.len - (size_t)(line - rest.at) - 1 } : rest);
    if (ended && end.error)
        snprintf(how, sizeof how, " (%s)", strerror(end.error));
    else if (ended && WIFSIGNALED(end.status))
        snprintf(how, sizeof how, " by signal %d", WTERMSIG(end.status));
    else if (ended)
        snprintf(how, sizeof how, " with exit code %d", WEXITSTATUS(end.status));
    char text[sizeof why->text];
    snprintf(text, sizeof text, "%.100s%s%s%s", why->text, how, last[0] ? ": " : "", last);
    memcpy(why->text, text, sizeof text);
}

/* First a closed input, then the end of all that it started. */
static void end_program(struct mcp_stdio *stdio)
{
    struct pollfd watched = { stdio->handle, POLLIN, 0 };
    pthread_mutex_lock(&stdio->lock);
    own_close_fd(&stdio->in);
    pthread_mutex_unlock(&stdio->lock);
    poll(&watched, 1, GRACE_MS);
}

static void *pump(void *user)
{
    struct mcp_stdio *stdio = user;
    struct err why = ERR_INIT;
    sigset_t pipes;
    sigemptyset(&pipes);
    sigaddset(&pipes, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipes, NULL);
    while (turn(stdio, &why) == 0)
        ;
    end_program(stdio);
    explain(stdio, &why);
    pthread_mutex_lock(&stdio->lock);
    stdio->dead = true;
    stdio->why = why;
    for (struct waiter *waiter = stdio->waiters; waiter; waiter = waiter->next)
        eventfd_write(waiter->event, 1);
    pthread_mutex_unlock(&stdio->lock);
    program_stop(take_fd(&stdio->handle), STOP_MS);
    return NULL;
}

/* ---- open, close ---- */

struct mcp_stdio *mcp_stdio_ref(struct mcp_stdio *stdio)
{
    pthread_mutex_lock(&stdio->lock);
    stdio->refs++;
    pthread_mutex_unlock(&stdio->lock);
    return stdio;
}

void mcp_stdio_unref(struct mcp_stdio *stdio)
{
    pthread_mutex_lock(&stdio->lock);
    int left = --stdio->refs;
    pthread_mutex_unlock(&stdio->lock);
    if (left > 0)
        return;
    own_close_fd(&stdio->in);
    own_close_fd(&stdio->out);
    own_close_fd(&stdio->notes);
    own_close_fd(&stdio->wake);
    if (stdio->handle >= 0)
        program_stop(stdio->handle, STOP_MS);
    buf_done(&stdio->queue);
    mcp_lines_done(&stdio->lines);
    pthread_mutex_destroy(&stdio->lock);
    free(stdio);
}

void mcp_stdio_close(struct mcp_stdio *stdio)
{
    if (!stdio)
        return;
    pthread_mutex_lock(&stdio->lock);
    stdio->stopping = true;
    pthread_mutex_unlock(&stdio->lock);
    wake(stdio);
    pthread_join(stdio->pump, NULL);
    mcp_stdio_unref(stdio);
}

static int start_program(struct mcp_stdio *stdio, const struct mcp_config *config, struct err *err)
{
    int in[2] = { -1, -1 }, out[2] = { -1, -1 }, notes[2] = { -1, -1 };
    bool made = pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0 &&
                pipe2(notes, O_CLOEXEC) == 0;
    own_fd theirs_in = in[0], theirs_out = out[1], theirs_notes = notes[1];
    stdio->in = in[1];
    stdio->out = out[0];
    stdio->notes = notes[0];
    stdio->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (!made || stdio->wake < 0 || fcntl(stdio->in, F_SETFL, O_NONBLOCK) < 0 ||
        fcntl(stdio->out, F_SETFL, O_NONBLOCK) < 0 || fcntl(stdio->notes, F_SETFL, O_NONBLOCK) < 0)
        return err_sys(err, "make the pipes of a server");
    char **env = program_env((const char *const *)config->env);
    struct program_plan plan = { .argv = (const char *const *)config->argv,
                                 .env = (const char *const *)env,
                                 .cwd = config->cwd,
                                 .in = theirs_in,
                                 .out = theirs_out,
                                 .notes = theirs_notes,
                                 .limits = { .open_files = 1024 } };
    stdio->handle = program_start(&plan, err);
    program_env_free(env);
    return stdio->handle < 0 ? -1 : 0;
}

int mcp_stdio_open(const struct mcp_config *config, const struct secrets *secrets,
                   struct mcp_stdio **out, struct err *err)
{
    struct mcp_stdio *stdio = buf_alloc_zero(1, sizeof *stdio);
    stdio->refs = 1;
    stdio->handle = stdio->in = stdio->out = stdio->notes = stdio->wake = -1;
    stdio->secrets = secrets;
    stdio->queue = BUF_INIT(QUEUE_MAX);
    pthread_mutex_init(&stdio->lock, NULL);
    mcp_lines_start(&stdio->lines, on_message, stdio);
    if (start_program(stdio, config, err) < 0 ||
        (pthread_create(&stdio->pump, NULL, pump, stdio) != 0 &&
         err_set(err, ERR_HOST, "start a thread for a server") < 0)) {
        mcp_stdio_unref(stdio);
        return -1;
    }
    *out = stdio;
    return 0;
}

/* ---- asking ---- */

static void remove_waiter(struct mcp_stdio *stdio, const struct waiter *waiter)
{
    struct waiter **at = &stdio->waiters;
    while (*at != waiter)
        at = &(*at)->next;
    *at = waiter->next;
}

/* Until there is a response, the server is dead, or the caller has enough. */
static enum mcp_end await(struct mcp_stdio *stdio, struct waiter *waiter,
                          const struct mcp_wait *wait)
{
    for (;;) {
        struct pollfd fds[] = { { waiter->event, POLLIN, 0 }, { wait->cancel_fd, POLLIN, 0 } };
        int left = clock_poll_ms(wait->deadline_ns);
        int rc = poll(fds, array_len(fds), left);
        pthread_mutex_lock(&stdio->lock);
        bool answered = waiter->response, dead = stdio->dead;
        pthread_mutex_unlock(&stdio->lock);
        if (answered || dead)
            return answered ? MCP_ANSWERED : MCP_LOST;
        if (rc > 0 && fds[1].revents)
            return MCP_CANCELLED;
        if (left == 0)
            return MCP_LATE;
    }
}

enum mcp_end mcp_stdio_ask(struct mcp_stdio *stdio, int64_t id, const json_t *request,
                           const struct mcp_wait *wait, json_t **out, struct err *err)
{
    own_fd event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct waiter waiter = { .id = id, .event = event };
    if (event < 0) {
        err_sys(err, "make an event");
        return MCP_LOST;
    }
    pthread_mutex_lock(&stdio->lock);
    bool dead = stdio->dead, sent = !dead && enqueue(stdio, request, QUEUE_MAX) == 0;
    if (dead)
        *err = stdio->why;
    else if (!sent)
        err_set(err, ERR_BUSY, "it does not read: %zu MiB wait for it", stdio->queue.len >> 20);
    if (sent) {
        waiter.next = stdio->waiters;
        stdio->waiters = &waiter;
    }
    pthread_mutex_unlock(&stdio->lock);
    if (!sent)
        return MCP_LOST;
    wake(stdio);
    enum mcp_end end = await(stdio, &waiter, wait);
    pthread_mutex_lock(&stdio->lock);
    remove_waiter(stdio, &waiter);
    if (end == MCP_LOST)
        *err = stdio->why;
    pthread_mutex_unlock(&stdio->lock);
    if (end == MCP_ANSWERED)
        *out = waiter.response;
    else
        json_decref(waiter.response);
    return end;
}

void mcp_stdio_tell(struct mcp_stdio *stdio, json_t *notification)
{
    pthread_mutex_lock(&stdio->lock);
    if (!stdio->dead)
        enqueue(stdio, notification, REPLIES_MAX);
    pthread_mutex_unlock(&stdio->lock);
    wake(stdio);
    json_decref(notification);
}

bool mcp_stdio_is_dead(struct mcp_stdio *stdio)
{
    pthread_mutex_lock(&stdio->lock);
    bool dead = stdio->dead;
    pthread_mutex_unlock(&stdio->lock);
    return dead;
}

bool mcp_stdio_has_news(struct mcp_stdio *stdio)
{
    pthread_mutex_lock(&stdio->lock);
    bool news = stdio->news;
    stdio->news = false;
    pthread_mutex_unlock(&stdio->lock);
    return news;
}
