/* Decides on the calls of a run, or asks a person. Runs in the cli process. */
#include "cli/approve/approve.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/own.h"
#include "cli/approve/draw.h"
#include "cli/term/term.h"
#include "tool/define/define.h"

#define NOT_YET (-1)
#define DRAWN_MAX (SIZE_MAX / 4)
#define NAMED_MAX 16 /* tools that a note names */

/* --- patterns --- */

/* The next of several with commas between; STR_NONE: no more. */
static struct str next_pattern(const char **rest)
{
    *rest += strspn(*rest, ",");
    struct str one = { *rest, strcspn(*rest, ",") };
    *rest += one.len;
    return one.len ? one : STR_NONE;
}

static bool fits(const struct opt_list *patterns, struct str tool)
{
    for (size_t i = 0; patterns && i < patterns->count; i++) {
        const char *rest = patterns->at[i];
        for (struct str one; (one = next_pattern(&rest)).len;) {
            own_str pattern = buf_strdup(one);
            if (tool_name_fits(tool, pattern))
                return true;
        }
    }
    return false;
}

static int check(const struct opt_list *patterns, const char *option, struct err *err)
{
    for (size_t i = 0; patterns && i < patterns->count; i++) {
        const char *rest = patterns->at[i];
        size_t count = 0;
        for (struct str one; (one = next_pattern(&rest)).len; count++)
            if (!tool_pattern_is_good(one))
                return err_set(err, ERR_USAGE,
                               "option '--%s' takes names of tools and patterns such as mail.*, "
                               "not '%.*s'",
                               option, (int)(one.len < 80 ? one.len : 80), one.at);
        if (count == 0)
            return err_set(err, ERR_USAGE, "option '--%s' names no tool", option);
    }
    return 0;
}

int cli_approve_check(const struct opt_list *yes, const struct opt_list *no, struct err *err)
{
    return check(yes, "approve", err) < 0 ? -1 : check(no, "refuse", err);
}

/* --- who decides --- */

bool cli_approve_is_terminal(void)
{
    return isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

bool cli_approve_can(const struct cli_approve *a)
{
    return a && (a->asks || (a->yes && a->yes->count > 0) || (a->no && a->no->count > 0));
}

static bool holds(const json_t *names, struct str tool)
{
    size_t i;
    json_t *one;
    json_array_foreach (names, i, one)
        if (str_eq(json_str(one), tool))
            return true;
    return false;
}

static void note(json_t **names, struct str tool)
{
    if (!*names)
        *names = json_array();
    if (!holds(*names, tool))
        json_array_append_new(*names, json_text(tool));
}

/* --- the question --- */

/* Code that reads a password has turned the echo off. */
static void show_typing(struct cli_approve *a)
{
    struct termios now;
    if (a->echoes || tcgetattr(STDIN_FILENO, &now) < 0 || (now.c_lflag & ECHO))
        return;
    a->terminal = now;
    now.c_lflag |= ECHO;
    a->echoes = tcsetattr(STDIN_FILENO, TCSADRAIN, &now) == 0;
}

static void draw(struct cli_approve *a, bool whole)
{
    own_buf out = BUF_INIT(DRAWN_MAX);
    if (a->before)
        a->before(a->user);
    const struct cli_approve_view view = { json_array_size(a->waiting) - 1, whole, a->by_hand };
    cli_approve_draw(json_array_get(a->waiting, 0), &view, &out);
    cli_term_write(STDERR_FILENO, buf_str(&out));
    a->shown = true;
}

static void ask(struct cli_approve *a)
{
    if (!a->begun) {
        tcflush(STDIN_FILENO, TCIFLUSH); /* typed before: meant for something else */
        show_typing(a);
    }
    a->begun = true;
    if (!a->shown)
        draw(a, /* whole= */ false);
}

static void end_question(struct cli_approve *a)
{
    if (a->echoes)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &a->terminal);
    if (a->shown)
        cli_term_write(STDERR_FILENO, STR("\n"));
    buf_drop(&a->line, a->line.len);
    a->echoes = a->begun = a->shown = false;
    a->answer = NOT_YET;
}

void cli_approve_leave(struct cli_approve *a)
{
    if (!a || !a->shown)
        return;
    cli_term_write(STDERR_FILENO, STR("\n"));
    a->shown = false;
}

/* --- the answer --- */

/* Anything but y, a and s is no. */
static void take_line(struct cli_approve *a)
{
    struct str word = str_trim(buf_str(&a->line));
    bool always = str_is(word, "a") || str_is(word, "always");
    a->shown = false; /* the newline was typed */
    if (str_is(word, "s") || str_is(word, "show")) {
        buf_drop(&a->line, a->line.len);
        draw(a, /* whole= */ true);
        return;
    }
    if (always)
        note(&a->always, json_get_str(json_array_get(a->waiting, 0), "tool"));
    a->answer = always || str_is(word, "y") || str_is(word, "yes");
}

int cli_approve_fd(const struct cli_approve *a)
{
    return a && a->begun && a->answer == NOT_YET ? STDIN_FILENO : -1;
}

void cli_approve_read(struct cli_approve *a)
{
    char c = 0;
    ssize_t n;
    do {
        n = read(STDIN_FILENO, &c, 1);
    } while (n < 0 && errno == EINTR);
    if (n != 1)
        a->answer = 0; /* Ctrl-D, or the terminal is gone */
    else if (c == '\n')
        take_line(a);
    else if (buf_add(&a->line, &c, 1) < 0)
        a->answer = 0; /* no answer of ours is so long */
}

/* --- the calls --- */

static json_int_t number_of(const json_t *call)
{
    return json_integer_value(json_object_get(call, "call"));
}

void cli_approve_hear(struct cli_approve *a, json_t *call)
{
    size_t i;
    json_t *one;
    json_array_foreach (a->waiting, i, one)
        if (number_of(one) == number_of(call))
            return;
    if (!a->waiting)
        a->waiting = json_array();
    if (json_array_size(a->waiting) == 0)
        a->answer = NOT_YET;
    json_array_append(a->waiting, call);
}

void cli_approve_over(struct cli_approve *a, json_int_t call)
{
    size_t i;
    json_t *one;
    if (!a)
        return;
    json_array_foreach (a->waiting, i, one) {
        if (number_of(one) != call)
            continue;
        if (i == 0)
            end_question(a);
        json_array_remove(a->waiting, i);
        return;
    }
}

void cli_approve_drop(struct cli_approve *a)
{
    if (!a || json_array_size(a->waiting) == 0)
        return;
    end_question(a);
    json_array_clear(a->waiting);
}

/* 1, 0, or NOT_YET while a person is asked. */
static int decide(struct cli_approve *a, struct cli_approve_decision *out)
{
    struct str tool = json_get_str(json_array_get(a->waiting, 0), "tool");
    if (a->answer != NOT_YET)
        return a->answer;
    if (fits(a->no, tool)) {
        out->reason = "refused on the command line";
        return 0;
    }
    if (fits(a->yes, tool) || holds(a->always, tool))
        return 1;
    if (a->asks) {
        ask(a);
        return NOT_YET;
    }
    note(&a->unasked, tool);
    out->reason = "not approved on the command line";
    return 0;
}

bool cli_approve_next(struct cli_approve *a, struct cli_approve_decision *out)
{
    if (!a || json_array_size(a->waiting) == 0)
        return false;
    *out = (struct cli_approve_decision){ .call = number_of(json_array_get(a->waiting, 0)) };
    int word = decide(a, out);
    if (word == NOT_YET)
        return false;
    out->allow = word == 1;
    end_question(a);
    json_array_remove(a->waiting, 0);
    return true;
}

bool cli_approve_wait(struct cli_approve *a, json_t *call)
{
    struct cli_approve_decision decision;
    cli_approve_hear(a, call);
    while (!cli_approve_next(a, &decision))
        cli_approve_read(a);
    return decision.allow;
}

/* --- the end --- */

void cli_approve_look(struct cli_approve *a, const json_t *calls)
{
    size_t i;
    json_t *call;
    json_array_foreach (calls, i, call)
        if (str_is(json_get_str(call, "verdict"), "ask") && !json_object_get(call, "asked_ms"))
            note(&a->unasked, json_get_str(call, "tool"));
}

void cli_approve_tell(struct cli_approve *a)
{
    own_buf names = BUF_INIT(DRAWN_MAX);
    size_t i, count = json_array_size(a->unasked);
    json_t *one;
    json_array_foreach (a->unasked, i, one)
        if (i < NAMED_MAX)
            buf_printf(&names, "%s%.64s", i ? "," : "", json_str(one).at);
    if (count > 0)
        cli_term_note("the policy of %s asks before a call, and nobody could be asked: --approve "
                      "%s allows %s beforehand",
                      count == 1 ? "a tool" : "some tools", buf_str(&names).at,
                      count == 1 ? "it" : "them");
    if (a->unasked)
        json_array_clear(a->unasked);
}

void cli_approve_done(struct cli_approve *a)
{
    cli_approve_drop(a);
    json_decref(a->waiting);
    json_decref(a->always);
    json_decref(a->unasked);
    buf_done(&a->line);
}
