/* One client's bytes. Runs in the serve process, in the engine's loop.
 * 1. Nothing here waits: bytes that cannot be written are kept, within the limits of held.c.
 * 2. A client that does not read its answers is not read from either.
 * 3. A conn outlives its descriptor until its last run has ended. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/io.h"
#include "base/own.h"
#include "serve/serve_int.h"

#define READ_PART (256u << 10)

size_t serve_conn_unsent(const struct serve_conn *conn)
{
    return conn->out.len - conn->sent;
}

bool serve_conn_is_quiet(const struct serve_conn *conn)
{
    return conn->source.fd < 0 || (serve_conn_unsent(conn) == 0 && !conn->answers);
}

void serve_answer_free(struct serve_answer *answer)
{
    result_artifacts_free(answer->artifacts, answer->count);
    buf_done(&answer->last);
    free(answer);
}

bool serve_conn_is_shut(const struct serve_conn *conn)
{
    size_t full = serve_conn_room(conn) + (SERVE_OUT_FULL - SERVE_OUT_MAX);
    return (conn->serve->stopping && !conn->is_guest) || serve_conn_held(conn) > full;
}

static bool may_read(const struct serve_conn *conn)
{
    return !conn->ended && !conn->starved && !serve_conn_is_shut(conn);
}

static void watch(struct serve_conn *conn)
{
    uint32_t wanted = (may_read(conn) ? EPOLLIN : 0) |
                      (serve_conn_unsent(conn) || conn->answers ? EPOLLOUT : 0);
    if (conn->source.fd < 0 || wanted == conn->watched)
        return;
    conn->watched = wanted;
    loop_change(conn->serve->loop, &conn->source, wanted);
}

/* --- out --- */

void serve_conn_say(struct serve_conn *conn, json_t *value)
{
    own_json owned = value;
    if (conn->source.fd >= 0)
        frame_add(&conn->out, owned, FRAME_NEWS_MAX);
}

void serve_conn_answer(struct serve_conn *conn, struct serve_answer *answer)
{
    if (conn->source.fd < 0) {
        serve_answer_free(answer);
        return;
    }
    answer->next = NULL;
    answer->bytes = answer->last.len;
    for (size_t i = 0; i < answer->count; i++)
        answer->bytes += answer->artifacts[i].size_bytes;
    conn->waiting += answer->bytes;
    *conn->answers_end = answer;
    conn->answers_end = &answer->next;
}

static void say_part(struct serve_conn *conn, struct serve_answer *answer)
{
    struct result_artifact *one = &answer->artifacts[answer->at];
    struct str path = { one->path, one->path_len };
    uint64_t left = one->size_bytes - answer->offset;
    size_t part = left < SERVE_PART ? (size_t)left : SERVE_PART;
    json_t *news = json_pack("{s:s, s:s, s:o}", "id", answer->id, "event", "artifact", "path",
                             json_text(path));
    if (!str_is_utf8(path))
        json_object_set_new(news, "path_base64", base64_json(path));
    json_object_set_new(news, "size_bytes", json_integer((json_int_t)one->size_bytes));
    json_object_set_new(news, "sha256", json_string(one->sha256));
    json_object_set_new(news, "offset", json_integer((json_int_t)answer->offset));
    json_object_set_new(news, "base64",
                        base64_json((struct str){ one->content + answer->offset, part }));
    serve_conn_say(conn, news);
    answer->offset += part;
    if (answer->offset == one->size_bytes) {
        answer->bytes -= one->size_bytes;
        conn->waiting -= one->size_bytes;
        free(one->content);
        one->content = NULL;
        answer->at++;
        answer->offset = 0;
    }
}

/* Swaps a long answer with the empty buffer instead of copying it. */
static void say_last(struct serve_conn *conn, struct serve_answer *answer)
{
    if (serve_conn_unsent(conn) > 0 || answer->last.len < SERVE_KEEP) {
        buf_add_str(&conn->out, buf_str(&answer->last));
        return;
    }
    struct buf empty = conn->out;
    conn->out = answer->last;
    conn->out.max = empty.max;
    conn->sent = 0;
    empty.len = 0;
    answer->last = empty;
}

/* Encodes answers only a little ahead of the client's reading. */
static void say_answers(struct serve_conn *conn)
{
    while (conn->answers && serve_conn_unsent(conn) <= SERVE_KEEP) {
        struct serve_answer *answer = conn->answers;
        if (answer->at < answer->count) {
            if (answer->artifacts[answer->at].content)
                say_part(conn, answer);
            else
                answer->at++;
            continue;
        }
        say_last(conn, answer);
        conn->waiting -= answer->bytes;
        conn->answers = answer->next;
        if (!conn->answers)
            conn->answers_end = &conn->answers;
        serve_answer_free(answer);
    }
}

/* Returns false when the client is gone. */
static bool send_some(struct serve_conn *conn)
{
    while (serve_conn_unsent(conn) > 0) {
        ssize_t n = send(conn->source.fd, conn->out.at + conn->sent, serve_conn_unsent(conn),
                         MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN;
        conn->sent += (size_t)n;
        conn->moved_ns = clock_now_ns();
    }
    return true;
}

/* Moves the unsent rest to the front only after sending at least as many bytes; frees the buffer of
 * a long answer. */
static void tidy_out(struct serve_conn *conn)
{
    if (conn->sent == conn->out.len && conn->out.room > SERVE_KEEP) {
        buf_done(&conn->out);
        conn->sent = 0;
    } else if (conn->sent > conn->out.len / 2) {
        buf_drop(&conn->out, conn->sent);
        conn->sent = 0;
    }
}

/* --- in --- */

void serve_unclaim(struct serve *serve, size_t claim)
{
    if (claim == 0)
        return;
    serve->claimed -= claim;
    for (struct serve_conn *conn = serve->conns; conn; conn = conn->after) {
        serve->again = serve->again || conn->starved;
        conn->starved = false;
    }
}

/* A large frame claims memory from the shared budget for the bytes received so far, so that an
 * announced length costs nothing. A connection without competitors always gets its claim. */
static bool claim(struct serve_conn *conn, size_t len, size_t come)
{
    struct serve *serve = conn->serve;
    size_t need = (come / SERVE_IN_STEP + 1) * SERVE_IN_STEP;
    need = need < len ? need : len;
    if (len <= SERVE_IN_FREE || conn->claim >= need)
        return true;
    size_t others = serve->claimed - conn->claim;
    if (others > 0 && (need > SERVE_IN_MAX || others > SERVE_IN_MAX - need)) {
        conn->starved = true;
        return false;
    }
    conn->claim = need;
    serve->claimed = others + need;
    return true;
}

static void take_frames(struct serve_conn *conn)
{
    struct err err = ERR_INIT;
    while (conn->source.fd >= 0 && may_read(conn)) {
        struct str rest = { conn->in.at + conn->taken, conn->in.len - conn->taken }, text;
        size_t len = 0;
        int got = rest.len ? frame_next(rest, FRAME_ASK_MAX, &text, &len, &err) : 0;
        if (got < 0) {
            /* The start of the next frame is unknown from here on. */
            serve_say_error(conn, STR_NONE, &err);
            conn->ended = true;
            break;
        }
        if ((len && !claim(conn, len, rest.len)) || got == 0)
            break;
        conn->taken += len;
        conn->frame_ns = 0;
        size_t claimed = conn->claim;
        conn->claim = 0;
        serve_run_take(conn, text, claimed);
    }
    if (conn->taken == conn->in.len && conn->in.room > SERVE_KEEP)
        buf_done(&conn->in);
    else if (conn->taken > 0)
        buf_drop(&conn->in, conn->taken);
    conn->taken = 0;
    if (conn->in.len == 0)
        conn->frame_ns = 0;
    else if (conn->frame_ns == 0 || serve_conn_is_shut(conn)) /* the delay is ours then */
        conn->frame_ns = clock_now_ns();
}

static void read_some(struct serve_conn *conn)
{
    char *room = buf_room(&conn->in, READ_PART);
    ssize_t n = room ? recv(conn->source.fd, room, READ_PART, MSG_DONTWAIT) : -1;
    if (n > 0)
        buf_grew(&conn->in, (size_t)n);
    else if (n == 0)
        conn->ended = true; /* no more requests; running ones are still answered */
    else if (errno != EAGAIN && errno != EINTR)
        serve_conn_drop(conn);
}

void serve_conn_pump(struct serve_conn *conn)
{
    if (conn->source.fd < 0)
        return;
    take_frames(conn);
    say_answers(conn); /* the rest follows in the next turn, however fast the client reads */
    if (!send_some(conn)) {
        serve_conn_drop(conn);
        return;
    }
    tidy_out(conn);
    bool full = !serve_conn_may_go(&conn->client);
    if (conn->was_full && !full)
        engine_admit(conn->serve->engine);
    conn->was_full = full;
    if (conn->ended && !conn->runs && !conn->asks && serve_conn_is_quiet(conn))
        serve_conn_drop(conn);
    else
        watch(conn);
}

static void on_ready(struct loop_source *source, uint32_t events)
{
    struct serve_conn *conn = loop_owner(source, struct serve_conn, source);
    if (events & (EPOLLHUP | EPOLLERR)) {
        serve_conn_drop(conn);
        return;
    }
    if (events & EPOLLIN)
        read_some(conn);
    /* serve_go pumps after every turn */
}

struct serve_conn *serve_conn_new(struct serve *serve, int fd, struct err *err)
{
    struct serve_conn *conn = buf_alloc_zero(1, sizeof *conn);
    io_refuse_fds(fd); /* a socket from --fd may accept descriptors */
    conn->source = (struct loop_source){ .fd = fd, .ready = LOOP_HANDLER(on_ready) };
    conn->client.may_go = serve_conn_may_go;
    conn->serve = serve;
    conn->in = BUF_INIT(FRAME_ASK_MAX + FRAME_HEAD + READ_PART);
    conn->out = BUF_INIT((size_t)1 << 40); /* bounded by rule 1 */
    conn->answers_end = &conn->answers;
    conn->watched = EPOLLIN;
    if (loop_add(serve->loop, &conn->source, conn->watched) < 0) {
        free(conn);
        err_sys(err, "watch a connection");
        return NULL;
    }
    conn->after = serve->conns;
    if (serve->conns)
        serve->conns->before = conn;
    serve->conns = conn;
    serve->conn_count++;
    serve_conn_say(conn, json_pack("{s:s, s:i, s:s}", "op", "hello", "protocol", FRAME_PROTOCOL,
                                   "engine", "cupel " CUPEL_VERSION));
    return conn;
}

void serve_conn_drop(struct serve_conn *conn)
{
    own_fd fd = conn->source.fd;
    if (fd < 0)
        return;
    loop_remove(conn->serve->loop, &conn->source);
    while (conn->answers) {
        struct serve_answer *next = conn->answers->next;
        serve_answer_free(conn->answers);
        conn->answers = next;
    }
    conn->answers_end = &conn->answers;
    conn->waiting = 0;
    serve_unclaim(conn->serve, conn->claim);
    conn->claim = 0;
    buf_done(&conn->in);
    buf_done(&conn->out);
    conn->sent = conn->taken = 0;
    serve_run_cancel_all(conn);
}

void serve_conn_free_if_done(struct serve_conn *conn)
{
    if (conn->source.fd >= 0 || conn->runs || conn->asks)
        return;
    if (conn->before)
        conn->before->after = conn->after;
    else
        conn->serve->conns = conn->after;
    if (conn->after)
        conn->after->before = conn->before;
    conn->serve->conn_count--;
    if (conn->guest.gone)
        conn->guest.gone(conn->guest.user);
    free(conn);
}
