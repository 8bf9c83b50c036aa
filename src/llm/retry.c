/* When to send a failed request again: only for failures that pass, never after bytes of a reply,
 * after a random wait whose maximum doubles, and no sooner than the server asked for. Runs in the
 * task's process. */
#include "llm/retry.h"

#include <poll.h>
#include <sys/random.h>

#define TRIES_MAX 4
#define FIRST_WAIT_S 0.5
#define LONGEST_WAIT_S 8.0
#define ASKED_WAIT_MAX_S 120.0 /* we do not wait for longer */

static bool is_retried(enum llm_outcome outcome)
{
    static const bool rows[] = {
#define X(id, name, retried) retried,
        LLM_OUTCOMES(X)
#undef X
    };
    return rows[outcome];
}

double llm_retry_wait(const struct llm_try *try, int tries, double chance)
{
    double bound = FIRST_WAIT_S;
    if (!is_retried(try->reply->outcome) || try->streamed || try->never_retry ||
        tries >= TRIES_MAX || try->least_wait_s > ASKED_WAIT_MAX_S)
        return -1;
    for (int i = 1; i < tries && bound < LONGEST_WAIT_S; i++)
        bound *= 2;
    double wait = bound * chance;
    if (try->least_wait_s > 0) /* spreads clients that were told the same */
        wait = try->least_wait_s + wait * 0.25;
    int64_t deadline_ms = try->request->deadline_ms;
    bool in_time = deadline_ms <= 0 || (double)(deadline_ms - llm_now_ms()) > wait * 1000;
    return in_time ? wait : -1;
}

double llm_retry_chance(void)
{
    uint32_t random = 0;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        return 1;
    return (double)random / (double)UINT32_MAX;
}

bool llm_retry_sleep(const struct llm_watch *watch, double seconds)
{
    int64_t until = llm_now_ms() + (int64_t)(seconds * 1000);
    for (int64_t left; (left = until - llm_now_ms()) > 0;) {
        struct pollfd watched = { watch->cancel_fd, POLLIN, 0 };
        if (poll(&watched, 1, (int)left) > 0)
            return false;
    }
    return true;
}
