/* Landlock by raw system calls, for the occupant, the steward and the janitor. No heap, no stdio:
 * called in children between clone and exec. */
#include "box/wall/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/own.h"

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

#define CREATE_VERSION 1U
#define RULE_PATH_BENEATH 1
#define NET_TCP_ALL UINT64_C(3)
#define SCOPE_ALL UINT64_C(3)

struct ruleset {
    uint64_t handled_fs;
    uint64_t handled_net; /* ABI 4 */
    uint64_t scoped;      /* ABI 6 */
};

struct path_beneath {
    uint64_t allowed;
    int32_t dirfd;
} __attribute__((packed));

/* Bits of handled_fs in each ABI, from ABI 1. ABI 5's right over device ioctls is not used: a box
 * has no device with an ioctl worth refusing. */
static const unsigned char fs_bits[] = { 13, 14, 15 };

int box_landlock_abi(void)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, (size_t)0, CREATE_VERSION);
    return abi < 0 ? 0 : (int)abi;
}

static int add_rule(int set, const struct box_landlock_rule *rule, uint64_t known)
{
    own_fd opened = rule->path ? open(rule->path, O_PATH | O_CLOEXEC) : -1;
    struct path_beneath beneath = {
        .allowed = rule->allowed & known,
        .dirfd = rule->path ? opened : rule->dirfd,
    };
    if (rule->path && opened < 0)
        return -1;
    return (int)syscall(SYS_landlock_add_rule, set, RULE_PATH_BENEATH, &beneath, 0U);
}

int box_landlock_make(const struct box_landlock_rule *rules, size_t count,
                      enum box_landlock_net net)
{
    int abi = box_landlock_abi();
    if (abi < 1) {
        errno = ENOSYS;
        return -1;
    }
    size_t row = (size_t)abi < sizeof fs_bits ? (size_t)abi : sizeof fs_bits;
    struct ruleset all = {
        .handled_fs = (UINT64_C(1) << fs_bits[row - 1]) - 1,
        .handled_net = abi >= 4 && net == BOX_LANDLOCK_NO_TCP ? NET_TCP_ALL : 0,
        .scoped = abi >= 6 ? SCOPE_ALL : 0,
    };
    /* An older kernel accepts a longer struct if the rest of it is 0. */
    own_fd set = (int)syscall(SYS_landlock_create_ruleset, &all, sizeof all, 0U);
    if (set < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        if (add_rule(set, &rules[i], all.handled_fs) < 0)
            return -1;
    }
    return take_fd(&set);
}

int box_landlock_restrict(int set)
{
    return (int)syscall(SYS_landlock_restrict_self, set, 0U);
}

int box_landlock_apply(const struct box_landlock_rule *rules, size_t count,
                       enum box_landlock_net net)
{
    own_fd set = box_landlock_make(rules, count, net);
    return set < 0 ? -1 : box_landlock_restrict(set);
}
