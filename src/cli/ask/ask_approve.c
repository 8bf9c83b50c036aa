/* Calls of tools whose policy asks, in a task. Runs in the cli process. The agent asks here while
 * its box is frozen. While a person thinks, the engine's connection is watched: the run may end. */
#include <errno.h>
#include <poll.h>

#include "base/attr.h"
#include "base/json.h"
#include "cli/ask/ask.h"

static void before(void *user)
{
    cli_ask_draw_pause(user);
}

void cli_ask_approve_begin(struct cli_ask *ask, bool asks)
{
    ask->approve.yes = &ask->options.run.approve;
    ask->approve.no = &ask->options.run.refuse;
    ask->approve.asks = asks;
    ask->approve.before = before;
    ask->approve.user = &ask->draw;
}

void cli_ask_approve_event(struct cli_ask *ask, const char *kind, const json_t *data)
{
    if (str_is(STR("step"), kind))
        cli_approve_look(&ask->approve, json_object_get(json_object_get(data, "result"), "calls"));
    else if (str_is(STR("output"), kind))
        cli_approve_leave(&ask->approve);
}

enum agent_decision cli_ask_approve(void *user, json_t *call)
{
    struct cli_ask *ask = user;
    struct cli_approve_decision made;
    if (call)
        cli_approve_hear(&ask->approve, call);
    else
        cli_approve_drop(&ask->approve);
    while (!cli_approve_next(&ask->approve, &made)) {
        struct pollfd ready[] = {
            { .fd = cli_approve_fd(&ask->approve), .events = POLLIN },
            { .fd = ask->interrupt_fd, .events = POLLIN },
            { .fd = ask->remote.client.link.fd, .events = POLLIN },
        };
        if (!call || (poll(ready, array_len(ready), -1) < 0 && errno != EINTR) ||
            ready[1].revents || ready[2].revents)
            return AGENT_NOT_YET;
        if (ready[0].revents)
            cli_approve_read(&ask->approve);
    }
    return made.allow ? AGENT_APPROVES : AGENT_REFUSES;
}
