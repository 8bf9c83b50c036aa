/* An engine of our own: `cupel serve`, of $CUPEL or build/cupel.
 * 1. We fork the guard. It starts `cupel serve` and waits until the leash closes, which happens
 *    however we end; then it ends the engine and removes its folder.
 * 2. One engine at a time: another guard would hold the leash of the first.
 * 3. A client costs little: bytes made before, one send, one recv, no JSON read. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"
#include "bench.h"
#include "contract/result.h"

#define ANSWER_MAX (256u << 10)
#define START_MS 60000
#define FULL_MS 60000 /* a pool that is not full by then does not work */
#define END_MS 20000
#define LOOK_MS 10    /* between two looks at the pools */

/* --- the guard --- */

static void remove_folder(const char *folder)
{
    static const char *const names[] = { "/engine/socket", "/engine/socket.lock", "/engine", "" };
    for (size_t i = 0; i < array_len(names); i++) {
        char path[320];
        snprintf(path, sizeof path, "%s%s", folder, names[i]);
        if (i < 2)
            unlink(path);
        else
            rmdir(path);
    }
}

static pid_t start_engine(const char *folder, int pool)
{
    char path[320], size[16];
    char name[] = "cupel", command[] = "serve", quiet[] = "-q", socket_[] = "--socket",
         pool_[] = "--pool";
    char *argv[] = { name, command, quiet, socket_, path, pool >= 0 ? pool_ : NULL, size, NULL };
    const char *named = getenv("CUPEL"), *program = named ? named : "build/cupel";
    pid_t pid = 0;
    snprintf(path, sizeof path, "%s/engine/socket", folder);
    snprintf(size, sizeof size, "%d", pool);
    unsetenv("NOTIFY_SOCKET");
    unsetenv("CUPEL_TRACE");
    int rc = posix_spawn(&pid, program, NULL, NULL, argv, environ);
    if (rc == 0)
        return pid;
    fprintf(stderr, "bench: start '%s serve': %s\n", program, strerror(rc));
    return -1;
}

attr_noreturn static void guard(const char *folder, int pool, int leash)
{
    /* A session of its own: Ctrl-C reaches the measuring process only, and the leash ends us. */
    setsid();
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null, 0);
    dup2(null, 1);
    pid_t pid = start_engine(folder, pool);
    own_fd engine = pid > 0 ? pidfd_open(pid, 0) : -1;
    if (engine >= 0) {
        struct pollfd both[] = { { .fd = leash, .events = POLLIN },
                                 { .fd = engine, .events = POLLIN } };
        while (poll(both, 2, -1) < 0 && errno == EINTR)
            continue;
        kill(pid, SIGTERM); /* ours and not yet waited for: the number is its own */
        if (poll(&both[1], 1, END_MS) <= 0)
            kill(pid, SIGKILL);
    } else if (pid > 0) {
        kill(pid, SIGTERM);
    }
    if (pid > 0)
        waitpid(pid, NULL, 0);
    remove_folder(folder);
    _exit(0);
}

static int start_guard(int pool, struct bench_engine *out, struct err *err)
{
    int ends[2];
    const char *above = getenv("TMPDIR");
    if (!above || above[0] != '/' || strlen(above) > sizeof out->folder / 2)
        above = "/tmp";
    snprintf(out->folder, sizeof out->folder, "%s/cupel-bench-XXXXXX", above);
    if (!mkdtemp(out->folder))
        return err_sys(err, "make a folder in '%s'", above);
    if (pipe2(ends, O_CLOEXEC) < 0) {
        rmdir(out->folder);
        return err_sys(err, "make a pipe");
    }
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[1]);
        guard(out->folder, pool, ends[0]);
    }
    close(ends[0]);
    if (pid < 0) {
        close(ends[1]);
        rmdir(out->folder);
        return err_sys(err, "start a guard for the engine");
    }
    out->guard = pid;
    out->leash = ends[1];
    return 0;
}

int bench_engine_open(int pool, struct bench_engine *out, struct err *err)
{
    *out = BENCH_ENGINE_INIT;
    int64_t from = clock_now_ns();
    if (start_guard(pool, out, err) < 0)
        return -1;
    while (bench_client_open(out, &out->client, err) < 0) {
        bool ended = waitpid(out->guard, NULL, WNOHANG) == out->guard;
        if (ended)
            out->guard = 0;
        if (ended || clock_ms_between(from, clock_now_ns()) > START_MS) {
            bench_engine_close(out);
            err_set(err, ERR_HOST, "the engine to be measured does not start");
            err_hint(err, "'cupel serve' and 'cupel doctor' say why");
            return -1;
        }
        bench_nap(LOOK_MS);
    }
    return 0;
}

void bench_engine_close(struct bench_engine *engine)
{
    bench_client_close(&engine->client);
    own_close_fd(&engine->leash);
    if (engine->guard > 0)
        waitpid(engine->guard, NULL, 0);
    *engine = BENCH_ENGINE_INIT;
}

/* --- a client --- */

int bench_client_open(const struct bench_engine *engine, struct bench_client *out, struct err *err)
{
    char path[320];
    struct embed_link link = EMBED_LINK_INIT;
    snprintf(path, sizeof path, "%s/engine/socket", engine->folder);
    if (embed_connect(path, &link, err) < 0)
        return -1;
    *out = (struct bench_client){ .link = link, .answer = buf_alloc(ANSWER_MAX) };
    return 0;
}

void bench_client_close(struct bench_client *client)
{
    embed_close(&client->link);
    free(client->answer);
    *client = (struct bench_client){ .link = EMBED_LINK_INIT };
}

int bench_frame(const char *id, const char *language, const char *code, struct buf *out,
                struct err *err)
{
    own_json frame = json_pack("{s:s, s:s, s:{s:s, s:s}}", "op", "run", "id", id, "request",
                               "language", language, "code", code);
    if (frame_add(out, frame, FRAME_ASK_MAX) == 0)
        return 0;
    return err_set(err, ERR_BUG, "the request of a row does not fit into a frame");
}

int bench_send(struct bench_client *client, const struct buf *frame, struct err *err)
{
    client->got = 0;
    ssize_t n = send(client->link.fd, frame->at, frame->len, MSG_NOSIGNAL);
    if (n == (ssize_t)frame->len)
        return 0;
    return n < 0 ? err_sys(err, "write to the engine")
                 : err_set(err, ERR_BUG, "the engine took half a request");
}

/* News of a session may come before the end of its cell, which is stored first. */
static bool skip_news(struct bench_client *client)
{
    static const char start[] = "{\"event\":";
    struct str text;
    size_t len = 0;
    struct err ignored = ERR_INIT;
    struct str bytes = { client->answer, client->got };
    if (frame_next(bytes, ANSWER_MAX - FRAME_HEAD, &text, &len, &ignored) <= 0 ||
        text.len < sizeof start - 1 || memcmp(text.at, start, sizeof start - 1) != 0)
        return false;
    memmove(client->answer, client->answer + len, client->got - len);
    client->got -= len;
    return true;
}

/* Exactly one frame of a call: a run without events sends nothing but its end. */
int bench_receive(struct bench_client *client, struct err *err)
{
    ssize_t n = recv(client->link.fd, client->answer + client->got, ANSWER_MAX - client->got, 0);
    if (n < 0 && errno == EINTR)
        return 0;
    if (n < 0)
        return err_sys(err, "read from the engine");
    if (n == 0)
        return err_set(err, ERR_BUG, "the engine closed the connection");
    client->got += (size_t)n;
    while (skip_news(client))
        continue;
    struct str text;
    return frame_next((struct str){ client->answer, client->got }, ANSWER_MAX - FRAME_HEAD, &text,
                      NULL, err);
}

bool bench_has(const struct bench_client *client, const char *text)
{
    return memmem(client->answer, client->got, text, strlen(text)) != NULL;
}

int bench_explain(const struct bench_client *client, struct err *err)
{
    struct str text;
    own_frame_news news = FRAME_NEWS_INIT;
    struct str bytes = { client->answer, client->got };
    if (frame_next(bytes, ANSWER_MAX, &text, NULL, err) <= 0 ||
        frame_news_read(text, &news, err) < 0)
        return err_set(err, ERR_BUG, "the engine's answer is no frame");
    if (news.kind == FRAME_ERROR) {
        result_refusal_read(news.body, err);
        return -1;
    }
    char brief[300];
    json_brief(json_object_get(news.body, "error"), brief, sizeof brief);
    const char *status = json_string_value(json_object_get(news.body, "status"));
    return err_set(err, ERR_BUG, "a run ended with status '%s': %s", status ? status : "?", brief);
}

int bench_check(const struct bench_client *client, bool *out_warm, struct err *err)
{
    if (!bench_has(client, "\"status\":\"ok\""))
        return bench_explain(client, err);
    *out_warm = bench_has(client, "\"warm\":true");
    return 0;
}

int bench_run(struct bench_client *client, const struct buf *frame, double *out_ms, bool *out_warm,
              struct err *err)
{
    int got = 0;
    int64_t from = clock_now_ns();
    if (bench_send(client, frame, err) < 0)
        return -1;
    while (got == 0)
        got = bench_receive(client, err);
    *out_ms = clock_ms_between(from, clock_now_ns());
    return got < 0 ? -1 : bench_check(client, out_warm, err);
}

/* --- the pools --- */

static unsigned number_in(const json_t *object, const char *name)
{
    return (unsigned)json_integer_value(json_object_get(object, name));
}

static void read_state(const json_t *info, const char *name, struct bench_pool *out)
{
    const json_t *state = json_object_get(info, "state"), *one;
    size_t i;
    *out = (struct bench_pool){ .engine = (pid_t)number_in(info, "pid") };
    json_array_foreach (json_object_get(state, "pools"), i, one) {
        const char *of = json_string_value(json_object_get(one, "name"));
        if (of && strcmp(of, name) == 0) {
            out->ready = number_in(one, "ready");
            out->wanted = number_in(one, "wanted");
        }
    }
    /* A zygote that still starts would use the machine. */
    const json_t *zygotes = json_object_get(state, "zygotes");
    out->zygotes = json_array_size(zygotes) > 0;
    json_array_foreach (zygotes, i, one) {
        const char *is = json_string_value(json_object_get(one, "state"));
        out->zygotes = out->zygotes && is && strcmp(is, "ready") == 0;
    }
}

int bench_pool(struct bench_client *client, const char *name, struct bench_pool *out,
               struct err *err)
{
    own_json ask = json_pack("{s:s}", "op", "info");
    own_buf frame = BUF_INIT(256);
    struct str text;
    int got = 0;
    if (frame_add(&frame, ask, FRAME_ASK_MAX) < 0 || bench_send(client, &frame, err) < 0)
        return -1;
    while (got == 0)
        got = bench_receive(client, err);
    if (got < 0 ||
        frame_next((struct str){ client->answer, client->got }, ANSWER_MAX, &text, NULL, err) <= 0)
        return -1;
    own_json info = json_read(text, ANSWER_MAX, err);
    if (!info)
        return -1;
    read_state(info, name, out);
    return 0;
}

int bench_wait_full(struct bench_client *client, const char *name, struct bench_pool *out,
                    struct err *err)
{
    int64_t from = clock_now_ns();
    bool python = strcmp(name, "javascript") != 0;
    for (;;) {
        if (bench_pool(client, name, out, err) < 0)
            return -1;
        if (out->wanted > 0 && out->ready >= out->wanted && (out->zygotes || !python))
            return 0;
        if (clock_ms_between(from, clock_now_ns()) > FULL_MS)
            return err_set(err, ERR_HOST, "the pool '%s' does not fill: %u of %u wait after %d s",
                           name, out->ready, out->wanted, FULL_MS / 1000);
        bench_nap(LOOK_MS);
    }
}
