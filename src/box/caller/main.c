/* `tool`: reads its arguments, makes the call, waits for the answer. Runs in the box, as the user's
 * code. A signal that ends the program takes its call back first. */
#include "box/caller/caller.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"

static const char usage[] =
    "usage: tool [--file] NAME ['{\"key\": VALUE}' | - | key=text key:=json ...]\n"
    "       tool --list | --search WORD... | --help NAME\n"
    "Calls a tool and prints its value: a text as it is, anything else as JSON. `-` reads the\n"
    "arguments from stdin; --file prints the path of a file with the value.\n"
    "Exit codes: 1 the tool failed, 77 denied, 124 timeout, 2 wrong usage.\n";

static volatile sig_atomic_t ended_by;

static void on_signal(int number)
{
    ended_by = number;
}

/* A signal that the shell ignores, such as SIGINT in a job of the background, stays ignored. */
static void watch_signals(void)
{
    static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
    for (size_t i = 0; i < array_len(signals); i++) {
        struct sigaction now, ours = { .sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND };
        if (sigaction(signals[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            sigaction(signals[i], &ours, NULL);
    }
}

int caller_fail(enum caller_exit code, const char *tool, const char *reason)
{
    fprintf(stderr, "tool: %s%s%s\n", tool ? tool : "", tool ? ": " : "", reason);
    return (int)code;
}

/* --- arguments --- */

struct text {
    char *at;
    size_t len;
    bool full;
};

static void add(struct text *text, const char *bytes, size_t len)
{
    if (len > CALLER_ARGUMENTS_MAX - text->len) {
        text->full = true;
        return;
    }
    memcpy(text->at + text->len, bytes, len);
    text->len += len;
}

static void add_quoted(struct text *text, const char *bytes, size_t len)
{
    add(text, "\"", 1);
    for (size_t i = 0; i < len; i++) {
        unsigned char byte = (unsigned char)bytes[i];
        char escape[8];
        snprintf(escape, sizeof escape, byte < 0x20 ? "\\u%04x" : "\\%c", byte);
        bool plain = byte >= 0x20 && byte != '"' && byte != '\\';
        add(text, plain ? &bytes[i] : escape, plain ? 1 : strlen(escape));
    }
    add(text, "\"", 1);
}

static void read_stdin(struct text *text)
{
    for (;;) {
        char part[4096];
        ssize_t n = read(STDIN_FILENO, part, sizeof part);
        if (n < 0 && errno == EINTR && !ended_by)
            continue;
        if (n <= 0 || text->full)
            return;
        add(text, part, (size_t)n);
    }
}

/* key=text, key:=json. */
static int add_pairs(struct text *text, char *const *words)
{
    add(text, "{", 1);
    for (char *const *word = words; *word; word++) {
        const char *equals = strchr(*word, '=');
        bool json = equals && equals > *word && equals[-1] == ':';
        size_t key = equals ? (size_t)(equals - *word) - json : 0;
        if (!key || (json && !equals[1]))
            return -1;
        add(text, ",", word == words ? 0 : 1);
        add_quoted(text, *word, key);
        add(text, ":", 1);
        if (json)
            add(text, equals + 1, strlen(equals + 1));
        else
            add_quoted(text, equals + 1, strlen(equals + 1));
    }
    add(text, "}", 1);
    return 0;
}

/* 0, or an exit code. */
static int read_arguments(const char *tool, char *const *words, struct text *text)
{
    static const char wrong[] = "give one JSON object, '-', or key=text and key:=json";
    if (!words[0])
        add(text, "{}", 2);
    else if (!words[1] && strcmp(words[0], "-") == 0)
        read_stdin(text);
    else if (!words[1] && words[0][strspn(words[0], " \t\r\n")] == '{')
        add(text, words[0], strlen(words[0]));
    else if (add_pairs(text, words) < 0)
        return caller_fail(CALLER_USAGE, tool, wrong);
    if (text->full) {
        char reason[64];
        snprintf(reason, sizeof reason, "the arguments have more than %u bytes",
                 CALLER_ARGUMENTS_MAX);
        return caller_fail(CALLER_USAGE, tool, reason);
    }
    for (size_t i = 0, size; i < text->len; i += size) {
        size = caller_utf8(text->at + i, text->len - i);
        if (size == 0 || text->at[i] == 0)
            return caller_fail(CALLER_USAGE, tool, "the arguments are not UTF-8 text");
    }
    return 0;
}

/* --- the call --- */

static _Noreturn void leave(struct caller *caller)
{
    caller_lock(caller, CALLER_WRITES, /* wait= */ true);
    if (caller->number && caller_may_call(caller))
        caller_send_cancel(caller, caller->number);
    raise(ended_by); /* its default action, by SA_RESETHAND */
    _exit(128 + ended_by);
}

/* 0, or an exit code. */
static int make_call(struct caller *caller, const struct caller_call *call)
{
    for (;;) {
        int32_t dead;
        uint32_t turn = caller_turn(caller);
        caller_lock(caller, CALLER_WRITES, /* wait= */ true);
        caller_renew(caller);
        if (!caller_may_call(caller))
            return caller_fail(CALLER_ERROR, call->tool, "the cell that had this tool is over");
        while ((dead = caller_dead(caller)) > 0)
            caller_send_cancel(caller, dead);
        if (caller_enter(caller))
            break;
        caller_unlock(caller, CALLER_WRITES); /* as many wait as may */
        if (ended_by)
            leave(caller);
        caller_sleep(caller, turn);
    }
    int rc = caller_send_call(caller, call);
    caller_unlock(caller, CALLER_WRITES);
    return rc < 0 ? CALLER_ERROR : 0;
}

/* Until `is_done`, reading for all where nobody else does. 0, or -1: the engine is gone. */
static int wait_until(struct caller *caller, bool (*is_done)(struct caller *caller, int *out),
                      int *out)
{
    for (;;) {
        uint32_t turn = caller_turn(caller);
        if (is_done(caller, out))
            return 0;
        if (ended_by)
            leave(caller);
        if (!caller_lock(caller, CALLER_READS, /* wait= */ false)) {
            caller_sleep(caller, turn);
            continue;
        }
        int rc = caller_is_over(caller) ? 0 : caller_pump(caller);
        caller_unlock(caller, CALLER_READS);
        caller_wake(caller);
        if (rc < 0)
            return caller_fail(CALLER_ERROR, NULL, "the engine is gone"), -1;
    }
}

/* The answer is there, as a descriptor; -1: none comes any more. */
static bool is_answered(struct caller *caller, int *out)
{
    char path[CALLER_PATH_ROOM];
    bool over = caller_is_over(caller);
    caller_answer_path(caller->number, /* whole= */ true, path);
    *out = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (*out >= 0)
        unlink(path);
    return *out >= 0 || over;
}

static int run_call(struct caller *caller, const char *tool, char *const *words, bool to_file)
{
    const char *line = getenv("CUPEL_LINE");
    struct text text = { .at = malloc(CALLER_ARGUMENTS_MAX) };
    if (!text.at)
        return caller_fail(CALLER_ERROR, tool, "out of memory");
    if (!caller_has_tool(&caller->tools, tool))
        return caller_fail(CALLER_ERROR, tool, "this program has no such tool; see tool --list");
    int code = read_arguments(tool, words, &text), fd;
    if (code || caller_open(caller) < 0)
        return code ? code : CALLER_ERROR;
    code = make_call(caller, &(struct caller_call){
                                 .tool = tool,
                                 .arguments = text.at,
                                 .len = text.len,
                                 .line = line ? strtol(line, NULL, 10) : 0,
                             });
    if (code || wait_until(caller, is_answered, &fd) < 0)
        return code ? code : CALLER_ERROR;
    return fd < 0 ? caller_fail(CALLER_ERROR, tool, "the cell ended before the answer")
                  : caller_print(fd, tool, to_file);
}

/* --- the end of a cell --- */

static bool has_ended(struct caller *caller, int *out)
{
    *out = 0;
    return caller_is_over(caller);
}

/* Calls back everything that waits, and reads until the engine has answered it. */
static int end_cell(struct caller *caller)
{
    int out;
    if (caller_open(caller) < 0)
        return CALLER_ERROR;
    caller_lock(caller, CALLER_WRITES, /* wait= */ true);
    bool called = !caller_is_over(caller);
    caller_renew(caller);
    caller_begin_end(caller);
    if (!called)
        caller_set_over(caller);
    else if (caller_send_cancel(caller, 0) < 0)
        return CALLER_ERROR;
    caller_unlock(caller, CALLER_WRITES);
    return called && wait_until(caller, has_ended, &out) < 0 ? CALLER_ERROR : 0;
}

int main(int argc, char **argv)
{
    struct caller caller = { .state_fd = -1 };
    const char *word = argc > 1 ? argv[1] : "";
    bool helps = strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
    if (argc < 2 || (helps && argc == 2)) {
        fputs(usage, argc < 2 ? stderr : stdout);
        return argc < 2 ? CALLER_USAGE : CALLER_OK;
    }
    if (caller_read_tools(&caller.tools) < 0)
        return CALLER_ERROR;
    watch_signals();
    if (strcmp(word, "--end") == 0)
        return end_cell(&caller);
    if (strcmp(word, "--list") == 0)
        return caller_list(&caller.tools);
    if (strcmp(word, "--search") == 0)
        return caller_search(&caller.tools, argv + 2);
    if (helps)
        return caller_help(&caller.tools, argv[2]);
    bool to_file = strcmp(word, "--file") == 0 && argc > 2;
    if (to_file || (strcmp(word, "--") == 0 && argc > 2))
        argv++;
    else if (word[0] == '-')
        return fputs(usage, stderr), CALLER_USAGE;
    return run_call(&caller, argv[1], argv + 2, to_file);
}
