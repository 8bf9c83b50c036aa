/* The entrance: finds the model, and gets one reply from it, with retries. Runs in the task's
 * process. */
#include "llm/llm.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/own.h"
#include "llm/llm_int.h"
#include "llm/prices.h"
#include "llm/retry.h"
#include "llm/server.h"
#include "llm/target.h"

int64_t llm_now_ms(void)
{
    return clock_now_ns() / 1000000;
}

bool llm_is_late(int64_t deadline_ms)
{
    return deadline_ms > 0 && llm_now_ms() >= deadline_ms;
}

bool llm_is_cancelled(const struct llm_watch *watch)
{
    struct pollfd watched = { watch->cancel_fd, POLLIN, 0 };
    return watch->cancel_fd >= 0 && poll(&watched, 1, 0) > 0;
}

static int open_named(const char *spec, struct llm_model *model, struct err *err)
{
    static const struct {
        const char *prefix;
        int (*open)(const char *rest, struct llm_model *model, struct err *err);
    } kinds[] = { { "exec:", llm_exec_open }, { "replay:", llm_replay_open } };
    for (size_t i = 0; i < array_len(kinds); i++)
        if (strncmp(spec, kinds[i].prefix, strlen(kinds[i].prefix)) == 0)
            return kinds[i].open(spec + strlen(kinds[i].prefix), model, err);
    return llm_server_open(spec, model, err);
}

int llm_open(const char *spec, struct llm_model **out, struct err *err)
{
    own_str usual = NULL;
    if (!spec && llm_target_usual(&usual, err) < 0)
        return -1;
    if (!spec && !usual) {
        err_set(err, ERR_ABSENT, "no model is configured");
        err_hint(err, "set ANTHROPIC_API_KEY or OPENAI_API_KEY, or name a model with --model or "
                      "CUPEL_MODEL, e.g. ollama/qwen3:8b; 'cupel models' lists them");
        return -1;
    }
    struct llm_model *model = buf_alloc_zero(1, sizeof *model);
    model->name = buf_strdup(str_of(spec ? spec : usual));
    if (open_named(spec ? spec : usual, model, err) < 0 ||
        llm_price_find(model->name, &model->price, err) < 0) {
        llm_close(model);
        return -1;
    }
    *out = model;
    return 0;
}

int llm_ready(struct llm_model *model, struct err *err)
{
    return model->backend->ready ? model->backend->ready(model, err) : 0;
}

int llm_again(struct llm_model *model, struct llm_model **out, struct err *err)
{
    void *state = model->backend->again(model, err);
    if (!state)
        return -1;
    struct llm_model *other = buf_alloc_zero(1, sizeof *other);
    *other = *model;
    other->name = buf_strdup(str_of(model->name));
    other->state = state;
    other->made_ids = 0;
    *out = other;
    return 0;
}

void llm_close(struct llm_model *model)
{
    if (!model)
        return;
    if (model->backend)
        model->backend->close(model->state);
    free(model->name);
    free(model);
}

const char *llm_name(const struct llm_model *model)
{
    return model->name;
}

bool llm_sees(const struct llm_model *model)
{
    return model->sees;
}

bool llm_calls_tools(const struct llm_model *model)
{
    return model->calls_tools;
}

bool llm_is_scripted(const struct llm_model *model)
{
    return model->scripted;
}

double llm_cost_bound(const struct llm_model *model, const struct llm_request *request)
{
    return llm_price_bound(&model->price, request);
}

/* Only a reply that has not begun may be retried; one that began and failed is broken. */
static void settle(struct llm_try *try)
{
    struct llm_reply *reply = try->reply;
    if (try->streamed && (reply->outcome == LLM_RATE || reply->outcome == LLM_OVERLOADED ||
                          reply->outcome == LLM_NETWORK))
        reply->outcome = LLM_BROKEN;
}

/* Token counts before the end may be too low. */
static bool is_cut_short(enum llm_outcome outcome)
{
    return outcome == LLM_BROKEN || outcome == LLM_TIMEOUT || outcome == LLM_CANCELLED ||
           outcome == LLM_TOO_LONG;
}

static void ask_once(struct llm_model *model, struct llm_try *try, int tries)
{
    struct llm_reply *reply = try->reply;
    llm_reply_done(reply);
    *reply = (struct llm_reply){ .usage = LLM_USAGE_UNKNOWN, .cost_usd = -1, .tries = tries };
    try->streamed = try->never_retry = false;
    try->least_wait_s = -1;
    model->backend->ask(model, try);
    settle(try);
    if (is_cut_short(reply->outcome))
        reply->usage.output = -1;
    reply->cost_usd = llm_price_of(&model->price, &reply->usage);
}

void llm_ask(struct llm_model *model, const struct llm_request *request,
             const struct llm_watch *watch, struct llm_reply *out)
{
    static const struct llm_watch nobody = { .cancel_fd = -1 };
    struct llm_try try = { .request = request, .watch = watch ? watch : &nobody, .reply = out };
    *out = (struct llm_reply){ .usage = LLM_USAGE_UNKNOWN, .cost_usd = -1 };
    if (llm_is_cancelled(try.watch))
        llm_fail(out, LLM_CANCELLED, NULL, "cancelled before the model was asked");
    else if (llm_is_late(request->deadline_ms))
        llm_fail(out, LLM_TIMEOUT, "give the task more time", "no time was left to ask");
    if (out->outcome != LLM_OK)
        return;
    for (int tries = 1;; tries++) {
        ask_once(model, &try, tries);
        double wait = llm_retry_wait(&try, tries, llm_retry_chance());
        if (wait < 0)
            return;
        if (try.watch->on_wait)
            try.watch->on_wait(try.watch->user, llm_outcome_name(out->outcome), wait);
        if (!llm_retry_sleep(try.watch, wait)) {
            llm_fail(out, LLM_CANCELLED, NULL, "cancelled before the model was asked again");
            return;
        }
    }
}
