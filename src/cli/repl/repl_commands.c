/* The commands of the prompt: a table. Runs in the cli process, with no more rights than a cell:
 * root's files are read with the private uid. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/own.h"
#include "cli/repl/repl.h"
#include "cli/session/session_files.h"
#include "cli/session/session_show.h"
#include "cli/term/term.h"

/* Each gets its operands, "" if missing. */
typedef int command(struct cli_repl *repl, const char *first, const char *second, struct err *err);

static int ask_plain(struct cli_repl *repl, const char *what, const char *member, const char *value,
                     struct err *err)
{
    own_json ask = json_pack("{s:s}", "do", what);
    json_t *text = value && value[0] ? json_string(value) : NULL;
    if (value && value[0] && !text)
        return err_set(err, ERR_USAGE, "the operand is not UTF-8");
    if (text)
        json_object_set_new(ask, member, text);
    return cli_repl_ask(repl, ask, err);
}

static int ask_info(struct cli_repl *repl, struct err *err)
{
    own_json ask = json_pack("{s:s, s:b}", "do", "info", "names", 1);
    return cli_repl_ask(repl, ask, err);
}

static const json_t *info_of(const struct cli_repl *repl)
{
    return json_object_get(repl->job.remote.call.answer, "session");
}

static int need(const char *operand, const char *what, struct err *err)
{
    return operand[0] ? 0 : err_set(err, ERR_USAGE, "the command needs %s", what);
}

static int do_undo(struct cli_repl *repl, const char *name, const char *second, struct err *err)
{
    (void)second;
    if (ask_plain(repl, "undo", "to", name, err) < 0)
        return -1;
    cli_session_show_undo(repl->job.remote.call.answer);
    repl->told = (struct cli_term_size){ 0 };
    return 0;
}

static int do_checkpoint(struct cli_repl *repl, const char *name, const char *second,
                         struct err *err)
{
    (void)second;
    return need(name, "a name", err) < 0 ? -1 : ask_plain(repl, "checkpoint", "name", name, err);
}

static int do_fork(struct cli_repl *repl, const char *first, const char *second, struct err *err)
{
    (void)first;
    (void)second;
    if (ask_plain(repl, "fork", NULL, NULL, err) < 0)
        return -1;
    const char *id = json_string_value(json_object_get(info_of(repl), "session"));
    own_buf line = BUF_INIT(256);
    buf_printf(&line, "%.64s\n", id ? id : "");
    cli_term_write(STDOUT_FILENO, buf_str(&line));
    return 0;
}

static int do_use(struct cli_repl *repl, const char *id, const char *second, struct err *err)
{
    (void)second;
    if (need(id, "the id of a session", err) < 0)
        return -1;
    char before[sizeof repl->id];
    bool own = repl->own;
    memcpy(before, repl->id, sizeof before);
    if (cli_repl_use(repl, id, err) < 0)
        return -1;
    if (own && strcmp(before, repl->id) != 0)
        cli_term_note("session %s stays until its time is over", before);
    return 0;
}

static int do_info(struct cli_repl *repl, const char *first, const char *second, struct err *err)
{
    (void)first;
    (void)second;
    if (ask_info(repl, err) < 0)
        return -1;
    cli_session_show_info(info_of(repl));
    return 0;
}

static int do_names(struct cli_repl *repl, const char *first, const char *second, struct err *err)
{
    (void)first;
    (void)second;
    if (ask_info(repl, err) < 0)
        return -1;
    cli_session_show_names(info_of(repl));
    return 0;
}

static int do_files(struct cli_repl *repl, const char *first, const char *second, struct err *err)
{
    (void)first;
    (void)second;
    if (ask_plain(repl, "files", NULL, NULL, err) < 0)
        return -1;
    cli_session_show_files(repl->job.remote.call.answer);
    return 0;
}

static int do_put(struct cli_repl *repl, const char *file, const char *path, struct err *err)
{
    if (need(file, "a file", err) < 0)
        return -1;
    char *specs[] = { (char *)(uintptr_t)file };
    const struct opt_operands list = { specs, 1 };
    struct cli_run_inputs inputs = CLI_RUN_INPUTS_INIT;
    int rc = cli_session_files_open(&list, path[0] ? path : NULL, &inputs, err);
    if (rc == 0)
        rc = cli_session_files_put(&repl->job.remote, repl->id, &inputs, err);
    cli_run_inputs_done(&inputs);
    return rc;
}

/* The steward of the pictures' folder writes it. */
static int do_get(struct cli_repl *repl, const char *path, const char *file, struct err *err)
{
    if (need(path, "the path of a file in the session", err) < 0)
        return -1;
    const char *slash = strrchr(path, '/');
    const char *name = file[0] ? file : slash ? slash + 1 : path;
    const char *folder = repl->options.out ? repl->options.out : ".";
    struct cli_session_target target = { .steward = repl->job.steward, .name = name };
    if (need(name, "the name of a file", err) < 0 ||
        cli_session_files_get(&repl->job.remote, repl->id, path, &target, err) < 0)
        return -1;
    cli_term_note("saved %.200s/%.200s", folder, name);
    return 0;
}

static int do_reset(struct cli_repl *repl, const char *first, const char *second, struct err *err)
{
    if (repl->options.dir) {
        err_set(err, ERR_USAGE, "a prompt on a folder has one session");
        err_hint(err, "leave it, and start 'cupel repl --dir' again");
        return -1;
    }
    (void)first;
    (void)second;
    cli_repl_leave(repl);
    return cli_repl_begin(repl, err);
}

static int do_quit(struct cli_repl *repl, const char *first, const char *second, struct err *err)
{
    (void)first;
    (void)second;
    (void)err;
    repl->quit = true;
    return 0;
}

/* A cell's own settings; the others belong to the session for its life. */
static int do_set(struct cli_repl *repl, const char *name, const char *value, struct err *err)
{
    struct opt_number *timeout = &repl->options.timeout;
    char *end = NULL;
    double seconds = strtod(value, &end);
    if (!name[0]) {
        own_buf line = BUF_INIT(256);
        if (timeout->given)
            buf_printf(&line, "  timeout %.12g\n", timeout->value);
        else
            buf_add_text(&line, "  timeout of the session\n");
        cli_term_write(STDOUT_FILENO, buf_str(&line));
        return 0;
    }
    if (strcmp(name, "timeout") != 0) {
        err_set(err, ERR_USAGE, "'%.40s' cannot be set at the prompt: the session fixes it", name);
        err_hint(err, "begin again with an option ('cupel repl --help')");
        return -1;
    }
    const struct limits_row *row = &limits_rows[LIMITS_TIMEOUT];
    double most = (double)row->most / (double)row->scale;
    if (!value[0] || *end || !(seconds >= 0.01 && seconds <= most))
        return err_set(err, ERR_USAGE, "timeout is a number of seconds, 0.01 to %.12g", most);
    *timeout = (struct opt_number){ .given = true, .value = seconds };
    return 0;
}

static command do_help;

static const struct {
    const char *name;
    command *go;
    const char *operands, *about;
} commands[] = {
    { "help", do_help, "", "this list" },
    { "set", do_set, "[timeout S]", "seconds for each cell, from now on" },
    { "undo", do_undo, "[NAME]", "undo the last cell, or go back to a checkpoint" },
    { "checkpoint", do_checkpoint, "NAME", "keep the current state under a name" },
    { "fork", do_fork, "", "make a second session from here, and print its id" },
    { "use", do_use, "ID", "continue in another session" },
    { "info", do_info, "", "protection, levels, limits, times, names" },
    { "names", do_names, "", "names with type, shape, size" },
    { "files", do_files, "", "the files of the session" },
    { "put", do_put, "FILE [PATH]", "copy a file into the session" },
    { "get", do_get, "PATH [FILE]", "copy a file out of it" },
    { "reset", do_reset, "", "begin again, in a new session" },
    { "quit", do_quit, "", "leave, like Ctrl-D" },
};

static int do_help(struct cli_repl *repl, const char *first, const char *second, struct err *err)
{
    (void)repl;
    (void)first;
    (void)second;
    (void)err;
    own_buf out = BUF_INIT(8192);
    for (size_t i = 0; i < array_len(commands); i++) {
        char left[48];
        snprintf(left, sizeof left, ":%s %s", commands[i].name, commands[i].operands);
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

static int refuse(const char *name, struct err *err)
{
    const char *near = opt_nearest(name, array_len(commands), command_name, NULL);
    err_set(err, ERR_USAGE, "unknown command ':%.40s'", name);
    err_hint(err, near ? "did you mean :%s?" : ":help lists the commands", near);
    return -1;
}

/* The next word, ended in place; "" if there is none. Quotes may hold blanks. */
static char *word_of(char **rest)
{
    char *word = *rest + strspn(*rest, " \t\n");
    bool quoted = *word == '"' || *word == '\'';
    const char ends[] = { *word, 0 };
    word += quoted;
    *rest = word + strcspn(word, quoted ? ends : " \t\n");
    if (**rest)
        *(*rest)++ = 0;
    return word;
}

/* "FILE [PATH]" has two. */
static size_t count_operands(const char *operands)
{
    size_t count = operands[0] != 0;
    for (; *operands; operands++)
        count += *operands == ' ';
    return count;
}

json_t *cli_repl_commands_like(struct str begun)
{
    json_t *found = json_array();
    for (size_t i = 0; i < array_len(commands); i++)
        if (strncmp(commands[i].name, begun.at, begun.len) == 0)
            json_array_append_new(found, json_string(commands[i].name));
    return found;
}

static int go(struct cli_repl *repl, size_t i, char *rest, struct err *err)
{
    const char *first = word_of(&rest), *second = word_of(&rest), *third = word_of(&rest);
    const char *given[] = { first, second, third };
    size_t most = count_operands(commands[i].operands);
    if (given[most][0]) {
        err_set(err, ERR_USAGE, "':%s' takes %s, but got '%.80s' too", commands[i].name,
                most ? commands[i].operands : "no operands", given[most]);
        err_hint(err, "a name with blanks needs quotes");
        return -1;
    }
    return commands[i].go(repl, first, second, err);
}

bool cli_repl_command(struct cli_repl *repl, const char *line)
{
    /* ": x" is a command of Bash, ":help" is ours. */
    if (line[0] != ':' || line[1] < 'a' || line[1] > 'z')
        return false;
    own_str copy = buf_strdup(str_of(line + 1));
    char *rest = copy;
    const char *name = word_of(&rest);
    struct err err = ERR_INIT;
    size_t i = 0;
    while (i < array_len(commands) && strcmp(name, commands[i].name) != 0)
        i++;
    int rc = i < array_len(commands) ? go(repl, i, rest, &err) : refuse(name, &err);
    if (rc < 0)
        repl->code = cli_term_refuse(&err, /* json= */ false);
    return true;
}
