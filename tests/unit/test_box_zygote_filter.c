/* The zygote's filter lies under its occupants': whatever it says must leave every
 * verdict of theirs as it is, and let the zygote itself do its work. */
#include "box/wall/filter.h"

#include <linux/audit.h>
#include <sys/syscall.h>

#include "base/attr.h"
#include "bpf_sim.h"
#include "check.h"

#define NUMBERS 640

static uint32_t run(const struct sock_filter *filter, size_t len, int nr, uint64_t arg)
{
    struct seccomp_data data = { .nr = nr, .arch = OWN_ARCH };
    uint32_t action = 0;
    for (int i = 0; i < 6; i++)
        data.args[i] = arg;
    CHECK_INT(bpf_sim_run(filter, len, &data, &action), 0);
    return action;
}

static uint32_t zygote_says(int nr, uint64_t arg)
{
    return run(box_filter_zygote, BOX_FILTER_ZYGOTE_LEN, nr, arg);
}

/* The kernel's order: the strictest action wins, and among equal ones the filter that
 * was installed last, which is the occupant's. */
static uint32_t stricter(uint32_t occupant, uint32_t zygote)
{
    int32_t a = (int32_t)(occupant & SECCOMP_RET_ACTION_FULL);
    int32_t b = (int32_t)(zygote & SECCOMP_RET_ACTION_FULL);
    return b < a ? zygote : occupant;
}

TEST(box_zygote_filter_changes_no_verdict_of_an_occupant)
{
    static const uint64_t args[] = { 0, 1, 2, 3, 10, 16, 17, 0x10, 0x1000, 0x10000000, 0x7fffffff,
                                     0xffffffff, UINT64_MAX, 0x5a5a5a5a5a5a5a5a };
    int refused = 0;
    for (int nr = 0; nr < NUMBERS; nr++)
        for (size_t i = 0; i < array_len(args); i++) {
            uint32_t own = run(box_filter_occupant, BOX_FILTER_OCCUPANT_LEN, nr, args[i]);
            uint32_t kept = run(box_filter_session, BOX_FILTER_SESSION_LEN, nr, args[i]);
            uint32_t numbered = run(box_filter_session_one_uid, BOX_FILTER_SESSION_ONE_UID_LEN, nr,
                                    args[i]);
            uint32_t zygote = zygote_says(nr, args[i]);
            CHECK_INT(stricter(own, zygote), own);
            CHECK_INT(stricter(kept, zygote), kept);
            CHECK_INT(stricter(numbered, zygote), numbered);
            if (zygote != SECCOMP_RET_ALLOW)
                CHECK_INT(zygote, own); /* also whichever of the two the kernel takes */
            refused += zygote != SECCOMP_RET_ALLOW;
        }
    CHECK(refused > 0);
}

TEST(box_zygote_filter_lets_the_zygote_work)
{
    static const int needed[] = { SYS_recvmsg, SYS_sendmsg, SYS_setns, SYS_clone3, SYS_close,
                                  SYS_write, SYS_setresuid, SYS_setresgid, SYS_setgroups,
                                  SYS_capset, SYS_prctl, SYS_seccomp, SYS_prlimit64, SYS_setsid,
                                  SYS_mmap, SYS_memfd_create, SYS_fcntl, SYS_rt_sigaction };
    for (size_t i = 0; i < array_len(needed); i++)
        CHECK_INT(zygote_says(needed[i], 0), SECCOMP_RET_ALLOW);
    CHECK(zygote_says(SYS_io_uring_setup, 0) != SECCOMP_RET_ALLOW);
    CHECK(zygote_says(SYS_vmsplice, 0) != SECCOMP_RET_ALLOW);
}
