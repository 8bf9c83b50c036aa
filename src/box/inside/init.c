/* Init: pid 1 of a box, a separate static program with an empty environment. It checks its own
 * posture, reports to the broker, confines itself to a few system calls and then sleeps: SIGCHLD is
 * ignored, so the kernel reaps orphans. It has no authority. Its death ends the box, and the broker
 * believes nothing from it but the one fixed-size report sent before any user code runs. */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/io.h"
#include "box/wall/filter.h"
#include "box/wall/seccomp.h"
#include "box/inside/inside.h"
#include "box/wall/posture.h"
#include "box/proto/proto.h"

/* The walls that init requires around itself; its own filter follows the check. */
#define INIT_REQUIRED                                                                       \
    (BOX_WALL_BIT(USER_NS) | BOX_WALL_BIT(MOUNT_NS) | BOX_WALL_BIT(PID_NS) |                \
     BOX_WALL_BIT(NET_NS) | BOX_WALL_BIT(IPC_NS) | BOX_WALL_BIT(UTS_NS) |                   \
     BOX_WALL_BIT(CGROUP_NS) | BOX_WALL_BIT(READ_ONLY_ROOT) | BOX_WALL_BIT(OWN_PROC) |      \
     BOX_WALL_BIT(NO_CAPS) | BOX_WALL_BIT(NO_NEW_PRIVS) | BOX_WALL_BIT(CLOSED_FDS) |        \
     BOX_WALL_BIT(RLIMITS))

int main(void)
{
    struct posture_outside outside;
    struct box_report report = { .step = BOX_STEP_NONE };
    size_t fds = 0;
    /* Not dumpable: no process in the box can read this process or open its files. */
    prctl(PR_SET_NAME, "cupel-init");
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || signal(SIGCHLD, SIG_IGN) == SIG_ERR ||
        io_recv(INSIDE_FD_REPORT, &outside, sizeof outside, NULL, 0, &fds) != 1)
        return 71;
    static const int own[] = { 0, 1, 2, INSIDE_FD_REPORT };
    report.walls = posture_read(&outside, 0, own, sizeof own / sizeof own[0]);
    if ((report.walls & INIT_REQUIRED) != INIT_REQUIRED) {
        report.step = BOX_STEP_INIT_POSTURE;
        report.error = EPERM;
    } else if (seccomp_raise(box_filter_init, 0) < 0) {
        report.step = BOX_STEP_INIT;
        report.error = errno;
    }
    if (io_send(INSIDE_FD_REPORT, &report, sizeof report, NULL, 0) < 0 || report.step)
        return 71;
    /* pid 1 receives only signals with a handler, and init has none. */
    for (;;)
        pause();
}
