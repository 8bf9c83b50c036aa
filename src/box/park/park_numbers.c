/* Orders to the warden, which chooses pids in the box and kills by pid; see box/proto/warden.h.
 * Runs in the keeper of a session: one thread, no heap, no stdio. Every wait has a bound. */
#include "box/park/park.h"

#include <errno.h>
#include <poll.h>

#include "base/io.h"
#include "box/proto/warden.h"

#define ANSWER_MS 4000

static int ask(const struct park_session *session, const struct warden_order *order)
{
    struct pollfd ready = { .fd = session->warden, .events = POLLIN };
    struct warden_answer answer;
    size_t none = 0;
    if (session->warden < 0)
        return 0;
    if (io_send(session->warden, order, sizeof *order, NULL, 0) < 0 ||
        poll(&ready, 1, ANSWER_MS) != 1 ||
        io_recv(session->warden, &answer, sizeof answer, NULL, 0, &none) != 1 || answer.error) {
        errno = ENOTSUP;
        return -1;
    }
    return 0;
}

int park_number_reserved(const struct park_session *session)
{
    return ask(session, &(struct warden_order){ .op = WARDEN_RESERVED });
}

int park_number_ordinary(const struct park_session *session)
{
    return ask(session, &(struct warden_order){ .op = WARDEN_ORDINARY });
}

int park_sweep(const struct park_session *session, const struct park *parked, size_t count)
{
    struct warden_order order = { .op = WARDEN_SWEEP };
    for (size_t i = 0; i < count && order.count < array_len(order.stays); i++) {
        if (parked[i].pid > 0)
            order.stays[order.count++] = parked[i].inside;
    }
    return ask(session, &order);
}
