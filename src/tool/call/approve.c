/* Calls whose policy asks: each waits until the client, for a person, allows or refuses it. Runs in
 * the serve process, in the engine's loop; nothing here waits.
 *
 * 1. The box is frozen from the first question on, until no call waits for a decision. Calls that
 *    run already go on; their answers wait in the pipe.
 * 2. The arguments that the person sees are those that the tool gets: they are kept here.
 * 3. An interrupt thaws the box. Then nobody is asked any more, and the calls end. */
#include <stdio.h>

#include "base/clock.h"
#include "tool/call/call_int.h"

#define TAKE_BACK_MS 1000 /* for interrupted code to take its call back by itself */

void calls_ask(struct calls *calls, struct calls_one *one)
{
    struct err err = ERR_INIT;
    if (calls->asking == 0 && engine_run_freeze(calls->run, true, &err) < 0) {
        calls_finish(calls, one,
                     outcome_error(OUTCOME_CANCELLED, "nobody can be asked: %s", err.text),
                     /* told= */ true);
        return;
    }
    one->asked = CALLS_ASKS;
    calls->asking++;
    calls_tell(calls, ENGINE_APPROVAL, one->number, calls_question(calls, one));
}

void calls_ask_no_more(struct calls *calls, struct calls_one *one, enum calls_asked now)
{
    struct err ignored = ERR_INIT; /* without a broker there is no box */
    one->asked = now;
    one->asked_ms = clock_ms_between(one->began_ns, clock_now_ns());
    if (--calls->asking == 0 && calls->run)
        engine_run_freeze(calls->run, false, &ignored);
}

void calls_take_back(struct calls *calls)
{
    for (struct calls_one *one = calls->open; one; one = one->next) {
        if (one->asked != CALLS_ASKS)
            continue;
        calls_ask_no_more(calls, one, CALLS_TAKEN_BACK);
        one->failed = outcome_error(OUTCOME_CANCELLED, "an interrupt came before the decision");
        one->due_ns = clock_now_ns() + TAKE_BACK_MS * CLOCK_MS;
    }
    calls_set_timer(calls);
}

int calls_approve(struct calls *calls, int64_t number, bool allow, struct str reason,
                  struct err *err)
{
    struct calls_one *one = calls_find(calls, number);
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)number);
    if (!one || one->asked != CALLS_ASKS) {
        err_input(err, "call", text, "a call that waits for a decision",
                  "no call %s of this run waits for a decision", text);
        err->kind = ERR_ABSENT;
        err_hint(err, "decide once on each 'approval' event, while its call waits");
        return -1;
    }
    calls_ask_no_more(calls, one, allow ? CALLS_APPROVED : CALLS_REFUSED);
    if (allow) {
        calls_go(calls, one);
        calls_set_timer(calls);
        return 0;
    }
    one->reason = reason;
    calls->refused++;
    calls_finish(calls, one,
                 outcome_error(OUTCOME_DENIED, "a person refused this call%s%.*s",
                               reason.len ? ": " : "", (int)reason.len,
                               reason.len ? reason.at : ""),
                 /* told= */ true);
    return 0;
}

json_t *calls_asking(const struct calls *calls)
{
    json_t *list = json_array();
    for (const struct calls_one *one = calls->open; one; one = one->next)
        if (one->asked == CALLS_ASKS)
            json_array_append_new(list, calls_question(calls, one));
    return list;
}
