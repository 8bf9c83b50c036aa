/* The broker's setup: receives its descriptors, raises its limits, prepares its signals. Broker
 * only. */
#include "box/broker/broker.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/securebits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"
#include "box/proto/boot.h"
#include "box/inside/mount_usr.h"

/* Many boxes need many descriptors; occupants get their own limit. The broker's pids should not
 * look like those in a box, which start at 1: code that remembers its pid to notice a fork would
 * miss a zygote's fork. */
static void make_room(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    /* Optional: cupel's own code is told of the fork. */
    io_write_text(AT_FDCWD, "/proc/sys/kernel/ns_last_pid", "1000");
}

void broker_set_up(struct broker *broker, int signals[1])
{
    struct box_call call;
    int fds[2 + BOX_CG_COUNT];
    size_t count = 0, next = 2;
    prctl(PR_SET_NAME, "cupel-broker");
    umask(022); /* boxes must be able to read these files, whatever the caller's umask */
    broker->engine = BOOT_FD_ENGINE;
    if (io_recv(broker->engine, &call, sizeof call, fds, 2 + BOX_CG_COUNT, &count) != 1 ||
        call.op != BOX_OP_SETUP || count < 2 || !(broker->due = due_open(fds[1])))
        _exit(73);
    close(fds[1]);
    broker->init_program = fds[0];
    broker->two_ids = call.setup.uid_count > 1;
    broker->bases.v2_controllers = call.setup.v2_controllers;
    for (int i = 0; i < BOX_CG_COUNT; i++) {
        bool given = (call.setup.cgroups & 1u << i) && next < count;
        broker->bases.fd[i] = given ? fds[next++] : -1;
    }
    char first = 0;
    make_room();
    own_fd pattern = open("/proc/sys/kernel/core_pattern", O_RDONLY | O_CLOEXEC);
    broker->piped_core = pattern >= 0 && read(pattern, &first, 1) == 1 && first == '|';
    broker->own_pid_ns = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
    signal(SIGCHLD, SIG_DFL); /* if the caller ignored it, the kernel would reap children */
    sigset_t children;
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    sigprocmask(SIG_SETMASK, &children, NULL);
    signals[0] = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    int flags = fcntl(broker->engine, F_GETFL);
    if (flags < 0 || fcntl(broker->engine, F_SETFL, flags | O_NONBLOCK) < 0)
        _exit(74);
    if (broker->own_pid_ns < 0 || posture_read_ns(&broker->outside) < 0 || signals[0] < 0 ||
        mount_usr_look() < 0 || broker_attach(broker, &call) < 0 ||
        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        _exit(74);
}
