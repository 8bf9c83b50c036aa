/* Confinement of cupel's own processes on the host side: each helper calls it right after its fork,
 * `cupel serve` when it is ready. No heap, no stdio. */
#include "box/wall/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "box/wall/filter.h"
#include "box/wall/landlock.h"
#include "box/wall/seccomp.h"

int box_confine_capabilities(uint32_t keep)
{
    struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct sets[2] = { { .effective = keep, .permitted = keep } };
    /* The bounding set needs CAP_SETPCAP: an ordinary caller has nothing to drop. */
    for (int cap = 0; cap < 64; cap++)
        if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
            break;
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -1;
    return (int)syscall(SYS_capset, &head, sets);
}

static int close_below(unsigned end, unsigned *next)
{
    if (*next < end && syscall(SYS_close_range, *next, end - 1, 0U) < 0)
        return -1;
    *next = end + 1;
    return 0;
}

static int keep_only(int a, int b)
{
    unsigned low = (unsigned)(a < b ? a : b), high = (unsigned)(a < b ? b : a), next = 3;
    if (low < 3 || close_below(low, &next) < 0 || close_below(high, &next) < 0)
        return -1;
    return (int)syscall(SYS_close_range, next, ~0U, 0U);
}

static int silence(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0)
        return -1;
    for (int fd = 0; fd < 3; fd++)
        if (null != fd && dup2(null, fd) < 0)
            return -1;
    return 0;
}

/* A kernel without Landlock is no failure. */
static int confine_files(const struct box_landlock_rule *rule)
{
    if (box_landlock_apply(rule, 1, BOX_LANDLOCK_NO_TCP) < 0 && errno != ENOSYS &&
        errno != EOPNOTSUPP)
        return -1;
    return 0;
}

int box_confine_reader(int sock)
{
    const struct box_landlock_rule rule = { .path = "/",
                                            .dirfd = -1,
                                            .allowed = BOX_LANDLOCK_READ_FILE |
                                                       BOX_LANDLOCK_READ_DIR };
    if (silence() < 0 || keep_only(sock, sock) < 0)
        return -1;
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || box_confine_capabilities(0) < 0)
        return -1;
    return confine_files(&rule);
}

int box_confine_steward(int sock, int out_dirfd, bool reads)
{
    if (silence() < 0 || keep_only(sock, out_dirfd) < 0)
        return -1;
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || box_confine_capabilities(0) < 0)
        return -1;
    uint64_t allowed = BOX_LANDLOCK_WRITE_FILE | BOX_LANDLOCK_READ_DIR | BOX_LANDLOCK_REMOVE_FILE |
                       BOX_LANDLOCK_MAKE_DIR | BOX_LANDLOCK_MAKE_REG | BOX_LANDLOCK_TRUNCATE |
                       (reads ? BOX_LANDLOCK_READ_FILE : 0);
    const struct box_landlock_rule rule = { .dirfd = out_dirfd, .allowed = allowed };
    return confine_files(&rule);
}

int box_confine_clerk(int sock, int dirfd, bool writes, uid_t uid, gid_t gid)
{
    if (silence() < 0 || keep_only(sock, dirfd) < 0)
        return -1;
    if (geteuid() == 0 && uid != 0 &&
        (syscall(SYS_setgroups, 0, NULL) < 0 || syscall(SYS_setresgid, gid, gid, gid) < 0 ||
         syscall(SYS_setresuid, uid, uid, uid) < 0))
        return -1;
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || box_confine_capabilities(0) < 0)
        return -1;
    uint64_t allowed = BOX_LANDLOCK_READ_DIR | BOX_LANDLOCK_READ_FILE;
    if (writes)
        allowed |= BOX_LANDLOCK_WRITE_FILE | BOX_LANDLOCK_REMOVE_FILE | BOX_LANDLOCK_REMOVE_DIR |
                   BOX_LANDLOCK_MAKE_DIR | BOX_LANDLOCK_MAKE_REG | BOX_LANDLOCK_MAKE_SYM |
                   BOX_LANDLOCK_TRUNCATE;
    const struct box_landlock_rule rule = { .dirfd = dirfd, .allowed = allowed };
    return confine_files(&rule);
}

int box_confine_starter(int sock)
{
    struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct sets[2] = { { 0 } };
    if (silence() < 0 || keep_only(sock, sock) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
        syscall(SYS_capget, &head, sets) < 0)
        return -1;
    /* Root's engine listens in a folder of the private uid, and hears uid 0 alone. */
    const uint32_t kept = sets[0].permitted & (1U << CAP_DAC_OVERRIDE);
    const struct __user_cap_data_struct few[2] = { { .effective = kept, .permitted = kept } };
    /* The bounding set stays, and no_new_privs is not set: execve gives root its rights again. */
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    return (int)syscall(SYS_capset, &head, few);
}

#ifdef __SANITIZE_ADDRESS__
/* The leak checker starts a process that looks into this one, at its end. */
#define IS_WATCHED 1
#else
#define IS_WATCHED 0
#endif

int box_confine_service(void)
{
    const unsigned flags = SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    if (IS_WATCHED)
        return 0;
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -1;
    int rc = seccomp_raise(box_filter_service_unlogged, flags);
    if (rc == 0)
        rc = seccomp_raise(box_filter_service, flags | SECCOMP_FILTER_FLAG_LOG);
    if (rc > 0) /* the thread that has another filter */
        errno = EBUSY;
    return rc == 0 ? 0 : -1;
}
