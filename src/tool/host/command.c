/* A tool that is a program: {definition, "command": ["prog", "arg"], "env": {}, "cwd": "",
 * "output": "json"|"text", "limits": {}}. The arguments are its standard input as one JSON object,
 * the value is its standard output. Runs in the tool host's process, in the thread of the call. */
#include "tool/host/command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/json.h"
#include "base/own.h"
#include "tool/host/program.h"

#define NOTES_KEPT 8192 /* of stderr: more than a message shows and a secret is long */
#define NOTES_SHOWN 800
#define STOP_MS 3000

struct command {
    json_t *definition;
    char **argv, **env;
    char *cwd; /* NULL: the home folder */
    bool is_text;
    struct program_limits limits;
    const struct secrets *secrets;
};

/* ---- reading the file ---- */

static int refuse(const char *field, const json_t *value, const char *bound, struct err *err)
{
    char given[96];
    json_brief(value, given, sizeof given);
    return err_input(err, field, given, bound, "field '%s' is %s, must be %s", field,
                     value ? given : "missing", bound);
}

static const char *plain_text(const json_t *value)
{
    const char *text = json_string_value(value);
    return text && strlen(text) == json_string_length(value) ? text : NULL;
}

/* A relative path starts at the folder of the file. */
static char *path_from(const struct source_from *from, const char *path)
{
    own_buf whole = BUF_INIT(16384);
    if (*path == '/')
        return buf_strdup(str_of(path));
    return buf_printf(&whole, "%s/%s", from->folder, path) < 0 ? NULL : buf_take(&whole);
}

static int read_argv(const json_t *value, const struct source_from *from, struct command *to,
                     struct err *err)
{
    size_t count = json_array_size(value);
    if (!json_is_array(value) || count == 0 || count >= PROGRAM_WORDS_MAX)
        return refuse("command", value, "a list of a program and its arguments", err);
    to->argv = buf_alloc_zero(count + 1, sizeof *to->argv);
    for (size_t i = 0; i < count; i++) {
        const char *word = plain_text(json_array_get(value, i));
        if (!word || (i == 0 && !*word))
            return refuse("command", value, "a list of texts", err);
        if (strstr(word, "${secret:")) {
            refuse("command", value, "without secrets: every user sees command lines", err);
            err_hint(err, "put the secret into a variable of \"env\"");
            return -1;
        }
        to->argv[i] = i == 0 && strchr(word, '/') ? path_from(from, word)
                                                  : buf_strdup(str_of(word));
    }
    return 0;
}

static int read_env(const json_t *value, const struct source_from *from, struct command *to,
                    struct err *err)
{
    const char *name;
    json_t *text;
    size_t used = 0, count = json_object_size(value);
    if ((value && !json_is_object(value)) || count > PROGRAM_WORDS_MAX - 8)
        return refuse("env", value, "an object of at most 248 names and texts", err);
    char **extra = buf_alloc_zero(count + 1, sizeof *extra);
    int done = 0;
    json_object_foreach ((json_t *)(uintptr_t)value, name, text) {
        own_buf entry = BUF_INIT(PROGRAM_BYTES_MAX);
        own_str expanded = NULL;
        if (!*name || strchr(name, '=') || !plain_text(text))
            done = refuse("env", value, "an object of names and texts", err);
        else if (!(expanded = secrets_expand(from->secrets, plain_text(text), err)))
            done = err_wrap(err, "env.%.60s", name);
        else if (buf_printf(&entry, "%s=%s", name, expanded) < 0)
            done = refuse("env", NULL, "at most 128 KiB", err);
        else
            extra[used++] = buf_take(&entry);
        if (expanded)
            explicit_bzero(expanded, strlen(expanded));
        if (done < 0)
            break;
    }
    to->env = program_env((const char *const *)extra);
    program_env_free(extra);
    return done;
}

static int read_cwd(const json_t *value, const struct source_from *from, struct command *to,
                    struct err *err)
{
    if (value && (!plain_text(value) || !*plain_text(value)))
        return refuse("cwd", value, "the path of a folder", err);
    to->cwd = value ? path_from(from, plain_text(value)) : NULL;
    return 0;
}

static int read_output(const json_t *value, const struct source_from *from, struct command *to,
                       struct err *err)
{
    const char *text = value ? plain_text(value) : "json";
    (void)from;
    to->is_text = text && strcmp(text, "text") == 0;
    if (to->is_text || (text && strcmp(text, "json") == 0))
        return 0;
    return refuse("output", value, "\"json\" or \"text\"", err);
}

static int read_limits(const json_t *value, const struct source_from *from, struct command *to,
                       struct err *err)
{
    const struct {
        const char *name;
        uint64_t *to;
    } rows[] = { { "memory_bytes", &to->limits.memory_bytes },
                 { "cpu_s", &to->limits.cpu_s },
                 { "open_files", &to->limits.open_files },
                 { "file_bytes", &to->limits.file_bytes } };
    size_t known = 0;
    (void)from;
    for (size_t i = 0; i < array_len(rows); i++) {
        const json_t *number = json_object_get(value, rows[i].name);
        if (number && (!json_is_integer(number) || json_integer_value(number) < 1))
            return refuse("limits", value, "whole numbers of 1 or more", err);
        *rows[i].to = (uint64_t)json_integer_value(number);
        known += number != NULL;
    }
    if (!value || (json_is_object(value) && known == json_object_size(value)))
        return 0;
    return refuse("limits", value, "an object of memory_bytes, cpu_s, open_files, file_bytes", err);
}

/* The members that are the command's; all others are the definition's. */
static const struct {
    const char *name;
    int (*read)(const json_t *value, const struct source_from *from, struct command *to,
                struct err *err);
} members[] = {
    { "command", read_argv }, { "env", read_env },       { "cwd", read_cwd },
    { "output", read_output }, { "limits", read_limits },
};

static void close_command(void *state)
{
    struct command *command = state;
    for (size_t i = 0; command->argv && command->argv[i]; i++)
        free(command->argv[i]);
    free(command->argv);
    program_env_free(command->env);
    free(command->cwd);
    json_decref(command->definition);
    free(command);
}

static json_t *list(void *state, int64_t deadline_ns, json_t *faults, struct err *err)
{
    const struct command *command = state;
    (void)deadline_ns, (void)faults, (void)err;
    json_t *definitions = json_array();
    json_array_append(definitions, command->definition);
    return definitions;
}

/* ---- a call ---- */

struct talk {
    const char *tool;
    int out, notes; /* -1: at its end */
    struct buf value, said;
    bool is_full;
};

/* Reads what there is; false if there is nothing, now or ever. */
static bool drink(int *fd, struct buf *to, bool *out_full)
{
    char part[1 << 14];
    ssize_t n = *fd < 0 ? 0 : read(*fd, part, sizeof part);
    if (n < 0 && errno == EINTR)
        return true;
    if (n < 0 && errno == EAGAIN)
        return false;
    if (n <= 0) {
        own_close_fd(fd);
        return false;
    }
    if (buf_add(to, part, (size_t)n) == 0)
        return true;
    if (out_full) {
        *out_full = true;
        return false;
    }
    /* Of the notes the end is kept. */
    buf_drop(to, to->len < (size_t)n ? to->len : (size_t)n);
    return buf_add(to, part + (n > NOTES_KEPT ? n - NOTES_KEPT : 0),
                   n > NOTES_KEPT ? NOTES_KEPT : (size_t)n) == 0;
}

static void drink_all(struct talk *talk)
{
    while (drink(&talk->out, &talk->value, &talk->is_full))
        ;
    while (drink(&talk->notes, &talk->said, NULL))
        ;
}

enum ending { ENDED, LATE, CANCELLED, FULL };

/* Reads until the program and all that it started have ended, or until there is a reason to end
 * them. */
static enum ending listen_to(struct talk *talk, int handle, const struct source_context *context)
{
    for (;;) {
        struct pollfd watched[] = { { handle, POLLIN, 0 },
                                    { talk->out, POLLIN, 0 },
                                    { talk->notes, POLLIN, 0 },
                                    { context->cancel_fd, POLLIN, 0 } };
        if (clock_now_ns() >= context->deadline_ns)
            return LATE;
        if (poll(watched, array_len(watched), clock_poll_ms(context->deadline_ns)) < 0)
            continue;
        if (watched[3].revents)
            return CANCELLED;
        /* Once in a turn: one who writes without end must not hide the time. */
        drink(&talk->out, &talk->value, &talk->is_full);
        drink(&talk->notes, &talk->said, NULL);
        if (watched[0].revents)
            drink_all(talk); /* the last bytes are still in the pipes */
        if (talk->is_full || watched[0].revents)
            return talk->is_full ? FULL : ENDED;
    }
}

/* The end of what the program said on stderr, as ": text", or nothing. */
static char *tail(const struct command *command, const struct talk *talk)
{
    own_str clean = secrets_hide(command->secrets, talk->said.at ? talk->said.at : "",
                                 talk->said.len);
    struct str text = str_trim(str_of(clean));
    if (text.len > NOTES_SHOWN) {
        size_t skip = text.len - NOTES_SHOWN;
        while (skip < text.len && ((unsigned char)text.at[skip] & 0xc0) == 0x80)
            skip++;
        text = (struct str){ text.at + skip, text.len - skip };
    }
    own_buf out = BUF_INIT(NOTES_SHOWN + 8);
    if (text.len) {
        buf_add_text(&out, ": ");
        buf_add_str(&out, text);
    }
    return buf_take(&out);
}

static json_t *failed(const struct command *command, const struct talk *talk,
                      const struct program_end *end)
{
    own_str said = tail(command, talk);
    const char *program = command->argv[0];
    if (end->error)
        return outcome_error(OUTCOME_ERROR, "tool '%s': its program '%.200s' was not started: %s",
                             talk->tool, program, strerror(end->error));
    if (WIFSIGNALED(end->status))
        return outcome_error(OUTCOME_ERROR, "tool '%s' was ended by signal %d (%s)%s", talk->tool,
                             WTERMSIG(end->status), strsignal(WTERMSIG(end->status)), said);
    return outcome_error(OUTCOME_ERROR, "tool '%s' ended with exit code %d%s", talk->tool,
                         WEXITSTATUS(end->status), said);
}

static json_t *understood(const struct command *command, const struct talk *talk,
                          const struct source_context *context)
{
    struct err err = ERR_INIT;
    struct str text = buf_str(&talk->value);
    if (command->is_text)
        return outcome_value(json_text(text));
    if (str_trim(text).len == 0)
        return outcome_value(json_null());
    json_t *value = json_read(text, context->result_bytes, &err);
    if (value)
        return outcome_value(value);
    /* The parser's message quotes the output, and may cut a secret in two. */
    return outcome_error(OUTCOME_ERROR,
                         "tool '%s' wrote %zu bytes that are not one JSON text; \"output\": "
                         "\"text\" in its file takes them as a text",
                         talk->tool, text.len);
}

static json_t *outcome_of(const struct command *command, struct talk *talk, int handle,
                          const struct source_context *context)
{
    struct program_end end = { .error = 0 };
    switch (listen_to(talk, handle, context)) {
    case LATE:
        return outcome_error(OUTCOME_TIMEOUT, "tool '%s' took longer than %g s, and was ended",
                             talk->tool, (double)context->timeout_ms / 1000);
    case CANCELLED:
        return outcome_error(OUTCOME_CANCELLED, "the call of tool '%s' was cancelled", talk->tool);
    case FULL:
        return outcome_error(OUTCOME_ERROR,
                             "tool '%s' wrote more than %zu bytes (result_bytes), and was ended",
                             talk->tool, context->result_bytes);
    case ENDED: break;
    }
    if (program_ended(handle, &end) < 0)
        return outcome_error(OUTCOME_ERROR, "tool '%s' was lost with the process that ran it",
                             talk->tool);
    if (end.error || end.status)
        return failed(command, talk, &end);
    return understood(command, talk, context);
}

/* The program with its pipes; the handle, or -1. */
static int start(const struct command *command, const json_t *arguments, struct talk *talk,
                 struct err *err)
{
    own_buf text = BUF_INIT(SIZE_MAX / 4);
    int out[2], notes[2];
    json_add(&text, arguments);
    buf_add_text(&text, "\n");
    own_fd in = io_sealed_memfd("arguments", text.at, text.len, 0);
    if (in < 0 || pipe2(out, O_CLOEXEC) < 0)
        return err_sys(err, "make the descriptors of '%.200s'", command->argv[0]);
    talk->out = out[0];
    own_fd out_end = out[1];
    if (pipe2(notes, O_CLOEXEC) < 0)
        return err_sys(err, "make the descriptors of '%.200s'", command->argv[0]);
    talk->notes = notes[0];
    own_fd notes_end = notes[1];
    if (fcntl(talk->out, F_SETFL, O_NONBLOCK) < 0 || fcntl(talk->notes, F_SETFL, O_NONBLOCK) < 0)
        return err_sys(err, "set up the pipes of '%.200s'", command->argv[0]);
    struct program_plan plan = { .argv = (const char *const *)command->argv,
                                 .env = (const char *const *)command->env,
                                 .cwd = command->cwd,
                                 .in = in,
                                 .out = out_end,
                                 .notes = notes_end,
                                 .limits = command->limits };
    return program_start(&plan, err);
}

static json_t *call(void *state, const char *tool, const json_t *arguments,
                    const struct source_context *context)
{
    const struct command *command = state;
    struct err err = ERR_INIT;
    struct talk talk = { .tool = tool,
                         .out = -1,
                         .notes = -1,
                         .value = BUF_INIT(context->result_bytes),
                         .said = BUF_INIT(NOTES_KEPT) };
    int handle = start(command, arguments, &talk, &err);
    json_t *outcome = handle < 0 ? outcome_error(OUTCOME_ERROR, "tool '%s': %s", tool, err.text)
                                 : outcome_of(command, &talk, handle, context);
    program_stop(handle, STOP_MS);
    own_close_fd(&talk.out);
    own_close_fd(&talk.notes);
    buf_done(&talk.value);
    buf_done(&talk.said);
    return outcome;
}

int command_open(const json_t *file, const struct source_from *from, struct source *out,
                 struct err *err)
{
    static const struct source_ops ops = { list, call, close_command, /* is_slow= */ false };
    struct command *command = buf_alloc_zero(1, sizeof *command);
    command->secrets = from->secrets;
    command->definition = json_copy((json_t *)(uintptr_t)file);
    for (size_t i = 0; i < array_len(members); i++) {
        if (members[i].read(json_object_get(file, members[i].name), from, command, err) < 0) {
            close_command(command);
            return -1;
        }
        json_object_del(command->definition, members[i].name);
    }
    *out = (struct source){ &ops, command, "command" };
    return 0;
}
