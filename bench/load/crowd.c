/* Many connections at once, each with one request under way. */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "load.h"

#define BATCH 64
#define STALL_MS 60000 /* no answer at all for so long: it hangs */

int load_crowd_open(const struct load *load, bool http, unsigned count, struct load_crowd *out,
                    struct err *err)
{
    struct load_crowd crowd = { .at = buf_alloc_zero(count, sizeof *crowd.at),
                                .epoll = epoll_create1(EPOLL_CLOEXEC) };
    int rc = crowd.epoll >= 0 ? 0 : err_sys(err, "make an epoll");
    while (rc == 0 && crowd.count < count) {
        struct load_line *line = &crowd.at[crowd.count];
        struct epoll_event event = { .events = EPOLLIN, .data.u32 = crowd.count };
        *line = LOAD_LINE_INIT;
        rc = load_line_open(load, http, line, err);
        if (rc == 0 && epoll_ctl(crowd.epoll, EPOLL_CTL_ADD, line->fd, &event) < 0)
            rc = err_sys(err, "watch a connection");
        crowd.count += rc == 0;
    }
    if (rc < 0)
        load_crowd_close(&crowd);
    else
        *out = crowd;
    return rc;
}

void load_crowd_close(struct load_crowd *crowd)
{
    for (unsigned i = 0; i < crowd->count; i++)
        load_line_close(&crowd->at[i]);
    free(crowd->at);
    own_close_fd(&crowd->epoll);
    *crowd = LOAD_CROWD_INIT;
}

static int turn(struct load *load, struct load_crowd *crowd, bool over, struct err *err)
{
    struct epoll_event ready[BATCH];
    int n = epoll_wait(crowd->epoll, ready, BATCH, STALL_MS);
    if (n < 0 && errno != EINTR)
        return err_sys(err, "wait for answers");
    if (n == 0)
        return err_set(err, ERR_BUG, "no answer to %u requests", crowd->going);
    for (int i = 0; i < n; i++) {
        struct load_line *line = &crowd->at[ready[i].data.u32];
        int got = load_line_receive(line, err);
        if (got < 0)
            return -1;
        crowd->ended += got > 0;
        crowd->going -= got > 0 && over;
        if (got > 0 && !over && load_line_ask(load, line, err) < 0)
            return -1;
    }
    return 0;
}

int load_crowd_run(struct load *load, struct load_crowd *crowd, int window_ms, double *out_rate,
                   struct err *err)
{
    int64_t from = clock_now_ns(), until = from + window_ms * CLOCK_MS;
    crowd->ended = 0;
    for (crowd->going = 0; crowd->going < crowd->count; crowd->going++) {
        if (load_line_ask(load, &crowd->at[crowd->going], err) < 0)
            return -1;
    }
    while (crowd->going > 0) {
        if (turn(load, crowd, clock_now_ns() >= until, err) < 0)
            return -1;
    }
    *out_rate = (double)crowd->ended * 1000 / clock_ms_between(from, clock_now_ns());
    return 0;
}
