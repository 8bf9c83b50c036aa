/* Runs and sessions on an engine that runs already. The cli process: it connects as the caller,
 * and as root has the private uid when it reads the request and the answer. One
 * request is sent once: after that, a connection that breaks is an error. */
#include "cli/link/remote.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/own.h"
#include "cli/term/term.h"

#define ID "run"
/* Bytes of input that surely fit into a frame, as base64 or as text with escapes of
 * the usual kind. */
#define INPUT_MAX ((off_t)(FRAME_ASK_MAX / 4 * 3) - (16 << 20))

static off_t size_of(int fd)
{
    struct stat st;
    return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? st.st_size : 0;
}

/* What JSON cannot carry runs cold: names that are no text, and a great deal. */
static bool fits(const struct cli_run_inputs *inputs)
{
    off_t total = size_of(inputs->stdin_fd);
    for (size_t i = 0; i < inputs->file_count; i++) {
        total += size_of(inputs->files[i].fd);
        if (!str_is_utf8(str_of(inputs->files[i].spec.path)))
            return false;
    }
    return total <= INPUT_MAX;
}

int cli_remote_connect(struct cli_remote *remote, struct err *err)
{
    const char *named = getenv("CUPEL_SOCKET");
    return embed_connect(named && *named ? named : NULL, &remote->link, err);
}

int cli_remote_open(struct cli_remote *remote, const struct cli_run_inputs *inputs,
                    struct err *err)
{
    const char *named = getenv("CUPEL_SOCKET");
    struct err why = ERR_INIT;
    if (!fits(inputs) || cli_remote_connect(remote, &why) == 0 || !named || !*named)
        return 0;
    *err = why;
    err_wrap(err, "use the engine that CUPEL_SOCKET names");
    err_hint(err, "start it with 'cupel serve', unset CUPEL_SOCKET, or run with --cold");
    err->kind = ERR_HOST;
    return -1;
}

void cli_remote_forget(struct cli_remote *remote)
{
    json_decref(remote->result);
    json_decref(remote->answer);
    for (size_t i = 0; i < remote->artifact_count; i++) {
        free(remote->artifacts[i].path);
        buf_done(&remote->artifacts[i].content);
    }
    free(remote->artifacts);
    *remote = (struct cli_remote){ .link = remote->link };
}

void cli_remote_close(struct cli_remote *remote)
{
    cli_remote_forget(remote);
    embed_close(&remote->link);
}

/* --- the request --- */

json_t *cli_remote_file(const char *path, struct str bytes, bool readonly)
{
    json_t *row = json_pack("{s:s}", "path", path);
    if (!row)
        return NULL;
    /* A NUL takes six bytes as text. */
    bool plain = bytes.len == 0 || !memchr(bytes.at, 0, bytes.len);
    json_t *text = plain ? json_stringn(bytes.at ? bytes.at : "", bytes.len) : NULL;
    json_object_set_new(row, text ? "text" : "base64", text ? text : base64_json(bytes));
    if (readonly)
        json_object_set_new(row, "readonly", json_true());
    return row;
}

json_t *cli_remote_request(const struct request *request)
{
    json_t *root = json_copy(request->root);
    if (request->file_count == 0 || json_object_get(root, "files"))
        return root;
    json_t *files = json_array();
    for (size_t i = 0; i < request->file_count; i++) {
        const struct request_file *file = &request->files[i];
        json_array_append_new(files, cli_remote_file(file->path, file->data, file->readonly));
    }
    json_object_set_new(root, "files", files);
    return root;
}

/* The request's JSON, and into it what the command line gave as bytes. */
static json_t *frame_of(const struct request *request, const struct cli_remote_hooks *hooks)
{
    json_t *root = cli_remote_request(request);
    json_t *frame = json_pack("{s:s, s:s, s:o, s:b, s:b}", "op", "run", "id", ID, "request", root,
                              "events", hooks->on_event != NULL, "content", hooks->content);
    if (hooks->input)
        json_object_set_new(frame, "input", json_true());
    if (request->stdin_text.len > 0 && !json_object_get(root, "stdin")) {
        json_t *text = json_stringn(request->stdin_text.at, request->stdin_text.len);
        if (text)
            json_object_set_new(root, "stdin", text);
        else
            json_object_set_new(frame, "stdin_base64", base64_json(request->stdin_text));
    }
    return frame;
}

int cli_remote_send(struct cli_remote *remote, const struct request *request,
                    const struct cli_remote_hooks *hooks, struct err *err)
{
    own_json frame = frame_of(request, hooks);
    if (embed_send(&remote->link, frame, err) == 0)
        return 0;
    if (err->kind == ERR_LIMIT && !request->session)
        err_hint(err, "run it with --cold");
    return -1;
}

/* --- the answer --- */

static int interrupt(struct cli_remote *remote, const struct cli_remote_hooks *hooks,
                     struct err *err)
{
    char wishes[16];
    ssize_t n = read(hooks->interrupt_fd, wishes, sizeof wishes);
    own_json frame = json_pack("{s:s, s:s}", "op", "interrupt", "id", ID);
    for (ssize_t i = 0; i < n; i++)
        if (embed_send(&remote->link, frame, err) < 0)
            return -1;
    return 0;
}

/* What was typed, to the code that waits for it. */
static int answer(struct cli_remote *remote, const struct cli_remote_hooks *hooks,
                  struct err *err)
{
    own_buf line = BUF_INIT(FRAME_INPUT_MAX);
    bool end = cli_input_read(hooks->input, &line) == 0;
    json_t *text = end ? NULL : json_text(buf_str(&line));
    own_json frame = json_pack("{s:s, s:s, s:o}", "op", "input", "id", ID, end ? "end" : "text",
                               end ? json_true() : text);
    return embed_send(&remote->link, frame, err);
}

/* A part of an artifact: the first begins one, the others go on where it ended. */
static int add_artifact(struct cli_remote *remote, const struct frame_news *news, struct err *err)
{
    size_t count = remote->artifact_count;
    if (news->offset == 0) {
        struct cli_remote_artifact *more = buf_alloc_zero(count + 1, sizeof *more);
        if (count)
            memcpy(more, remote->artifacts, count * sizeof *more);
        free(remote->artifacts);
        remote->artifacts = more;
        more[count] = (struct cli_remote_artifact){ .path = buf_strdup(news->path),
                                                    .path_len = news->path.len,
                                                    .content = BUF_INIT(news->size_bytes) };
        remote->artifact_count = ++count;
    }
    struct cli_remote_artifact *last = count ? &remote->artifacts[count - 1] : NULL;
    if (!last || last->content.len != news->offset ||
        !str_eq(news->path, (struct str){ last->path, last->path_len }) ||
        buf_add_str(&last->content, news->bytes) < 0)
        return err_set(err, ERR_BUG, "the engine's artifacts do not fit together");
    return 0;
}

static void hand_over(struct cli_remote *remote, struct result *out)
{
    for (size_t i = 0; i < remote->artifact_count; i++) {
        struct cli_remote_artifact *from = &remote->artifacts[i];
        for (size_t j = 0; j < out->artifact_count; j++) {
            struct result_artifact *to = &out->artifacts[j];
            if (to->content || to->size_bytes != from->content.len ||
                !str_eq((struct str){ to->path, to->path_len },
                        (struct str){ from->path, from->path_len }))
                continue;
            to->content = buf_take(&from->content);
            break;
        }
    }
}

static void count_lost(struct cli_remote *remote, const json_t *news)
{
    const char *stream = json_string_value(json_object_get(news, "stream"));
    json_int_t bytes = json_integer_value(json_object_get(news, "bytes"));
    if (stream && bytes > 0)
        remote->lost[strcmp(stream, "stderr") == 0] += (uint64_t)bytes;
}

/* 1 where it was the last frame of the run, 0 where more comes. */
static int take(struct cli_remote *remote, const struct frame_news *news,
                const struct cli_remote_hooks *hooks, struct result *out, struct err *err)
{
    if (news->kind == FRAME_STDOUT || news->kind == FRAME_STDERR) {
        struct engine_event event = {
            .kind = news->kind == FRAME_STDOUT ? ENGINE_STDOUT : ENGINE_STDERR,
            .bytes = news->bytes,
        };
        if (hooks->on_event)
            hooks->on_event(hooks->user, &event);
    } else if (news->kind == FRAME_SESSION_NEWS) {
        const char *what = json_string_value(json_object_get(news->root, "text"));
        cli_term_note("session: %.300s", what ? what : "?");
    } else if (news->kind == FRAME_ASKS && hooks->input) {
        cli_input_begin(hooks->input, news->echo);
    } else if (news->kind == FRAME_LOST) {
        count_lost(remote, news->root);
    } else if (news->kind == FRAME_ARTIFACT) {
        return add_artifact(remote, news, err);
    } else if (news->kind == FRAME_ERROR) {
        struct err why = ERR_INIT;
        result_refusal_read(news->body, &why);
        if (news->id.len == 0 && why.kind == ERR_ABSENT)
            return 0; /* of no run: an interrupt that came too late */
        *err = why;
        return -1;
    } else if (news->kind == FRAME_ANSWER) {
        remote->answer = json_incref(news->body);
        json_object_del(remote->answer, "id");
        return 1;
    } else if (news->kind == FRAME_RESULT) {
        remote->result = json_incref(news->body);
        if (result_from_json(remote->result, out, err) < 0)
            return -1;
        hand_over(remote, out);
        return 1;
    }
    return 0;
}

static int take_all(struct cli_remote *remote, const struct cli_remote_hooks *hooks,
                    struct result *out, struct err *err)
{
    struct str text;
    int got, rc = 0;
    while (rc == 0 && (got = embed_next(&remote->link, &text, err)) != 0) {
        own_frame_news news = FRAME_NEWS_INIT;
        rc = got < 0 || frame_news_read(text, &news, err) < 0
                 ? -1
                 : take(remote, &news, hooks, out, err);
    }
    return rc;
}

/* -1 in a pollfd is no descriptor: nothing waits for that one. */
static int fd_if_behind(const struct cli_stream *stream)
{
    return stream && cli_stream_is_behind(stream) ? stream->fd : -1;
}

int cli_remote_wait(struct cli_remote *remote, const struct cli_remote_hooks *hooks,
                    struct result *out, struct err *err)
{
    for (;;) {
        int rc = take_all(remote, hooks, out, err);
        if (rc != 0)
            return rc < 0 ? -1 : 0;
        struct pollfd ready[] = { { .fd = remote->link.fd, .events = POLLIN },
                                  { .fd = hooks->interrupt_fd, .events = POLLIN },
                                  { .fd = fd_if_behind(hooks->streams[0]), .events = POLLOUT },
                                  { .fd = fd_if_behind(hooks->streams[1]), .events = POLLOUT },
                                  { .fd = cli_input_fd(hooks->input), .events = POLLIN } };
        if (poll(ready, array_len(ready), -1) < 0) {
            if (errno == EINTR)
                continue;
            return err_sys(err, "wait for the engine");
        }
        if (ready[2].revents || ready[3].revents)
            hooks->on_room(hooks->user);
        if (ready[1].revents && interrupt(remote, hooks, err) < 0)
            return -1;
        if (ready[4].revents && answer(remote, hooks, err) < 0)
            return -1;
        int filled = ready[0].revents ? embed_fill(&remote->link, err) : 1;
        if (filled < 0)
            return -1;
        if (filled == 0) {
            err_set(err, ERR_HOST, "the engine ended before it answered");
            err_hint(err, "the code may have run; 'cupel serve' says why it ended");
            return -1;
        }
    }
}

bool cli_remote_hear(struct cli_remote *remote)
{
    const struct cli_remote_hooks hooks = { .interrupt_fd = -1 };
    struct err unheard = ERR_INIT; /* the next who asks hears it */
    own_result none;
    result_init(&none);
    return embed_fill(&remote->link, &unheard) > 0 &&
           take_all(remote, &hooks, &none, &unheard) >= 0;
}

int cli_remote_ask(struct cli_remote *remote, const json_t *ask, struct err *err)
{
    const struct cli_remote_hooks hooks = { .interrupt_fd = -1 };
    own_json frame = json_pack("{s:s, s:s}", "op", "session", "id", ID);
    own_result none;
    result_init(&none);
    cli_remote_forget(remote);
    json_object_update(frame, (json_t *)(uintptr_t)ask);
    if (embed_send(&remote->link, frame, err) < 0 ||
        cli_remote_wait(remote, &hooks, &none, err) < 0)
        return -1;
    return remote->answer ? 0 : err_set(err, ERR_BUG, "the engine answers something else");
}
