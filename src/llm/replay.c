/* replay:FILE: recorded replies, served in order. Opening the model reads the whole file as the
 * caller; making it ready parses it, without the caller's rights: its faults are known before
 * anything runs. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/own.h"
#include "llm/file.h"
#include "llm/llm_int.h"

#define FILE_MAX ((size_t)64 << 20)

struct replay {
    char *path;
    struct buf text;
    json_t *replies; /* NULL: not read yet */
    size_t next;
};

static int ready(struct llm_model *model, struct err *err);

static void ask(struct llm_model *model, struct llm_try *try)
{
    struct replay *replay = model->state;
    struct err err = ERR_INIT;
    if (ready(model, &err) < 0) {
        llm_fail(try->reply, LLM_GARBAGE, "write one reply per line", "%.400s", err.text);
        return;
    }
    size_t count = json_array_size(replay->replies);
    if (replay->next == count) {
        llm_fail(try->reply, LLM_EXHAUSTED, "record more replies, or ask for less",
                 "'%.200s' has no further reply after its %zu", model->name, count);
        return;
    }
    llm_plain_reply(model, json_array_get(replay->replies, replay->next++), try);
}

static void close_replay(void *state)
{
    struct replay *replay = state;
    json_decref(replay->replies);
    buf_done(&replay->text);
    free(replay->path);
    free(replay);
}

/* From the first reply on. */
static void *again(struct llm_model *model, struct err *err)
{
    const struct replay *from = model->state;
    if (ready(model, err) < 0)
        return NULL;
    struct replay *replay = buf_alloc_zero(1, sizeof *replay);
    replay->path = buf_strdup(str_of(from->path));
    replay->replies = json_deep_copy(from->replies);
    return replay;
}

static int read_file(const char *path, struct buf *out, struct err *err)
{
    own_fd fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return err_set(err, ERR_ABSENT, "no such file of replies: '%.200s'", path);
    if (fd < 0)
        return err_sys(err, "open the replies '%.200s'", path);
    return llm_file_read(fd, path, out, err);
}

static int add_line(json_t *replies, struct str line, size_t number, struct err *err)
{
    while (line.len > 0 && strchr(" \t\r", line.at[line.len - 1]))
        line.len--;
    if (line.len == 0)
        return 0;
    own_json reply = json_read(line, line.len, err);
    if (!reply)
        return err_wrap(err, "line %zu", number);
    if (!json_is_object(reply))
        return err_set(err, ERR_INPUT, "line %zu: a reply is an object", number);
    json_array_append(replies, reply);
    return 0;
}

static json_t *parse(struct str text, struct err *err)
{
    size_t blank = 0;
    while (blank < text.len && strchr(" \t\r\n", text.at[blank]))
        blank++;
    if (blank < text.len && text.at[blank] == '[') {
        own_json all = json_read(text, FILE_MAX, err);
        size_t i;
        json_t *reply;
        json_array_foreach (all, i, reply)
            if (!json_is_object(reply)) {
                err_set(err, ERR_INPUT, "reply %zu is not an object", i + 1);
                return NULL;
            }
        return take_ptr(all);
    }
    own_json replies = json_array();
    for (size_t at = 0, number = 1; at < text.len; number++) {
        const char *end = memchr(text.at + at, '\n', text.len - at);
        size_t len = end ? (size_t)(end - text.at) - at : text.len - at;
        if (add_line(replies, (struct str){ text.at + at, len }, number, err) < 0)
            return NULL;
        at += len + 1;
    }
    return take_ptr(replies);
}

static int ready(struct llm_model *model, struct err *err)
{
    struct replay *replay = model->state;
    if (!replay->replies)
        replay->replies = parse(buf_str(&replay->text), err);
    buf_done(&replay->text);
    return replay->replies ? 0 : err_wrap(err, "read the replies '%.200s'", replay->path);
}

/* --- a model that is only remembered --- */

static void ask_nobody(struct llm_model *model, struct llm_try *try)
{
    llm_fail(try->reply, LLM_EXHAUSTED, NULL, "'%.200s' is not asked in a replay", model->name);
}

static void close_nobody(void *state)
{
    (void)state;
}

struct llm_model *llm_remembered(const char *name, bool sees, bool calls_tools)
{
    static const struct llm_backend backend = { NULL, NULL, ask_nobody, close_nobody };
    struct llm_model *model = buf_alloc_zero(1, sizeof *model);
    model->name = buf_strdup(str_of(name));
    model->backend = &backend;
    model->sees = sees;
    model->calls_tools = calls_tools;
    model->price = LLM_PRICE_UNKNOWN;
    return model;
}

int llm_replay_open(const char *path, struct llm_model *model, struct err *err)
{
    static const struct llm_backend backend = { ready, again, ask, close_replay };
    if (path[0] == 0)
        return err_set(err, ERR_USAGE, "'replay:' needs the name of a file");
    struct replay *replay = buf_alloc_zero(1, sizeof *replay);
    replay->path = buf_strdup(str_of(path));
    replay->text = BUF_INIT(FILE_MAX);
    model->backend = &backend;
    model->state = replay;
    model->scripted = true;
    model->calls_tools = true;
    return read_file(path, &replay->text, err);
}
