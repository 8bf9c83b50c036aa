/* The parent's side of the tool host: a non-blocking stream with queued frames, the calls that wait
 * for an answer, and the order to the guard that starts the host. Runs in the engine's process or
 * the cli's, in one thread; toolhost_list and toolhost_close alone wait. */
#include "tool/host/host.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/json.h"
#include "base/own.h"
#include "contract/frame.h"
#include "tool/define/define.h"
#include "tool/define/outcome.h"
#include "tool/host/host_int.h"

#define READ_PART ((size_t)1 << 18)
#define READ_ONCE ((size_t)4 << 20) /* of one toolhost_ready: the loop has other work */
#define LISTS_MAX 64
#define GRACE_MS 2000 /* for an answer that is due */
#define CLOSE_MS 10000

struct waiting_list {
    void (*told)(void *user, const json_t *definitions, const struct err *err);
    void *user;
};

struct toolhost {
    int guard_sock; /* -1: the guard is gone */
    pid_t guard;
    int sock; /* -1: there is no host */
    struct buf in, out;
    uint64_t calls[TOOLHOST_CALLS_MAX];
    size_t calls_count;
    struct waiting_list lists[LISTS_MAX]; /* answered in this order */
    size_t lists_count;
    json_t *faults;
    void (*told)(void *user, uint64_t id, json_t *outcome);
    void *user;
};

static char *default_path(const char *name)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    bool is_root = geteuid() == 0, is_named = config && *config == '/';
    own_buf path = BUF_INIT(4096);
    if (!is_root && !is_named && (!home || *home != '/'))
        return NULL;
    int fits = is_root    ? buf_printf(&path, "/etc/cupel/%s", name)
               : is_named ? buf_printf(&path, "%s/cupel/%s", config, name)
                          : buf_printf(&path, "%s/.config/cupel/%s", home, name);
    return fits < 0 ? NULL : buf_take(&path);
}

char *toolhost_default_folder(void)
{
    return default_path("tools");
}

char *toolhost_default_secrets(void)
{
    return default_path("secrets.json");
}

/* ---- life ---- */

/* The guard starts the host with the other end of a new stream. */
static int start(struct toolhost *host, struct err *err)
{
    int ends[2];
    struct host_order order = { HOST_START };
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return err_sys(err, "make the socket of the tool host");
    own_fd ours = ends[0], theirs = ends[1];
    if (fcntl(ours, F_SETFL, O_NONBLOCK) < 0)
        return err_sys(err, "set up the socket of the tool host");
    if (host->guard_sock < 0 ||
        io_send_now(host->guard_sock, &order, sizeof order, &theirs, 1) < 0) {
        err_set(err, ERR_HOST, "the tool host has ended and cannot be started again");
        err_hint(err, "start cupel again");
        return -1;
    }
    host->sock = take_fd(&ours);
    return 0;
}

int toolhost_open(const struct toolhost_options *options, struct toolhost **out, struct err *err)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return err_sys(err, "make the socket of the tool host");
    own_fd ours = ends[0], theirs = ends[1];
    pid_t pid = fork();
    if (pid == 0)
        host_guard(theirs, options);
    if (pid < 0)
        return err_sys(err, "start the guard of the tool host");
    struct toolhost *host = buf_alloc_zero(1, sizeof *host);
    host->guard_sock = take_fd(&ours);
    host->guard = pid;
    host->sock = -1;
    host->in = BUF_INIT(HOST_FRAME_MAX + READ_PART);
    host->out = BUF_INIT(TOOLHOST_QUEUE_MAX);
    host->faults = json_array();
    if (start(host, err) < 0) {
        toolhost_close(host);
        return -1;
    }
    *out = host;
    return 0;
}

void toolhost_close(struct toolhost *host)
{
    if (!host)
        return;
    own_close_fd(&host->sock);
    own_close_fd(&host->guard_sock);
    int64_t due = clock_now_ns() + CLOSE_MS * CLOCK_MS;
    while (waitpid(host->guard, NULL, WNOHANG) == 0 && clock_now_ns() < due)
        poll(NULL, 0, 1);
    buf_done(&host->in);
    buf_done(&host->out);
    json_decref(host->faults);
    free(host);
}

/* The host is gone: every call gets its answer, and every list its error. A callback may call
 * again, which starts another host, so the lists are taken off first, and the old socket stays open
 * until the end: the new one gets another number, by which its watcher knows that it is new. */
static void lost(struct toolhost *host)
{
    uint64_t calls[TOOLHOST_CALLS_MAX];
    struct waiting_list lists[LISTS_MAX];
    size_t calls_count = host->calls_count, lists_count = host->lists_count;
    struct err err = ERR_INIT;
    memcpy(calls, host->calls, sizeof calls);
    memcpy(lists, host->lists, sizeof lists);
    host->calls_count = host->lists_count = 0;
    host->in.len = host->out.len = 0;
    int gone = take_fd(&host->sock);
    for (size_t i = 0; i < calls_count; i++) {
        own_json outcome = outcome_error(OUTCOME_ERROR, "the tool host died during the call; what "
                                                        "the tool has done is not known");
        if (host->told)
            host->told(host->user, calls[i], outcome);
    }
    err_set(&err, ERR_HOST, "the tool host died while it listed the tools");
    for (size_t i = 0; i < lists_count; i++)
        lists[i].told(lists[i].user, NULL, &err);
    own_close_fd(&gone);
}

/* ---- frames out ---- */

/* Writes as much as the socket takes. A dead host is noticed by the next read. */
static void flush(struct toolhost *host)
{
    size_t sent = 0;
    while (host->sock >= 0 && sent < host->out.len) {
        ssize_t n = send(host->sock, host->out.at + sent, host->out.len - sent,
                         MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            break;
        sent += (size_t)n;
    }
    buf_drop(&host->out, sent);
}

/* Takes the frame. */
static int queue(struct toolhost *host, json_t *frame, struct err *err)
{
    int added = frame_add(&host->out, frame, HOST_FRAME_MAX);
    json_decref(frame);
    if (added == 0) {
        flush(host);
        return 0;
    }
    err_set(err, ERR_BUSY, "the tool host has %zu bytes waiting; the maximum is %zu", host->out.len,
            TOOLHOST_QUEUE_MAX);
    return -1;
}

static size_t place_of(const struct toolhost *host, uint64_t id)
{
    size_t i = 0;
    while (i < host->calls_count && host->calls[i] != id)
        i++;
    return i;
}

static int check_call(const struct toolhost *host, uint64_t id, const char *tool,
                      const json_t *arguments, struct err *err)
{
    if (!tool_name_is_good(str_of(tool)))
        return err_input(err, "tool", tool, "the name of a tool", "'%.80s' is no name of a tool",
                         tool);
    if (id == 0 || id > INT64_MAX || place_of(host, id) < host->calls_count)
        return err_set(err, ERR_BUG, "the number %llu of a tool's call is taken",
                       (unsigned long long)id);
    if (host->calls_count == TOOLHOST_CALLS_MAX)
        return err_set(err, ERR_BUSY, "%d calls of tools are under way; that is the maximum",
                       TOOLHOST_CALLS_MAX);
    if (!json_is_object(arguments))
        return err_input(err, "args", NULL, "an object", "the arguments of '%s' are no object",
                         tool);
    if (host_depth(arguments, HOST_DEPTH_MAX) > HOST_DEPTH_MAX)
        return err_input(err, "args", NULL, "at most 56 levels",
                         "the arguments of '%s' are nested more than %d deep", tool,
                         HOST_DEPTH_MAX);
    size_t bytes = json_dumpb(arguments, NULL, 0, JSON_COMPACT);
    if (bytes > TOOLHOST_ARGUMENTS_MAX)
        return err_input(err, "args", NULL, "at most 16777216 bytes",
                         "the arguments of '%s' have %zu bytes as JSON; the maximum is %d", tool,
                         bytes, TOOLHOST_ARGUMENTS_MAX);
    return 0;
}

int toolhost_call(struct toolhost *host, uint64_t id, const char *tool, json_t *arguments,
                  const char *idempotency_key, int64_t timeout_ms, struct err *err)
{
    if (check_call(host, id, tool, arguments, err) < 0 || (host->sock < 0 && start(host, err) < 0))
        return -1;
    json_t *frame = json_object();
    json_object_set_new(frame, "op", json_string("call"));
    json_object_set_new(frame, "id", json_integer((json_int_t)id));
    json_object_set_new(frame, "tool", json_string(tool));
    json_object_set(frame, "arguments", arguments);
    if (idempotency_key)
        json_object_set_new(frame, "key", json_text(str_of(idempotency_key)));
    json_object_set_new(frame, "timeout_ms", json_integer(timeout_ms));
    if (queue(host, frame, err) < 0)
        return -1;
    host->calls[host->calls_count++] = id;
    return 0;
}

void toolhost_cancel(struct toolhost *host, uint64_t id)
{
    struct err err = ERR_INIT;
    if (host->sock < 0 || place_of(host, id) == host->calls_count)
        return;
    json_t *frame = json_object();
    json_object_set_new(frame, "op", json_string("cancel"));
    json_object_set_new(frame, "id", json_integer((json_int_t)id));
    /* Without room the call goes on to its own time-out. */
    if (queue(host, frame, &err) < 0)
        return;
}

int toolhost_ask_list(struct toolhost *host, int64_t timeout_ms,
                      void (*told)(void *user, const json_t *definitions, const struct err *err),
                      void *user, struct err *err)
{
    if (host->lists_count == LISTS_MAX)
        return err_set(err, ERR_BUSY, "%d lists of tools are being made; that is the maximum",
                       LISTS_MAX);
    if (host->sock < 0 && start(host, err) < 0)
        return -1;
    json_t *frame = json_object();
    json_object_set_new(frame, "op", json_string("list"));
    json_object_set_new(frame, "timeout_ms", json_integer(timeout_ms));
    if (queue(host, frame, err) < 0)
        return -1;
    host->lists[host->lists_count++] = (struct waiting_list){ told, user };
    return 0;
}

/* ---- frames in ---- */

/* An answer to no call of ours, or one of another form, is none: the host is killed by the end of
 * its socket. */
static int on_answer(struct toolhost *host, json_t *frame)
{
    uint64_t id = (uint64_t)json_integer_value(json_object_get(frame, "id"));
    json_t *outcome = json_object_get(frame, "outcome");
    size_t place = place_of(host, id);
    if (place == host->calls_count || !outcome_is_good(outcome))
        return -1;
    host->calls[place] = host->calls[--host->calls_count];
    if (host->told)
        host->told(host->user, id, outcome);
    return 0;
}

static int on_list(struct toolhost *host, json_t *frame)
{
    json_t *tools = json_object_get(frame, "tools"), *faults = json_object_get(frame, "faults");
    struct err none = ERR_INIT;
    if (host->lists_count == 0 || !json_is_array(tools) || !json_is_array(faults))
        return -1;
    json_decref(host->faults);
    host->faults = json_incref(faults);
    struct waiting_list first = host->lists[0];
    memmove(host->lists, host->lists + 1, --host->lists_count * sizeof first);
    first.told(first.user, tools, &none);
    return 0;
}

static int on_frame(struct toolhost *host, struct str text)
{
    struct err err = ERR_INIT;
    own_json frame = json_read(text, HOST_FRAME_MAX, &err);
    struct str op = json_get_str(frame, "op");
    if (str_is(op, "answer"))
        return on_answer(host, frame);
    return str_is(op, "list") ? on_list(host, frame) : -1;
}

/* Callbacks may make calls, but they do not read: the bytes stay where they are. */
static int on_bytes(struct toolhost *host)
{
    struct err err = ERR_INIT;
    struct str rest = buf_str(&host->in), text;
    size_t whole = 0;
    int got;
    while ((got = frame_next(rest, HOST_FRAME_MAX, &text, &whole, &err)) == 1) {
        if (on_frame(host, text) < 0)
            return -1;
        rest = (struct str){ rest.at + whole, rest.len - whole };
    }
    buf_drop(&host->in, host->in.len - rest.len);
    return got;
}

bool toolhost_ready(struct toolhost *host)
{
    flush(host);
    for (size_t taken = 0; host->sock >= 0 && taken < READ_ONCE;) {
        char *room = buf_room(&host->in, READ_PART);
        ssize_t n = room ? recv(host->sock, room, READ_PART, MSG_DONTWAIT) : 0;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return true;
        if (n > 0) {
            buf_grew(&host->in, (size_t)n);
            taken += (size_t)n;
        }
        if (n <= 0 || on_bytes(host) < 0) {
            lost(host);
            return false;
        }
    }
    return host->sock >= 0;
}

int toolhost_fd(const struct toolhost *host)
{
    return host->sock;
}

bool toolhost_wants_write(const struct toolhost *host)
{
    return host->sock >= 0 && host->out.len > 0;
}

void toolhost_on_answer(struct toolhost *host,
                        void (*told)(void *user, uint64_t id, json_t *outcome), void *user)
{
    host->told = told;
    host->user = user;
}

/* ---- the list, waited for ---- */

struct listed {
    bool is_done;
    json_t *definitions;
    struct err *err;
};

static void keep_list(void *user, const json_t *definitions, const struct err *err)
{
    struct listed *listed = user;
    listed->is_done = true;
    listed->definitions = definitions ? json_deep_copy(definitions) : NULL;
    *listed->err = *err;
}

static void drop_list(void *user, const json_t *definitions, const struct err *err)
{
    (void)user, (void)definitions, (void)err;
}

json_t *toolhost_list(struct toolhost *host, int64_t timeout_ms, struct err *err)
{
    struct listed listed = { .err = err };
    if (toolhost_ask_list(host, timeout_ms, keep_list, &listed, err) < 0)
        return NULL;
    int64_t due = clock_now_ns() + (timeout_ms + GRACE_MS) * CLOCK_MS;
    while (!listed.is_done && clock_now_ns() < due) {
        struct pollfd watched = { host->sock, POLLIN | (host->out.len ? POLLOUT : 0), 0 };
        if (poll(&watched, 1, clock_poll_ms(due)) < 0 && errno != EINTR)
            break;
        toolhost_ready(host);
    }
    if (listed.is_done)
        return listed.definitions;
    for (size_t i = 0; i < host->lists_count; i++)
        if (host->lists[i].user == &listed)
            host->lists[i] = (struct waiting_list){ drop_list, NULL };
    err_set(err, ERR_SLOW, "the tool host did not list its tools in %lld ms",
            (long long)timeout_ms);
    return NULL;
}

const json_t *toolhost_faults(const struct toolhost *host)
{
    return host->faults;
}
