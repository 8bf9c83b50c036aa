/* Dropping privileges. Runs in children of the broker between clone and exec: no heap, no stdio. */
#include "box/wall/drop.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int drop_capabilities(void)
{
    struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct none[2] = { { 0 } };
    /* The kernel knows fewer than 64; the first unknown one ends the loop. */
    for (int cap = 0; cap < 64; cap++) {
        if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0) {
            if (errno == EINVAL && cap > CAP_CHECKPOINT_RESTORE)
                break;
            return -1;
        }
    }
    unsigned long locked = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
                           SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
                           SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
    if (prctl(PR_SET_SECUREBITS, locked, 0, 0, 0) < 0)
        return -1;
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
        return -1;
    return (int)syscall(SYS_capset, &head, none);
}

int drop_power(uid_t uid, gid_t gid, bool groups)
{
    return drop_power_saving(uid, uid, gid, groups);
}

int drop_power_saving(uid_t uid, uid_t saved, gid_t gid, bool groups)
{
    /* Raw calls: libc would signal other threads, and there are none. */
    if (groups && syscall(SYS_setgroups, 0, NULL) < 0)
        return -1;
    if (syscall(SYS_setresgid, gid, gid, gid) < 0 || syscall(SYS_setresuid, uid, uid, saved) < 0)
        return -1;
    if (drop_capabilities() < 0)
        return -1;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

int drop_power_but(uint64_t capabilities)
{
    struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct one[2] = { { 0 } };
    for (int i = 0; i < 2; i++) {
        const uint32_t bits = (uint32_t)(capabilities >> 32 * i);
        one[i] = (struct __user_cap_data_struct){ bits, bits, bits };
    }
    for (int cap = 0; cap < 64; cap++) {
        if (!(capabilities >> cap & 1) && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0) {
            if (errno == EINVAL && cap > CAP_CHECKPOINT_RESTORE)
                break;
            return -1;
        }
    }
    /* Uid 0 grants nothing; the kept capabilities are ambient. */
    const unsigned long locked = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
                                 SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED;
    if (prctl(PR_SET_SECUREBITS, locked, 0, 0, 0) < 0 || syscall(SYS_capset, &head, one) < 0)
        return -1;
    for (unsigned cap = 0; cap < 64; cap++) {
        if (capabilities >> cap & 1 && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0) < 0)
            return -1;
    }
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

void drop_signals(void)
{
    /* By the raw call: libc reserves two real-time signals and would refuse them, but a caller may
     * have ignored those. All zero is SIG_DFL. */
    const unsigned long plain[4] = { 0 };
    for (int sig = 1; sig < 65; sig++)
        syscall(SYS_rt_sigaction, sig, plain, NULL, 8); /* KILL and STOP fail */
}

int drop_inherited_state(void)
{
    sigset_t none;
    sigemptyset(&none);
    if (sigprocmask(SIG_SETMASK, &none, NULL) < 0)
        return -1;
    umask(022);
    return setsid() < 0 && errno != EPERM ? -1 : 0;
}

int drop_set_rlimits(const struct drop_rlimits *limits)
{
    const rlim_t none = RLIM_INFINITY;
    const struct {
        int which;
        rlim_t most;
    } rows[] = {
        { RLIMIT_CORE, limits->piped_core ? 1 : 0 },
        { RLIMIT_CPU, limits->cpu_s ? limits->cpu_s : none },
        { RLIMIT_NOFILE, limits->open_files },
        { RLIMIT_NPROC, limits->processes ? limits->processes : none },
        { RLIMIT_FSIZE, limits->file_bytes ? limits->file_bytes : none },
        { RLIMIT_DATA, limits->data_bytes ? limits->data_bytes : none },
        { RLIMIT_STACK, 8u << 20 },
        { RLIMIT_MEMLOCK, 64u << 10 },
        { RLIMIT_MSGQUEUE, 0 },
        { RLIMIT_RTPRIO, 0 },
        { RLIMIT_NICE, 0 },
        { RLIMIT_SIGPENDING, 1024 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct rlimit now, want = { rows[i].most, rows[i].most };
        if (setrlimit(rows[i].which, &want) == 0)
            continue;
        if (errno != EPERM || getrlimit(rows[i].which, &now) < 0)
            return -1;
        /* Raising a limit above the inherited one needs a capability outside the box. */
        if (now.rlim_max != none && (want.rlim_max == none || want.rlim_max > now.rlim_max))
            want.rlim_cur = want.rlim_max = now.rlim_max;
        if (setrlimit(rows[i].which, &want) < 0)
            return -1;
    }
    return 0;
}
