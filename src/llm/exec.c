/* exec:PROGRAM: a program that gives one reply for each run. The task's process may have dropped
 * the caller's rights by then, so a helper, forked in llm_open, starts the program as the caller in
 * the caller's folder:
 * 1. the helper speaks fixed-size messages; the program's input and output bypass it;
 * 2. when a program has ended, is cancelled or late, the helper kills all its descendants, in any
 *    session or group: orphans below the helper become its children;
 * 3. the helper ends with its socket, so it cannot outlive the task; if the helper is killed, its
 *    parent, the guard, inherits the descendants and kills them;
 * 4. neither the program's environment nor the helper's holds a model's key;
 * 5. a helper runs one program at a time. For llm_again it starts others like itself, each with a
 *    guard and a socket of its own, and runs no program any more. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/adopt.h"
#include "base/buf.h"
#include "base/io.h"
#include "base/json.h"
#include "base/own.h"
#include "llm/llm_int.h"

#define OUTPUT_MAX ((size_t)16 << 20)
#define NOTES_MAX 4096 /* of its stderr: enough to say why it failed */
#define ARGS_MAX 32
#define HINT "run the program by hand with {\"system\",\"messages\",\"tools\"} on its stdin"

enum { RUN, STOP, AGAIN };

struct order {
    int32_t what; /* RUN brings stdin, stdout, stderr; AGAIN a socket; STOP nothing */
};

struct news {
    int32_t error;  /* errno: not started; 0: it has ended */
    int32_t status; /* as waitpid gives it */
};

struct helper {
    int sock;
    pid_t pid; /* 0: not our child */
};

/* ---- the helper's side ---- */

static attr_noreturn void become(pid_t parent, char **argv, const int *fds)
{
    adopt_begin_program(parent);
    for (int i = 0; i < 3; i++)
        if (dup2(fds[i], i) < 0)
            _exit(126);
    execvp(argv[0], argv);
    _exit(errno == ENOENT ? 127 : 126);
}

/* The helper's parent: kills the descendants of a killed helper. */
static attr_noreturn void guard(pid_t helper)
{
    setsid(); /* signals to the task's group do not reach the guard */
    while (helper > 0 && waitpid(helper, NULL, 0) < 0 && errno == EINTR)
        ;
    adopt_end_all();
    _exit(helper > 0 ? 0 : 1);
}

static attr_noreturn void serve(int sock, char **argv);

/* Another helper with its guard; the kernel reaps it. Nobody is told: where it cannot be started,
 * its socket ends. */
static void start_again(int sock, int given, char **argv)
{
    signal(SIGCHLD, SIG_IGN);
    if (fork() == 0) {
        close(sock);
        serve(given, argv);
    }
    close(given);
}

/* Runs a program to its end. */
static struct news run(int sock, char **argv, const int *fds)
{
    pid_t self = getpid(), pid = fork();
    if (pid == 0)
        become(self, argv, fds);
    struct news news = { .error = pid < 0 ? errno : 0 };
    if (pid > 0)
        setpgid(pid, pid);
    io_close_all(fds, 3);
    news.status = pid > 0 ? adopt_attend(sock, pid) : 0;
    return news;
}

static attr_noreturn void serve(int sock, char **argv)
{
    adopt_ignore_signals();
    if (adopt_orphans() < 0)
        _exit(1);
    pid_t helper = fork();
    if (helper != 0) {
        close(sock);
        guard(helper);
    }
    if (adopt_orphans() < 0)
        _exit(1);
    for (bool starts_others = false;;) {
        struct order order;
        struct news news = { .error = EINVAL };
        int fds[3];
        size_t count = 0;
        if (io_recv(sock, &order, sizeof order, fds, 3, &count) <= 0)
            _exit(0);
        if (order.what == STOP) /* its program has already ended */
            continue;
        if (order.what == AGAIN && count == 1) {
            starts_others = true;
            start_again(sock, fds[0], argv);
            continue;
        }
        if (order.what == RUN && count == 3 && !starts_others)
            news = run(sock, argv, fds);
        else
            io_close_all(fds, count);
        if (io_send(sock, &news, sizeof news, NULL, 0) < 0)
            _exit(1);
    }
}

/* ---- the task's side ---- */

static json_t *plain_content(const json_t *parts)
{
    own_buf text = BUF_INIT(SIZE_MAX / 2);
    size_t i;
    json_t *part;
    json_array_foreach (parts, i, part) {
        if (!str_is(json_str(json_object_get(part, "type")), "text"))
            return json_incref((json_t *)(uintptr_t)parts);
        if (i > 0)
            buf_add_text(&text, "\n");
        buf_add_str(&text, json_str(json_object_get(part, "text")));
    }
    return json_text(buf_str(&text));
}

static char *request_text(const struct llm_request *request)
{
    own_json messages = json_array();
    size_t i;
    json_t *message;
    json_array_foreach (request->messages, i, message)
        json_array_append_new(
            messages, json_pack("{s:O,s:o}", "role", json_object_get(message, "role"), "content",
                                plain_content(json_object_get(message, "content"))));
    const char *instructions = request->instructions ? request->instructions : "";
    own_json whole = json_pack("{s:o,s:O,s:o}", "system", json_text(str_of(instructions)),
                               "messages", messages, "tools",
                               request->tools ? json_deep_copy(request->tools) : json_array());
    return json_write(whole, JSON_COMPACT);
}

struct stream {
    int fd; /* -1: at its end */
    bool lossy;
    bool full;
    struct buf text;
};

struct talk {
    int sock;
    struct stream out, notes;
    struct news news;
};

/* Reads available bytes; false if there are none, now or ever. */
static bool drink(struct stream *stream)
{
    char part[1 << 14];
    ssize_t n = stream->fd < 0 ? 0 : read(stream->fd, part, sizeof part);
    if (n < 0 && errno == EINTR)
        return true;
    if (n < 0 && errno == EAGAIN)
        return false;
    if (n <= 0)
        own_close_fd(&stream->fd);
    else if (buf_add(&stream->text, part, (size_t)n) < 0 && !stream->lossy)
        stream->full = true;
    return n > 0 && !stream->full;
}

static int wait_ms(int64_t deadline_ms)
{
    int64_t left = deadline_ms > 0 ? deadline_ms - llm_now_ms() : 60000;
    return left < 0 ? 0 : left > 60000 ? 60000 : (int)left;
}

/* Reads until the program has ended, or returns the reason to end it. */
static enum llm_outcome listen_to(struct talk *talk, const struct llm_try *try)
{
    for (bool ended = false; !ended;) {
        struct pollfd watched[] = { { talk->sock, POLLIN, 0 },
                                    { talk->out.fd, POLLIN, 0 },
                                    { talk->notes.fd, POLLIN, 0 },
                                    { try->watch->cancel_fd, POLLIN, 0 } };
        if (llm_is_late(try->request->deadline_ms))
            return LLM_TIMEOUT;
        if (poll(watched, array_len(watched), wait_ms(try->request->deadline_ms)) < 0)
            continue;
        if (watched[3].revents)
            return LLM_CANCELLED;
        if (watched[1].revents)
            drink(&talk->out);
        if (watched[2].revents)
            drink(&talk->notes);
        if (talk->out.full)
            return LLM_TOO_LONG;
        if (!watched[0].revents)
            continue;
        if (io_recv(talk->sock, &talk->news, sizeof talk->news, NULL, 0, NULL) != 1)
            return LLM_BROKEN;
        ended = true;
    }
    /* The program's last bytes are still in the pipes. */
    while (drink(&talk->out))
        ;
    while (drink(&talk->notes))
        ;
    return talk->out.full ? LLM_TOO_LONG : LLM_OK;
}

static void end_it(struct talk *talk)
{
    struct order stop = { STOP };
    if (io_send(talk->sock, &stop, sizeof stop, NULL, 0) == 0 &&
        io_recv(talk->sock, &talk->news, sizeof talk->news, NULL, 0, NULL) != 1)
        talk->news.error = EPIPE;
}

static int start(struct talk *talk, const struct llm_request *request)
{
    own_str text = request_text(request);
    own_fd in = io_sealed_memfd("request", text, strlen(text), 0);
    int out[2] = { -1, -1 }, notes[2] = { -1, -1 };
    if (in < 0 || pipe2(out, O_CLOEXEC) < 0)
        return -1;
    talk->out.fd = out[0];
    own_fd out_end = out[1];
    if (pipe2(notes, O_CLOEXEC) < 0)
        return -1;
    talk->notes.fd = notes[0];
    own_fd notes_end = notes[1];
    struct order run = { RUN };
    int given[] = { in, out_end, notes_end };
    if (fcntl(talk->out.fd, F_SETFL, O_NONBLOCK) < 0 ||
        fcntl(talk->notes.fd, F_SETFL, O_NONBLOCK) < 0)
        return -1;
    return io_send(talk->sock, &run, sizeof run, given, 3);
}

static void fail_as(const char *name, enum llm_outcome outcome, struct llm_reply *reply)
{
    static const struct {
        enum llm_outcome outcome;
        const char *what, *hint;
    } rows[] = {
        { LLM_TIMEOUT, "did not reply in time, and was ended", "give the task more time" },
        { LLM_CANCELLED, "was ended, as asked", NULL },
        { LLM_TOO_LONG, "wrote more than a reply's maximum, and was ended", HINT },
        { LLM_BROKEN, "was lost with the helper that starts it", "try again" },
    };
    for (size_t i = 0; i < array_len(rows); i++)
        if (rows[i].outcome == outcome)
            llm_fail(reply, outcome, rows[i].hint, "'%.200s' %s", name, rows[i].what);
}

static void fail_by_status(const char *name, const struct talk *talk, struct llm_reply *reply)
{
    int status = talk->news.status, code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    struct str notes = buf_str(&talk->notes.text);
    int len = (int)(notes.len < 300 ? notes.len : 300);
    if (talk->news.error)
        llm_fail(reply, LLM_GARBAGE, HINT, "'%.200s' was not started: %s", name,
                 strerror(talk->news.error));
    else if (code == 127 || code == 126)
        llm_fail(reply, LLM_UNKNOWN_MODEL, "name a program that can be run: exec:./model",
                 "'%.200s' cannot be run as a program", name);
    else if (code > 0)
        llm_fail(reply, LLM_GARBAGE, HINT, "'%.200s' ended with exit code %d: %.*s", name, code,
                 len, notes.at);
    else if (code < 0)
        llm_fail(reply, LLM_GARBAGE, HINT, "'%.200s' was ended by signal %d: %.*s", name,
                 WTERMSIG(status), len, notes.at);
    else
        llm_fail(reply, LLM_GARBAGE, HINT, "'%.200s' wrote nothing", name);
}

static void understand(struct llm_model *model, struct str text, struct llm_try *try)
{
    struct err err = ERR_INIT;
    while (text.len > 0 && (text.at[text.len - 1] == '\n' || text.at[text.len - 1] == '\r'))
        text.len--;
    own_json value = json_read(text, OUTPUT_MAX, &err);
    if (json_is_object(value))
        llm_plain_reply(model, value, try);
    else
        llm_plain_text(text, try);
}

static void ask(struct llm_model *model, struct llm_try *try)
{
    struct helper *helper = model->state;
    struct talk talk = { .sock = helper->sock,
                         .out = { -1, false, false, BUF_INIT(OUTPUT_MAX) },
                         .notes = { -1, true, false, BUF_INIT(NOTES_MAX) } };
    if (start(&talk, try->request) < 0) {
        llm_fail(try->reply, LLM_BROKEN, "try again", "start '%.200s': %s", model->name,
                 strerror(errno));
    } else {
        enum llm_outcome outcome = listen_to(&talk, try);
        if (outcome != LLM_OK && outcome != LLM_BROKEN)
            end_it(&talk);
        if (outcome != LLM_OK)
            fail_as(model->name, outcome, try->reply);
        else if (talk.news.error || talk.news.status || talk.out.text.len == 0)
            fail_by_status(model->name, &talk, try->reply);
        else
            understand(model, buf_str(&talk.out.text), try);
    }
    own_close_fd(&talk.out.fd);
    own_close_fd(&talk.notes.fd);
    buf_done(&talk.out.text);
    buf_done(&talk.notes.text);
}

static void close_helper(void *state)
{
    struct helper *helper = state;
    own_close_fd(&helper->sock);
    while (helper->pid > 0 && waitpid(helper->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    free(helper);
}

static void *again(struct llm_model *model, struct err *err)
{
    const struct helper *from = model->state;
    int ends[2];
    struct order order = { AGAIN };
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) {
        err_sys(err, "make a socket for '%.200s'", model->name);
        return NULL;
    }
    own_fd ours = ends[0], theirs = ends[1];
    if (io_send(from->sock, &order, sizeof order, &theirs, 1) < 0) {
        err_sys(err, "start the helper for '%.200s'", model->name);
        return NULL;
    }
    struct helper *helper = buf_alloc_zero(1, sizeof *helper);
    *helper = (struct helper){ take_fd(&ours), 0 };
    return helper;
}

/* Splits the command into words; one word if all of it names a file. Cuts `text` in place. */
static void split(char *text, char *argv[ARGS_MAX + 1])
{
    size_t count = 0;
    bool whole = access(text, F_OK) == 0;
    for (char *at = text; *at && count < ARGS_MAX;) {
        argv[count++] = at;
        at += whole ? strlen(at) : strcspn(at, " ");
        while (*at == ' ')
            *at++ = 0;
    }
    argv[count] = NULL;
}

static attr_noreturn void become_helper(int given, char *command)
{
    char *argv[ARGS_MAX + 1];
    int sock = io_keep_alone(given);
    if (sock < 0)
        _exit(1);
    llm_forget_keys();
    split(command, argv);
    serve(sock, argv);
}

int llm_exec_open(const char *program, struct llm_model *model, struct err *err)
{
    static const struct llm_backend backend = { NULL, again, ask, close_helper };
    if (program[0] == 0 || program[0] == ' ')
        return err_set(err, ERR_USAGE, "'exec:' needs the name of a program");
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return err_sys(err, "make a socket for '%.200s'", model->name);
    own_fd ours = ends[0], theirs = ends[1];
    own_str command = buf_strdup(str_of(program));
    pid_t pid = fork();
    if (pid < 0)
        return err_sys(err, "start the helper for '%.200s'", model->name);
    if (pid == 0)
        become_helper(theirs, command);
    struct helper *helper = buf_alloc_zero(1, sizeof *helper);
    *helper = (struct helper){ take_fd(&ours), pid };
    model->backend = &backend;
    model->state = helper;
    model->calls_tools = true;
    model->sees = true;
    return 0;
}
