/* Runs and sessions on a running engine. Runs in the cli process: it connects as the caller, and as
 * root has the private uid when it reads the request and the answer. One request is sent once: a
 * connection that breaks later is an error. */
#include "cli/link/remote.h"

#include <string.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/own.h"
#include "cli/term/late.h"
#include "cli/term/term.h"

#define LATE_TEXT_MAX (1u << 20)

/* --- the connection --- */

/* While a cell runs, its result will have it. */
static void hear_late(struct cli_remote *remote, const json_t *event)
{
    if (remote->hooks && remote->hooks->on_event)
        return;
    own_buf out = BUF_INIT(LATE_TEXT_MAX);
    remote->late_shown += cli_late_add(event, &out);
    cli_term_write(STDERR_FILENO, buf_str(&out));
}

static void on_session(void *user, const struct frame_news *news, struct str text)
{
    const char *what = json_string_value(json_object_get(news->root, "text"));
    (void)text;
    if (str_is(json_get_str(news->root, "event"), "output"))
        hear_late(user, news->root);
    else
        cli_term_note("session: %.300s", what ? what : "?");
}

static int adopt(struct cli_remote *remote, int rc, const struct embed_link *link)
{
    if (rc < 0)
        return -1;
    embed_client_init(&remote->client, link);
    remote->client.on_session = on_session;
    remote->client.user = remote;
    return 0;
}

int cli_remote_connect(struct cli_remote *remote, struct err *err)
{
    struct embed_link link;
    return adopt(remote, embed_connect(embed_named(), &link, err), &link);
}

int cli_remote_spawn(struct cli_remote *remote, char *const *options, int errors, struct err *err)
{
    struct embed_link link;
    return adopt(remote, embed_spawn("/proc/self/exe", options, errors, &link, err), &link);
}

int cli_remote_open(struct cli_remote *remote, struct err *err)
{
    struct err why = ERR_INIT;
    if (cli_remote_connect(remote, &why) == 0 || !embed_named())
        return 0;
    *err = why;
    err_wrap(err, "use the engine that CUPEL_SOCKET names");
    err_hint(err, "start it with 'cupel serve', unset CUPEL_SOCKET, or run with --cold");
    err->kind = ERR_HOST;
    return -1;
}

void cli_remote_forget(struct cli_remote *remote)
{
    embed_call_done(&remote->client, &remote->call);
    memset(remote->lost, 0, sizeof remote->lost);
}

void cli_remote_close(struct cli_remote *remote)
{
    cli_remote_forget(remote);
    embed_client_close(&remote->client);
}

/* --- the request --- */

json_t *cli_remote_request(const struct request *request)
{
    json_t *root = json_copy(request->root);
    if (request->file_count == 0 || json_object_get(root, "files"))
        return root;
    json_t *files = json_array();
    for (size_t i = 0; i < request->file_count; i++) {
        const struct request_file *file = &request->files[i];
        json_array_append_new(files, embed_file(file->path, file->data, file->readonly));
    }
    json_object_set_new(root, "files", files);
    return root;
}

/* The request's JSON, with the bytes of the command line. */
static json_t *frame_of(const struct request *request, const struct cli_remote_hooks *hooks)
{
    json_t *root = cli_remote_request(request);
    bool approves = cli_approve_can(hooks->approve);
    json_t *frame = json_pack("{s:s, s:o, s:b, s:b}", "op", "run", "request", root, "events",
                              hooks->on_event != NULL || approves, "content", hooks->content);
    if (hooks->input)
        json_object_set_new(frame, "input", json_true());
    if (approves)
        json_object_set_new(frame, "approve", json_true());
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
    cli_remote_forget(remote);
    remote->call = (struct embed_call){ .is_run = true, .collects = true };
    if (embed_client_begin(&remote->client, &remote->call, frame, err) == 0)
        return 0;
    if (err->kind == ERR_LIMIT && !request->session)
        err_hint(err, "run it with --cold");
    return -1;
}

/* --- the answer --- */

static void hand_over(struct cli_remote *remote, struct result *out)
{
    for (size_t i = 0; i < remote->call.artifact_count; i++) {
        struct embed_artifact *from = &remote->call.artifacts[i];
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

static void on_news(struct embed_call *call, const struct frame_news *news, struct str text)
{
    struct cli_remote *remote = call->user;
    const struct cli_remote_hooks *hooks = remote->hooks;
    (void)text;
    if ((news->kind == FRAME_STDOUT || news->kind == FRAME_STDERR) && hooks->on_event) {
        struct engine_event event = {
            .kind = news->kind == FRAME_STDOUT ? ENGINE_STDOUT : ENGINE_STDERR,
            .bytes = news->bytes,
        };
        cli_approve_leave(hooks->approve);
        hooks->on_event(hooks->user, &event);
    } else if ((news->kind == FRAME_VALUE || news->kind == FRAME_CLEAR) && hooks->on_event) {
        struct engine_event event = {
            .kind = news->kind == FRAME_VALUE ? ENGINE_RESULT : ENGINE_CLEAR,
            .index = news->index,
            .updates = news->updates,
            .data = news->data,
        };
        cli_approve_leave(hooks->approve);
        hooks->on_event(hooks->user, &event);
    } else if (news->kind == FRAME_ASKS && hooks->input) {
        cli_input_begin(hooks->input, news->echo);
    } else if (news->kind == FRAME_APPROVAL && hooks->approve) {
        cli_approve_hear(hooks->approve, news->root);
    } else if (news->kind == FRAME_CALLED) {
        cli_approve_over(hooks->approve, json_integer_value(json_object_get(news->root, "call")));
    } else if (news->kind == FRAME_LOST) {
        json_int_t bytes = json_integer_value(json_object_get(news->root, "bytes"));
        bool is_err = str_is(json_get_str(news->root, "stream"), "stderr");
        remote->lost[is_err] += bytes > 0 ? (uint64_t)bytes : 0;
    }
}

/* One interrupt for each byte. */
static void interrupt(struct cli_remote *remote, int fd)
{
    struct err ignored = ERR_INIT;
    char wishes[16];
    ssize_t n = read(fd, wishes, sizeof wishes);
    cli_approve_drop(remote->hooks->approve); /* the engine takes these calls back */
    for (ssize_t i = 0; i < n; i++)
        embed_client_say(&remote->client, &remote->call, json_pack("{s:s}", "op", "interrupt"),
                         &ignored);
}

/* Sends the typed line to the waiting code. */
static void answer(struct cli_remote *remote, struct cli_input *input)
{
    struct err ignored = ERR_INIT;
    own_buf line = BUF_INIT(FRAME_INPUT_MAX);
    bool end = cli_input_read(input, &line) == 0;
    json_t *value = end ? json_true() : json_text(buf_str(&line));
    embed_client_say(&remote->client, &remote->call,
                     json_pack("{s:s, s:o}", "op", "input", end ? "end" : "text", value), &ignored);
}

/* Sends the decisions that there are, and asks the next question. */
static void decide(struct cli_remote *remote, struct cli_approve *approve)
{
    struct cli_approve_decision made;
    struct err unheard = ERR_INIT; /* a call that waits no more */
    while (cli_approve_next(approve, &made))
        embed_client_approve(&remote->client, &remote->call, made.call, made.allow, made.reason,
                             &unheard);
}

/* poll ignores -1. */
static int fd_if_behind(const struct cli_stream *stream)
{
    return stream && cli_stream_is_behind(stream) ? stream->fd : -1;
}

static int wait_for_end(struct cli_remote *remote, const struct cli_remote_hooks *hooks,
                        struct err *err)
{
    struct embed_call *call = &remote->call;
    call->on_news = on_news;
    call->user = remote;
    remote->hooks = hooks;
    while (!call->done) {
        decide(remote, hooks->approve);
        const int asked = cli_approve_fd(hooks->approve); /* before the code's own questions */
        struct pollfd ready[] = { { .fd = hooks->interrupt_fd, .events = POLLIN },
                                  { .fd = fd_if_behind(hooks->streams[0]), .events = POLLOUT },
                                  { .fd = fd_if_behind(hooks->streams[1]), .events = POLLOUT },
                                  { .fd = asked < 0 ? cli_input_fd(hooks->input) : -1,
                                    .events = POLLIN },
                                  { .fd = asked, .events = POLLIN } };
        embed_client_poll(&remote->client, ready, array_len(ready));
        if (ready[1].revents || ready[2].revents)
            hooks->on_room(hooks->user);
        if (ready[0].revents && !call->done)
            interrupt(remote, hooks->interrupt_fd);
        if (ready[3].revents && !call->done)
            answer(remote, hooks->input);
        if (ready[4].revents && cli_approve_fd(hooks->approve) >= 0)
            cli_approve_read(hooks->approve);
    }
    cli_approve_drop(hooks->approve);
    remote->hooks = NULL;
    *err = call->err;
    return err->kind == ERR_NONE ? 0 : -1;
}

/* The person may have seen all of it already. */
static void drop_shown(struct cli_remote *remote, struct result *result)
{
    size_t i;
    json_t *entry;
    json_int_t all = 0;
    json_array_foreach (result->late, i, entry)
        all += json_integer_value(json_object_get(entry, "bytes"));
    if (all <= (json_int_t)remote->late_shown) {
        json_decref(result->late);
        result->late = NULL;
    }
    remote->late_shown = 0;
}

int cli_remote_wait(struct cli_remote *remote, const struct cli_remote_hooks *hooks,
                    struct result *out, struct err *err)
{
    if (wait_for_end(remote, hooks, err) < 0 || result_from_json(remote->call.answer, out, err) < 0)
        return -1;
    hand_over(remote, out);
    drop_shown(remote, out);
    return 0;
}

bool cli_remote_hear(struct cli_remote *remote)
{
    return embed_client_ready(&remote->client);
}

int cli_remote_ask(struct cli_remote *remote, const json_t *ask, struct err *err)
{
    const struct cli_remote_hooks hooks = { .interrupt_fd = -1 };
    own_json frame = json_pack("{s:s}", "op", "session");
    cli_remote_forget(remote);
    remote->call = (struct embed_call){ .collects = true };
    json_object_update(frame, (json_t *)(uintptr_t)ask);
    if (embed_client_begin(&remote->client, &remote->call, frame, err) < 0)
        return -1;
    return wait_for_end(remote, &hooks, err);
}
