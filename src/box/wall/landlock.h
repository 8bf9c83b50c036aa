/* The parts of Landlock that cupel uses, by raw system calls: Debian 12's headers stop at ABI 2.
 * Names and values are those of linux/landlock.h. */
#ifndef BOX_WALL_LANDLOCK_H
#define BOX_WALL_LANDLOCK_H

#include <stddef.h>
#include <stdint.h>

/* The rights that cupel names; ALL stands for every right that the kernel knows. */
#define BOX_LANDLOCK_EXECUTE (UINT64_C(1) << 0)
#define BOX_LANDLOCK_WRITE_FILE (UINT64_C(1) << 1)
#define BOX_LANDLOCK_READ_FILE (UINT64_C(1) << 2)
#define BOX_LANDLOCK_READ_DIR (UINT64_C(1) << 3)
#define BOX_LANDLOCK_REMOVE_DIR (UINT64_C(1) << 4)
#define BOX_LANDLOCK_REMOVE_FILE (UINT64_C(1) << 5)
#define BOX_LANDLOCK_MAKE_DIR (UINT64_C(1) << 7)
#define BOX_LANDLOCK_MAKE_REG (UINT64_C(1) << 8)
#define BOX_LANDLOCK_MAKE_SYM (UINT64_C(1) << 12)
#define BOX_LANDLOCK_TRUNCATE (UINT64_C(1) << 14) /* ABI 3 */
#define BOX_LANDLOCK_ALL (~UINT64_C(0))

struct box_landlock_rule {
    const char *path; /* NULL: dirfd itself */
    int dirfd;
    uint64_t allowed;
};

enum box_landlock_net { BOX_LANDLOCK_TCP, BOX_LANDLOCK_NO_TCP };

/* The kernel's ABI; 0 without Landlock or where it is switched off. */
int box_landlock_abi(void);
/* A rule set as a descriptor. It allows the rules' rights beneath their directories and refuses all
 * other file system access that the ABI covers. BOX_LANDLOCK_NO_TCP refuses TCP (ABI 4). Abstract
 * sockets and signals to other processes are refused (ABI 6). -1 with errno: ENOSYS or EOPNOTSUPP
 * without Landlock. */
int box_landlock_make(const struct box_landlock_rule *rules, size_t count,
                      enum box_landlock_net net);
/* Apply the rule set to this process. Needs no_new_privs. 0, or -1 with errno. */
int box_landlock_restrict(int set);
/* Make a rule set and apply it. */
int box_landlock_apply(const struct box_landlock_rule *rules, size_t count,
                       enum box_landlock_net net);

#endif
