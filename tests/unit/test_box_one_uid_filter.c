/* The filter of a session with one uid, on every number that a process may have: parked
 * copies are out of reach by their number alone, so that none of it may be missed. */
#include "box/wall/filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/attr.h"
#include "box/proto/warden.h"
#include "bpf_sim.h"
#include "check.h"

#define ALLOW SECCOMP_RET_ALLOW
#define REFUSED (SECCOMP_RET_ERRNO | EPERM)
#define HIGHEST 4194304 /* number that a kernel gives */

static uint32_t run_args(int nr, uint64_t a0, uint64_t a1, uint64_t a2)
{
    struct seccomp_data data = { .nr = nr, .arch = OWN_ARCH, .args = { a0, a1, a2 } };
    uint32_t action = 0;
    if (bpf_sim_run(box_filter_session_one_uid, BOX_FILTER_SESSION_ONE_UID_LEN, &data, &action))
        check_failed(__FILE__, __LINE__, "no verdict for %d", nr);
    return action;
}

/* A call with a number as one of its arguments, the others as they may be. */
static uint32_t run_with(int nr, int arg, int64_t number)
{
    uint64_t args[3] = { 5, 5, 5 };
    if (nr == SYS_fcntl)
        args[1] = F_SETOWN;
    args[arg] = (uint64_t)number;
    uint32_t got = run_args(nr, args[0], args[1], args[2]);
    args[arg] = (uint64_t)number & UINT32_MAX; /* the kernel takes it as an int */
    CHECK_INT(run_args(nr, args[0], args[1], args[2]), got);
    args[arg] |= UINT64_C(0x5a) << 32;
    CHECK_INT(run_args(nr, args[0], args[1], args[2]), got);
    return got;
}

/* Calls that name a process, and whether they name a group by a negative number. */
static const struct {
    int nr, arg;
    bool groups;
} calls[] = {
    { SYS_kill, 0, true },           { SYS_tkill, 0, false },
    { SYS_tgkill, 1, false },        { SYS_rt_sigqueueinfo, 0, false },
    { SYS_rt_tgsigqueueinfo, 1, false }, { SYS_pidfd_open, 0, false },
    { SYS_prlimit64, 0, false },     { SYS_fcntl, 2, true },
};

TEST(box_one_uid_filter_refuses_every_number_of_the_range)
{
    for (size_t i = 0; i < array_len(calls); i++)
        for (int64_t number = WARDEN_FIRST; number <= WARDEN_LAST; number++) {
            CHECK_INT(run_with(calls[i].nr, calls[i].arg, number), REFUSED);
            if (calls[i].groups)
                CHECK_INT(run_with(calls[i].nr, calls[i].arg, -number), REFUSED);
        }
    CHECK_INT(run_with(SYS_kill, 0, -1), REFUSED); /* everybody */
    CHECK_INT(run_with(SYS_prlimit64, 0, 1), REFUSED); /* init */
}

TEST(box_one_uid_filter_allows_the_numbers_below_and_above)
{
    for (size_t i = 0; i < array_len(calls); i++)
        for (int64_t number = 2; number <= HIGHEST; number += number < 40000 ? 1 : 1021) {
            if (number >= WARDEN_FIRST - 1 && number <= WARDEN_LAST + 1)
                continue;
            CHECK_INT(run_with(calls[i].nr, calls[i].arg, number), ALLOW);
            if (calls[i].groups)
                CHECK_INT(run_with(calls[i].nr, calls[i].arg, -number), ALLOW);
        }
    CHECK_INT(run_with(SYS_kill, 0, 0), ALLOW); /* one's own group */
    CHECK_INT(run_with(SYS_prlimit64, 0, 0), ALLOW);
}

/* What has its target in memory, or means all of a uid or group, is refused as a whole. */
TEST(box_one_uid_filter_refuses_what_it_cannot_see)
{
    CHECK_INT(run_args(SYS_fcntl, 3, F_SETOWN_EX, 0), REFUSED);
    CHECK_INT(run_args(SYS_ioctl, 3, FIOSETOWN, 0), REFUSED);
    CHECK_INT(run_args(SYS_ioctl, 3, SIOCSPGRP, 0), REFUSED);
    CHECK_INT(run_args(SYS_ioctl, 3, SIOCSPGRP | UINT64_C(1) << 32, 0), REFUSED);
    CHECK_INT(run_args(SYS_setpriority, PRIO_USER, 0, 5), REFUSED);
    CHECK_INT(run_args(SYS_setpriority, PRIO_PGRP, 0, 5), REFUSED);
    CHECK_INT(run_args(SYS_setpriority, PRIO_PROCESS, WARDEN_FIRST, 5), REFUSED);
    CHECK_INT(run_args(SYS_setpriority, PRIO_PROCESS, 0, 5), ALLOW);
    CHECK_INT(run_args(SYS_fcntl, 3, F_SETOWN, 5), ALLOW);
    CHECK_INT(run_args(SYS_fcntl, 3, F_DUPFD, WARDEN_FIRST), ALLOW);
    CHECK_INT(run_args(SYS_sched_setaffinity, WARDEN_FIRST, 8, 0), REFUSED);
    CHECK_INT(run_args(SYS_sched_setparam, WARDEN_FIRST, 0, 0), REFUSED);
    CHECK_INT(run_args(SYS_sched_setscheduler, WARDEN_FIRST, 5, 0), REFUSED);
    static const int reach_in[] = { SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev,
                                    SYS_process_madvise, SYS_process_mrelease, SYS_kcmp,
                                    SYS_pidfd_getfd };
    for (size_t i = 0; i < array_len(reach_in); i++)
        CHECK_INT(run_args(reach_in[i], WARDEN_FIRST, 0, 0), SECCOMP_RET_USER_NOTIF);
    static const int absent[] = { SYS_sched_setattr, SYS_ioprio_set, SYS_move_pages,
                                  SYS_migrate_pages };
    for (size_t i = 0; i < array_len(absent); i++)
        CHECK_INT(run_args(absent[i], WARDEN_FIRST, 0, 0), SECCOMP_RET_ERRNO | ENOSYS);
}
