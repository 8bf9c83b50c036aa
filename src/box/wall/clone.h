/* Making a process, also where only the older call is allowed. */
#ifndef BOX_WALL_CLONE_H
#define BOX_WALL_CLONE_H

#include <stdint.h>

/* As fork, with CLONE_* flags, a descriptor of the child (NULL: none) and a cgroup v2
 * folder that it starts in (-1: ours). Containers often hide clone3 from programs: then
 * clone is used, and the child is moved into its group after its first instructions. */
long clone_child(uint64_t flags, int *pidfd, int cgroup_fd);

#endif
