/* Answers forbidden system calls. The engine reads only the call's number: it follows no pointer of
 * the box and always answers with an error, so there is nothing to race against. Runs in the
 * engine. */
#include "engine/talk/notify.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/own.h"
#include "box/host/box.h"

static void count(struct notify *notify, int number)
{
    for (unsigned i = 0; i < notify->kinds; i++) {
        if (notify->seen[i].number == number) {
            notify->seen[i].count++;
            return;
        }
    }
    notify->seen[notify->kinds].number = number;
    notify->seen[notify->kinds++].count = 1;
}

void notify_serve(struct notify *notify)
{
    struct seccomp_notif call;
    struct seccomp_notif_resp answer;
    if (notify->fd < 0)
        return;
    memset(&call, 0, sizeof call);
    if (ioctl(notify->fd, SECCOMP_IOCTL_NOTIF_RECV, &call) < 0) {
        /* ENOENT: the caller died meanwhile. Anything else: the box is gone. */
        if (errno != ENOENT && errno != EINTR)
            own_close_fd(&notify->fd);
        return;
    }
    count(notify, call.data.nr);
    memset(&answer, 0, sizeof answer);
    answer.id = call.id;
    answer.error = -box_call_errno(call.data.nr);
    ioctl(notify->fd, SECCOMP_IOCTL_NOTIF_SEND, &answer); /* fails only if the caller died */
    if (++notify->reports >= NOTIFY_MAX)
        own_close_fd(&notify->fd);
}

void notify_report(const struct notify *notify, struct result *result)
{
    for (unsigned i = 0; i < notify->kinds; i++)
        result_add_denied(result, box_call_name(notify->seen[i].number), notify->seen[i].count);
}
