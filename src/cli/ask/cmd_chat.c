/* `cupel chat`: a prompt for questions about the same files, each answered as by `cupel ask` on one
 * session. Runs in the cli process, with the order of rights of cli/ask/ask.h. As root a steward
 * that was started before the drop opens and saves files below the current folder alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/json.h"
#include "base/own.h"
#include "box/host/box.h"
#include "box/host/slot.h"
#include "cli/ask/ask.h"
#include "cli/cli.h"
#include "cli/repl/repl_edit.h"
#include "cli/term/interrupt.h"
#include "cli/term/term.h"
#include "cli/term/visible.h"

#define LINE_MAX_BYTES (256u << 10)
#define LIST_MAX (1u << 20)

struct chat {
    struct cli_ask ask;
    struct cli_repl_reader reader;
    struct cli_steward here; /* as root: of the current folder */
    struct agent *agent; /* NULL until the first question */
    json_t *reports; /* of the questions that stand */
    bool root, quit;
    int code; /* exit code of the last question or command */
};

/* A late Ctrl-C for one question must not hit the next. */
static void drain(int fd)
{
    char wishes[64];
    while (read(fd, wishes, sizeof wishes) > 0)
        ;
}

/* --- questions --- */

static int begin(struct chat *chat, const char *question, struct err *err)
{
    struct cli_ask *ask = &chat->ask;
    if (chat->agent)
        return agent_follow(chat->agent, question, ask->files, ask->made_of.file_count, err);
    chat->agent = cli_ask_begin(ask, question, /* conversation= */ true, err);
    return chat->agent ? 0 : -1;
}

static int put_question(struct chat *chat, const char *text, struct err *err)
{
    struct cli_ask *ask = &chat->ask;
    own_buf question = { 0 };
    drain(ask->interrupt_fd);
    if (cli_ask_question(text, &question, err) < 0 || begin(chat, question.at, err) < 0)
        return -1;
    buf_done(&ask->question);
    ask->question = question; /* the agent looks at it until the next one */
    question = BUF_INIT(0);
    json_t *report = NULL;
    chat->code = cli_ask_turn(ask, chat->agent, &report);
    json_array_append_new(chat->reports, report);
    drain(ask->interrupt_fd);
    chat->quit = chat->quit || cli_interrupt_signal();
    return 0;
}

/* --- commands: each gets the rest of its line --- */

typedef int command(struct chat *chat, const char *rest, struct err *err);

static const json_t *last_report(const struct chat *chat)
{
    size_t count = json_array_size(chat->reports);
    return count > 0 ? json_array_get(chat->reports, count - 1) : NULL;
}

static int need_report(const struct chat *chat, const json_t **out, struct err *err)
{
    *out = last_report(chat);
    return *out ? 0 : err_set(err, ERR_USAGE, "there is no answer yet");
}

static int do_why(struct chat *chat, const char *rest, struct err *err)
{
    (void)rest;
    const json_t *report;
    if (need_report(chat, &report, err) < 0)
        return -1;
    if (json_array_size(json_object_get(report, "trace")) == 0)
        cli_term_note("no value of the answer was computed and traced");
    cli_ask_draw_why(&chat->ask.draw, report);
    return 0;
}

static int do_script(struct chat *chat, const char *rest, struct err *err)
{
    (void)rest;
    own_buf out = BUF_INIT(64u << 20);
    const json_t *report;
    if (need_report(chat, &report, err) < 0)
        return -1;
    cli_visible_text(json_get_str(report, "script"), &out);
    cli_term_write(STDOUT_FILENO, buf_str(&out));
    return 0;
}

static int do_undo(struct chat *chat, const char *rest, struct err *err)
{
    (void)rest;
    if (!chat->agent)
        return err_set(err, ERR_USAGE, "there is no question to take back");
    if (agent_undo(chat->agent, err) < 0)
        return -1;
    json_array_remove(chat->reports, json_array_size(chat->reports) - 1);
    cli_term_note("the last question is taken back");
    return 0;
}

static void list_file(struct buf *out, double size, const char *path, const char *after)
{
    own_buf row = BUF_INIT(64);
    cli_term_add_size(&row, size);
    buf_printf(out, "  %10s  ", buf_str(&row).at);
    cli_visible_line(str_of(path), 100, out);
    buf_add_text(out, "  ");
    cli_visible_line(str_of(after), 200, out);
    buf_add_text(out, "\n");
}

static int do_files(struct chat *chat, const char *rest, struct err *err)
{
    (void)rest;
    (void)err;
    own_buf out = BUF_INIT(LIST_MAX);
    size_t i;
    json_t *made;
    for (i = 0; i < chat->ask.made_of.file_count; i++) {
        const struct agent_file *file = &chat->ask.files[i];
        list_file(&out, (double)file->content.len, file->path, file->source ? file->source : "");
    }
    json_array_foreach (json_object_get(last_report(chat), "artifacts"), i, made)
        list_file(&out, json_number_value(json_object_get(made, "size_bytes")),
                  json_string_value(json_object_get(made, "path")), "made");
    cli_term_write(STDOUT_FILENO, buf_str(&out));
    return 0;
}

/* As root: the part below the folder where the chat began. */
static const char *below_here(const struct chat *chat, const char *path)
{
    size_t len = chat->ask.folder ? strlen(chat->ask.folder) : 0;
    if (len > 1 && strncmp(path, chat->ask.folder, len) == 0 && path[len] == '/')
        path += len + 1;
    while (strncmp(path, "./", 2) == 0)
        path += 2;
    return path;
}

static bool is_never(const char *host)
{
    (void)host;
    return false;
}

/* Opens it with our own rights, else as root by the steward. */
static int open_file(struct chat *chat, const char *text, struct cli_run_inputs *out,
                     struct err *err)
{
    const char *specs[] = { text };
    const struct opt_list list = { specs, 1 };
    struct err other = ERR_INIT;
    int rc = cli_run_inputs_open_files(&list, /* folders= */ false, out, err);
    if (rc == 0 || !chat->root || chat->here.sock < 0)
        return rc;
    struct cli_run_file *file = &out->files[0];
    cli_run_spec_done(&file->spec);
    file->spec = (struct cli_run_spec){ 0 };
    if (cli_run_spec_parse(text, is_never, &file->spec, &other) < 0 || !file->spec.host ||
        cli_steward_read(&chat->here, str_of(below_here(chat, file->spec.host)), &file->fd,
                         &other) < 0) {
        err_hint(err,
                 "as root ':add' opens files below '%.200s', and those that everybody may "
                 "read",
                 chat->ask.folder ? chat->ask.folder : ".");
        return -1;
    }
    return 0;
}

static int do_add(struct chat *chat, const char *rest, struct err *err)
{
    struct cli_ask *ask = &chat->ask;
    struct cli_run_inputs inputs = CLI_RUN_INPUTS_INIT;
    size_t before = ask->made_of.file_count;
    if (!rest[0] || cli_chat_options_is_input(rest))
        return err_set(err, ERR_USAGE, "':add' needs the name of a file");
    own_buf bytes = BUF_INIT((size_t)ask->made_of.limits.value[LIMITS_INPUT]);
    int rc = open_file(chat, rest, &inputs, err);
    if (rc == 0)
        rc = cli_run_inputs_read(inputs.files[0].fd, rest, "files", &bytes, err);
    size_t len = bytes.len;
    if (rc == 0)
        rc = request_add_file(&ask->made_of, inputs.files[0].spec.path, buf_take(&bytes), len,
                              /* readonly= */ false, err);
    if (rc == 0) {
        cli_ask_list_files(ask, &inputs, before);
        cli_term_note("the next question has %.200s", ask->files[before].path);
    }
    cli_run_inputs_done(&inputs);
    return rc;
}

static int do_save(struct chat *chat, const char *rest, struct err *err)
{
    own_buf prefix = BUF_INIT(8192);
    struct cli_steward steward = CLI_STEWARD_INIT;
    const json_t *report;
    if (!rest[0])
        return err_set(err, ERR_USAGE, "':save' needs the name of a folder");
    if (need_report(chat, &report, err) < 0)
        return -1;
    if (json_array_size(json_object_get(report, "artifacts")) == 0)
        return err_set(err, ERR_USAGE, "no file was made yet");
    const char *inside = below_here(chat, rest);
    if (chat->root && (inside[0] == '/' || chat->here.sock < 0)) {
        err_set(err, ERR_USAGE, "as root ':save' writes below '%.200s' only",
                chat->ask.folder ? chat->ask.folder : ".");
        err_hint(err, "begin with -o DIR for another folder");
        return -1;
    }
    if (!chat->root && cli_steward_open(rest, &steward, err) < 0)
        return -1;
    if (chat->root && strcmp(inside, ".") != 0)
        buf_printf(&prefix, "%s%s", inside, inside[strlen(inside) - 1] == '/' ? "" : "/");
    chat->code = cli_ask_save(chat->root ? &chat->here : &steward, rest, buf_str(&prefix).at,
                              chat->agent, report, 0);
    cli_steward_close(&steward);
    return 0;
}

static int do_quit(struct chat *chat, const char *rest, struct err *err)
{
    (void)rest;
    (void)err;
    chat->quit = true;
    return 0;
}

static command do_help;

static const struct {
    const char *name;
    command *go;
    const char *operand, *about;
} commands[] = {
    { "help", do_help, "", "this list" },
    { "add", do_add, "FILE[:PATH]", "give another file, from the next question on" },
    { "files", do_files, "", "the files: given, and made on the way" },
    { "why", do_why, "", "the lines of code behind each value of the answer" },
    { "script", do_script, "", "the program so far" },
    { "save", do_save, "DIR", "save the files that were made" },
    { "undo", do_undo, "", "take back the last question, with its state" },
    { "quit", do_quit, "", "leave, like Ctrl-D" },
};

static int do_help(struct chat *chat, const char *rest, struct err *err)
{
    (void)chat;
    (void)rest;
    (void)err;
    own_buf out = BUF_INIT(8192);
    for (size_t i = 0; i < array_len(commands); i++) {
        char left[48];
        snprintf(left, sizeof left, ":%s %s", commands[i].name, commands[i].operand);
        buf_printf(&out, "  %-18s %s\n", left, commands[i].about);
    }
    cli_term_write(STDOUT_FILENO, buf_str(&out));
    return 0;
}

static const char *command_name(const void *table, size_t i)
{
    (void)table;
    return commands[i].name;
}

static int run_command(struct chat *chat, char *line, struct err *err)
{
    char *rest = line + strcspn(line, " \t");
    if (*rest)
        *rest++ = 0;
    rest += strspn(rest, " \t");
    for (size_t i = 0; i < array_len(commands); i++) {
        if (strcmp(line, commands[i].name) != 0)
            continue;
        if (rest[0] && !commands[i].operand[0])
            return err_set(err, ERR_USAGE, "':%s' takes no operand, but got '%.80s'", line, rest);
        return commands[i].go(chat, rest, err);
    }
    const char *near = opt_nearest(line, array_len(commands), command_name, NULL);
    err_set(err, ERR_USAGE, "unknown command ':%.40s'", line);
    err_hint(err, near ? "did you mean :%s?" : ":help lists the commands", near);
    return -1;
}

static json_t *complete(void *user, struct str code, size_t cursor, size_t *out_start)
{
    (void)user;
    (void)cursor;
    json_t *found = json_array();
    *out_start = 1;
    for (size_t i = 0; code.len > 0 && code.at[0] == ':' && i < array_len(commands); i++)
        if (strncmp(commands[i].name, code.at + 1, code.len - 1) == 0)
            json_array_append_new(found, json_string(commands[i].name));
    return found;
}

/* --- the prompt --- */

static void rest(void *user)
{
    const struct chat *chat = user;
    if (chat->agent)
        agent_rest(chat->agent);
}

/* A paste of several lines is one question. */
static enum cli_repl_read read_text(struct chat *chat, struct buf *out)
{
    own_buf line = BUF_INIT(LINE_MAX_BYTES);
    enum cli_repl_read got;
    do {
        got = cli_repl_reader_next(&chat->reader, &line);
        if (got != CLI_REPL_LINE)
            return got;
        if (buf_add_str(out, buf_str(&line)) < 0) {
            cli_term_note("the question exceeds %u bytes and was dropped", LINE_MAX_BYTES);
            buf_drop(out, out->len);
            return CLI_REPL_INTERRUPTED;
        }
    } while (chat->reader.pasting);
    while (out->len > 0 && strchr(" \t\r\n", out->at[out->len - 1]))
        out->at[--out->len] = 0;
    return got;
}

static void read_one(struct chat *chat)
{
    own_buf text = BUF_INIT(LINE_MAX_BYTES);
    struct err err = ERR_INIT;
    enum cli_repl_read got = read_text(chat, &text);
    chat->quit = got == CLI_REPL_END;
    if (got != CLI_REPL_LINE || text.len == 0)
        return;
    bool leaves = strcmp(text.at, "exit") == 0 || strcmp(text.at, "quit") == 0;
    bool is_command = text.at[0] == ':' && text.at[1] >= 'a' && text.at[1] <= 'z';
    int rc = 0;
    if (leaves)
        chat->quit = true;
    else
        rc = is_command ? run_command(chat, text.at + 1, &err) : put_question(chat, text.at, &err);
    if (rc < 0)
        chat->code = cli_term_refuse(&err, /* json= */ false);
}

static int prepare(struct chat *chat, struct err *err)
{
    struct cli_ask *ask = &chat->ask;
    struct err unheard = ERR_INIT; /* the commands that need it say so */
    chat->root = box_is_root();
    if (chat->root)
        cli_steward_open_reading(".", &chat->here, &unheard);
    chat->reader.history = "chat-history";
    chat->reader.prompt = "> ";
    chat->reader.complete = complete;
    chat->reader.user = chat;
    cli_repl_reader_open(&chat->reader);
    if (cli_ask_open(ask, err) < 0 || box_drop_door(err) < 0 || cli_ask_ready(ask, err) < 0)
        return -1;
    chat->reader.interrupt_fd = ask->interrupt_fd;
    chat->reader.rest = chat->reader.prompts ? rest : NULL;
    bool live = cli_term_style(STDERR_FILENO, CLI_DIM)[0];
    cli_ask_draw_init(&ask->draw, STDERR_FILENO, STDOUT_FILENO, ask->options.run.quiet, live);
    ask->draw.why = ask->options.why;
    ask->draw.brief = true;
    ask->draw.streams = chat->reader.prompts && isatty(STDERR_FILENO);
    return 0;
}

static void talk(struct chat *chat)
{
    struct cli_ask *ask = &chat->ask;
    if (chat->reader.prompts)
        cli_term_note("%.100s answers about %zu file%s; :help lists commands, Ctrl-D ends",
                      llm_name(ask->model), ask->made_of.file_count,
                      ask->made_of.file_count == 1 ? "" : "s");
    while (!chat->quit)
        read_one(chat);
    cli_ask_store_tell(&ask->store);
    if (ask->store.begun && ask->id[0])
        cli_term_note("cupel chat --continue %s goes on", ask->id);
}

int cli_cmd_chat(int argc, char **argv)
{
    struct chat chat = { .ask = CLI_ASK_INIT,
                         .reports = json_array(),
                         .here = CLI_STEWARD_INIT,
                         .reader = { .interrupt_fd = -1, .history_fd = -1 } };
    struct err err = ERR_INIT;
    int code = 0;
    int parsed = cli_chat_options_parse(argc, argv, &chat.ask.options, &err);
    cli_term_set_quiet(chat.ask.options.run.quiet);
    if (parsed == 0 && chat.ask.options.run.help) {
        cli_chat_options_help();
    } else if (parsed < 0 || prepare(&chat, &err) < 0) {
        code = cli_term_refuse(&err, /* json= */ false);
    } else {
        talk(&chat);
        code = cli_interrupt_signal() ? 128 + cli_interrupt_signal()
               : chat.reader.prompts  ? 0
                                      : chat.code;
    }
    agent_done(chat.agent);
    json_decref(chat.reports);
    cli_repl_reader_close(&chat.reader);
    cli_steward_close(&chat.here);
    cli_ask_done(&chat.ask);
    return code;
}
