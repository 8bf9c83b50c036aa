/* Calls to the broker. Runs in the engine, in its loop. A call that the socket has no room for is
 * kept, with copies of its descriptors, and sent in its turn: a busy broker delays its own work and
 * nothing else. There are a few calls for each box at most, so the boxes bound the list. */
#include <fcntl.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/own.h"
#include "engine/pool/house.h"

struct house_call {
    struct house_call *next;
    struct box_call call;
    int fds[IO_FDS_MAX];
    size_t count;
};

static void call_free(struct house_call *call)
{
    for (size_t i = 0; i < call->count; i++)
        own_close_fd(&call->fds[i]);
    free(call);
}

void house_calls_done(struct house *house)
{
    while (house->calls) {
        struct house_call *call = house->calls;
        house->calls = call->next;
        call_free(call);
    }
    house->calls_end = &house->calls;
}

int house_calls_send(struct house *house)
{
    while (house->calls) {
        struct house_call *call = house->calls;
        int rc = box_send_now(&house->broker, &call->call, call->fds, call->count, &house->broken);
        if (rc != 0)
            return rc < 0 ? -1 : 0;
        house->calls = call->next;
        call_free(call);
    }
    house->calls_end = &house->calls;
    loop_change(house->loop, &house->source, EPOLLIN);
    return 0;
}

/* -1 if a descriptor could not be copied. */
static int keep(struct house *house, const struct box_call *call, const int *fds, size_t count)
{
    struct house_call *kept = buf_alloc_zero(1, sizeof *kept);
    kept->call = *call;
    for (; kept->count < count; kept->count++) {
        kept->fds[kept->count] = fcntl(fds[kept->count], F_DUPFD_CLOEXEC, 3);
        if (kept->fds[kept->count] < 0) {
            call_free(kept);
            return -1;
        }
    }
    if (!house->calls)
        loop_change(house->loop, &house->source, EPOLLIN | EPOLLOUT);
    *house->calls_end = kept;
    house->calls_end = &kept->next;
    return 0;
}

/* No descriptor is left: then the calls before it, and this one, wait for the broker after all. */
static int send_waiting(struct house *house, const struct box_call *call, const int *fds,
                        size_t count)
{
    for (const struct house_call *at = house->calls; at; at = at->next)
        if (box_send(&house->broker, &at->call, at->fds, at->count, &house->broken) < 0)
            return -1;
    house_calls_done(house);
    return box_send(&house->broker, call, fds, count, &house->broken);
}

int house_call_send(struct house *house, const struct box_call *call, const int *fds, size_t count)
{
    int rc = house->calls ? 1 : box_send_now(&house->broker, call, fds, count, &house->broken);
    if (rc <= 0)
        return rc;
    return keep(house, call, fds, count) == 0 ? 0 : send_waiting(house, call, fds, count);
}
