/* The few words of Landlock that cupel speaks, by raw system calls: Debian 12's
 * headers stop at ABI 2. Names and values are those of linux/landlock.h. */
#ifndef BOX_WALL_LANDLOCK_H
#define BOX_WALL_LANDLOCK_H

#include <stddef.h>
#include <stdint.h>

/* The rights that are named somewhere; ALL stands for each that the kernel knows. */
#define BOX_LANDLOCK_EXECUTE (UINT64_C(1) << 0)
#define BOX_LANDLOCK_WRITE_FILE (UINT64_C(1) << 1)
#define BOX_LANDLOCK_READ_FILE (UINT64_C(1) << 2)
#define BOX_LANDLOCK_READ_DIR (UINT64_C(1) << 3)
#define BOX_LANDLOCK_REMOVE_DIR (UINT64_C(1) << 4)
#define BOX_LANDLOCK_REMOVE_FILE (UINT64_C(1) << 5)
#define BOX_LANDLOCK_MAKE_DIR (UINT64_C(1) << 7)
#define BOX_LANDLOCK_MAKE_REG (UINT64_C(1) << 8)
#define BOX_LANDLOCK_TRUNCATE (UINT64_C(1) << 14) /* ABI 3 */
#define BOX_LANDLOCK_ALL (~UINT64_C(0))

struct box_landlock_rule {
    const char *path; /* NULL: dirfd itself */
    int dirfd;
    uint64_t allowed;
};

enum box_landlock_net { BOX_LANDLOCK_TCP, BOX_LANDLOCK_NO_TCP };

/* The kernel's ABI, 0 where it has no Landlock or it is switched off. */
int box_landlock_abi(void);
/* A set of rules as a descriptor: what they say beneath their directories is allowed
 * and nothing else of the file system that the ABI can refuse; with
 * BOX_LANDLOCK_NO_TCP no TCP (ABI 4); no abstract sockets and no signals to others
 * (ABI 6). -1 with errno: ENOSYS or EOPNOTSUPP where there is no Landlock. */
int box_landlock_make(const struct box_landlock_rule *rules, size_t count,
                      enum box_landlock_net net);
/* Live by it from now on. Needs no_new_privs. 0, or -1 with errno. */
int box_landlock_restrict(int set);
/* Both. */
int box_landlock_apply(const struct box_landlock_rule *rules, size_t count,
                       enum box_landlock_net net);

#endif
