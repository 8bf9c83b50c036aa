/* The gate for the calls of one run. Runs in the serve process, in the engine's loop; nothing here
 * waits. */
#include "tool/call/call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"
#include "tool/call/call_int.h"

/* --- the tools --- */

struct calls_tool *calls_find_tool(const struct calls *calls, struct str name)
{
    for (size_t i = 0; i < calls->tool_count; i++)
        if (str_is(name, calls->tools[i].of->name))
            return &calls->tools[i];
    return NULL;
}

struct calls *calls_new(const json_t *tools, struct loop *loop, const struct calls_hooks *hooks,
                        struct err *err)
{
    struct calls *calls = buf_alloc_zero(1, sizeof *calls);
    calls->hooks = *hooks;
    calls->loop = loop;
    calls->end = &calls->open;
    calls->list = json_array();
    calls->told = json_array();
    calls->ready = hooks->readies && hooks->session
                       ? readies_of(hooks->readies, hooks->session, tools)
                       : ready_new(tools);
    calls->ready_owned = ready_share(shed_ready(hooks->shed));
    if (calls_choose(calls, tools, err) == 0) {
        if (hooks->records)
            calls_whole_begin(calls);
        return calls;
    }
    calls_free(calls);
    return NULL;
}

static void free_one(struct calls_one *one)
{
    json_decref(one->arguments);
    json_decref(one->failed);
    free(one->earlier);
    free(one->text);
    free(one);
}

void calls_stop(struct calls *calls)
{
    if (!calls->loop)
        return;
    loop_set_timer(calls->loop, &calls->timer, LOOP_NEVER);
    calls->loop = NULL;
    for (struct calls_one *one = calls->open; one; one = one->next)
        if (one->at_host)
            shed_drop(calls->hooks.shed, one->at_host);
}

void calls_free(struct calls *calls)
{
    if (!calls)
        return;
    calls_stop(calls);
    while (calls->open) {
        struct calls_one *one = calls->open;
        calls->open = one->next;
        free_one(one);
    }
    ready_drop(calls->ready);
    ready_drop(calls->ready_owned);
    free(calls->tools);
    buf_done(&calls->whole);
    json_decref(calls->told);
    json_decref(calls->list);
    free(calls);
}

const json_t *calls_told(const struct calls *calls)
{
    return calls->told;
}

void calls_of_run(struct calls *calls, struct engine_run *run)
{
    calls->run = run;
}

/* --- the end of a call --- */

struct calls_one *calls_find(const struct calls *calls, int64_t number)
{
    struct calls_one *one = calls->open;
    while (one && one->number != number)
        one = one->next;
    return one;
}

static void unlink_one(struct calls *calls, struct calls_one *one)
{
    struct calls_one **at = &calls->open;
    while (*at != one)
        at = &(*at)->next;
    *at = one->next;
    if (!one->next)
        calls->end = at;
}

static void on_time(struct loop_timer *timer);

void calls_set_timer(struct calls *calls)
{
    int64_t first = LOOP_NEVER;
    if (!calls->loop)
        return;
    for (const struct calls_one *one = calls->open; one; one = one->next)
        first = one->due_ns < first ? one->due_ns : first;
    loop_due(&calls->timer, on_time);
    loop_set_timer(calls->loop, &calls->timer, first);
}

static void on_host_answer(void *user, uint64_t id, const json_t *outcome);

/* A fault is told by the timer: the caller may still hold the call. */
static void send_to_host(struct calls *calls, struct calls_one *one)
{
    struct err err = ERR_INIT;
    one->at_host = shed_call(calls->hooks.shed, one->tool->of->name, one->arguments, one->key,
                             one->tool->of->timeout_ms, on_host_answer, calls, &err);
    if (one->at_host)
        return;
    one->failed = outcome_error(OUTCOME_ERROR, "the tool cannot be called: %s", err.text);
    one->due_ns = clock_now_ns();
}

static bool waits_for_others(const struct calls_one *one)
{
    return !one->runs && one->due_ns == LOOP_NEVER && one->asked != CALLS_ASKS;
}

void calls_go(struct calls *calls, struct calls_one *one)
{
    struct calls_tool *tool = one->tool;
    if (!calls->loop || calls->over || !waits_for_others(one) || tool->running >= tool->of->at_once)
        return;
    tool->running++;
    one->runs = true;
    one->due_ns = clock_now_ns() + tool->of->timeout_ms * CLOCK_MS;
    calls_say_call(calls, one);
    if (tool->owned)
        send_to_host(calls, one);
}

static void go_on(struct calls *calls, const struct calls_tool *tool)
{
    struct calls_one *one = calls->open;
    while (one && (one->tool != tool || !waits_for_others(one)))
        one = one->next;
    if (one)
        calls_go(calls, one);
    calls_set_timer(calls);
}

void calls_finish(struct calls *calls, struct calls_one *one, json_t *made, bool told)
{
    own_json outcome = made;
    struct err ignored = ERR_INIT; /* the code has stopped to wait */
    struct calls_tool *tool = one->tool;
    calls_remember(calls, one, outcome);
    if (!one->text)
        one->text = json_write(outcome, JSON_COMPACT);
    unlink_one(calls, one);
    if (one->at_host && calls->loop)
        shed_drop(calls->hooks.shed, one->at_host);
    if (one->runs)
        tool->running--;
    if (one->asked == CALLS_ASKS)
        calls_ask_no_more(calls, one, CALLS_TAKEN_BACK);
    if (told && calls->run)
        engine_tool_answer(calls->run, one->number, outcome, str_of(one->text), &ignored);
    calls_note(calls, &(struct calls_entry){ .number = one->number,
                                             .line = one->line,
                                             .tool = str_of(tool->of->name),
                                             .arguments = one->arguments,
                                             .outcome = outcome,
                                             .outcome_text = one->text,
                                             .verdict = one->asked ? TOOL_ASK : TOOL_ALLOW,
                                             .began_ns = one->began_ns,
                                             .unheard = !told,
                                             .asked = one->asked ? one : NULL,
                                             .repeats = calls_repeats(one) });
    free_one(one);
    go_on(calls, tool);
}

static void on_time(struct loop_timer *timer)
{
    struct calls *calls = loop_owner(timer, struct calls, timer);
    int64_t now = clock_now_ns();
    for (struct calls_one *one = calls->open; one; one = one->next) {
        if (one->due_ns > now)
            continue;
        json_t *outcome = take_ptr(one->failed);
        if (!outcome)
            outcome = outcome_error(OUTCOME_TIMEOUT, "no answer within %.3g s",
                                    (double)one->tool->of->timeout_ms / 1000);
        calls_finish(calls, one, outcome, /* told= */ true);
        break; /* the timer is set for the others */
    }
    calls_set_timer(calls);
}

/* --- the gate --- */

/* The words for a refusal: at most some 20 names. */
static json_t *no_such_tool(const struct calls *calls, struct str name)
{
    own_buf names = BUF_INIT(1024);
    for (size_t i = 0; i < calls->tool_count && names.len < 900; i++) {
        buf_add_text(&names, i ? ", " : "");
        buf_add_text(&names, calls->tools[i].of->name);
    }
    return outcome_error(OUTCOME_ERROR, "there is no tool '%.*s' here: this run has %s",
                         (int)(name.len < 100 ? name.len : 100), name.at, buf_str(&names).at);
}

/* A client that gave the definition answers each call itself: only a policy that it wrote may
 * refuse one before. */
static enum tool_verdict judge(const struct calls_tool *tool, const json_t *arguments)
{
    return tool->owned || tool->of->policy ? tool_judge(tool->of, arguments) : TOOL_ALLOW;
}

/* The outcome of a call that may not go on, or NULL. */
static json_t *stop(const struct calls *calls, const struct calls_tool *tool, struct str name,
                    const json_t *arguments, enum tool_verdict *out_verdict)
{
    struct err err = ERR_INIT;
    *out_verdict = TOOL_DENY;
    if (!tool)
        return no_such_tool(calls, name);
    if (calls->hooks.has_room && !calls->hooks.has_room(calls->hooks.user))
        return outcome_error(OUTCOME_ERROR, "the client does not read the calls that it was told");
    if (tool->made >= tool->of->calls_max)
        return outcome_error(OUTCOME_DENIED, "this run has made %lld calls of it, at most %lld",
                             (long long)tool->made, (long long)tool->of->calls_max);
    if (schema_check(tool->of->input, arguments, &err) < 0)
        return outcome_error(OUTCOME_ERROR, "%s", err.text);
    *out_verdict = judge(tool, arguments);
    if (*out_verdict == TOOL_DENY)
        return outcome_error(OUTCOME_DENIED, "the policy of the tool denies this call");
    if (*out_verdict == TOOL_ASK && !calls->hooks.approves)
        return outcome_error(OUTCOME_DENIED, "the policy of the tool wants a person to approve "
                                             "this call, and nobody can be asked here");
    return NULL;
}

static void take(struct calls *calls, const json_t *call, int64_t number)
{
    struct str name = json_get_str(call, "tool");
    json_t *arguments = json_object_get(call, "arguments");
    struct calls_tool *tool = calls_find_tool(calls, name);
    int64_t line = json_integer_value(json_object_get(call, "line")), now = clock_now_ns();
    enum tool_verdict verdict;
    own_json outcome = stop(calls, tool, name, arguments, &verdict);
    if (!tool || outcome) {
        struct err ignored = ERR_INIT;
        own_str text = json_write(outcome, JSON_COMPACT);
        calls->refused++;
        engine_tool_answer(calls->run, number, outcome, str_of(text), &ignored);
        calls_note(calls, &(struct calls_entry){ number, line, name, arguments, outcome, text,
                                                 verdict, now, /* unheard= */ false,
                                                 /* asked= */ NULL, /* repeats= */ NULL });
        return;
    }
    struct calls_one *one = buf_alloc_zero(1, sizeof *one);
    *one = (struct calls_one){ .tool = tool,
                               .number = number,
                               .line = line,
                               .arguments = json_incref(arguments),
                               .began_ns = now,
                               .due_ns = LOOP_NEVER };
    *calls->end = one;
    calls->end = &one->next;
    tool->made++;
    calls_recall(calls, one);
    if (verdict == TOOL_ASK)
        calls_ask(calls, one);
    else
        calls_go(calls, one);
    calls_set_timer(calls);
}

void calls_event(struct calls *calls, const struct engine_event *event)
{
    struct calls_one *one = event->kind == ENGINE_CALL_OVER ? calls_find(calls, event->number)
                                                            : NULL;
    if (event->kind == ENGINE_CALL)
        take(calls, event->data, event->number);
    else if (event->kind == ENGINE_THAWED)
        calls_take_back(calls);
    else if (one)
        calls_finish(calls, one, outcome_error(OUTCOME_CANCELLED, "the code did not wait for it"),
                     /* told= */ false);
}

/* --- the client's answer --- */

/* {"error":{"message"}} means the kind "error". */
static json_t *normal(const json_t *given)
{
    if (!json_object_get(given, "error")) /* values may be large */
        return json_incref((json_t *)(uintptr_t)given);
    json_t *outcome = json_deep_copy(given), *error = json_object_get(outcome, "error");
    if (json_is_object(error) && !json_object_get(error, "kind"))
        json_object_set_new(error, "kind", json_string("error"));
    struct str message = json_get_str(error, "message");
    if (message.len > OUTCOME_MESSAGE_MAX) {
        message.len = str_cut_utf8(message, OUTCOME_MESSAGE_MAX);
        json_object_set_new(error, "message", json_text(message));
    }
    return outcome;
}

/* `text` is the outcome's. */
static int check_outcome(const struct tool *tool, const json_t *outcome, const char *text,
                         struct err *err)
{
    const json_t *value = json_object_get(outcome, "value");
    if (!value)
        return 0;
    size_t bytes = text ? strlen(text) : SIZE_MAX;
    if (bytes > (size_t)tool->result_bytes) {
        char has[32], most[48];
        snprintf(has, sizeof has, "%zu", bytes);
        snprintf(most, sizeof most, "at most %lld bytes", (long long)tool->result_bytes);
        err_input(err, "value", has, most, "the result of '%s' has %s bytes, %s", tool->name, has,
                  most);
        err_hint(err, "return less, or raise caps.result_bytes of the tool");
        return -1;
    }
    if (!tool->output || schema_check(tool->output, value, err) == 0)
        return 0;
    err_wrap(err, "the result of '%s' does not fit its output_schema", tool->name);
    return -1;
}

static int settle(struct calls *calls, struct calls_one *one, const json_t *given, struct err *err)
{
    own_json outcome = normal(given);
    if (!outcome_is_good(outcome)) {
        err_input(err, "value", NULL, "value, or error with a message",
                  "the outcome of a call is {\"value\":...} or {\"error\":{\"message\":\"...\"}}");
        return -1;
    }
    one->acted = json_object_get(outcome, "value") != NULL;
    own_str text = json_write(outcome, JSON_COMPACT);
    if (check_outcome(one->tool->of, outcome, text, err) < 0) {
        calls_finish(calls, one, outcome_error(OUTCOME_ERROR, "%s", err->text), /* told= */ true);
        return -1;
    }
    one->text = take_ptr(text);
    calls_finish(calls, one, json_incref(outcome), /* told= */ true);
    return 0;
}

static void on_host_answer(void *user, uint64_t id, const json_t *outcome)
{
    struct calls *calls = user;
    struct err ignored = ERR_INIT; /* the code hears of it */
    struct calls_one *one = calls->open;
    while (one && one->at_host != id)
        one = one->next;
    if (!one)
        return;
    one->at_host = 0;
    settle(calls, one, outcome, &ignored);
}

int calls_answer(struct calls *calls, int64_t number, const json_t *given, struct err *err)
{
    struct calls_one *one = calls_find(calls, number);
    if (one && !one->tool->owned && one->runs)
        return settle(calls, one, given, err);
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)number);
    err_input(err, "call", text, "a call that waits for the client",
              "no call %s of this run waits for its client", text);
    err->kind = ERR_ABSENT;
    err_hint(err, "answer each 'tool_call' event whose 'answered_by' is 'client' once, within its "
                  "timeout_s");
    return -1;
}

void calls_end(struct calls *calls, struct result *result)
{
    if (calls->run && result)
        calls->refused += engine_calls_refused(calls->run);
    calls->run = NULL;
    calls->over = true;
    while (calls->open)
        calls_finish(calls, calls->open, outcome_error(OUTCOME_CANCELLED, "the run ended"),
                     /* told= */ false);
    if (!result)
        return;
    result->calls = json_incref(calls->list);
    result->calls_more = calls->more;
    result->calls_refused = calls->refused;
    calls_whole_end(calls, &result->calls_whole);
}
