/* Creating a process, also where the kernel or a container allows only clone. */
#ifndef BOX_WALL_CLONE_H
#define BOX_WALL_CLONE_H

#include <stdint.h>

/* Like fork, with CLONE_* flags, a pidfd of the child (NULL: none) and a cgroup v2 folder for the
 * child (-1: the caller's). Containers often hide clone3: then clone makes the child and moves it
 * into its cgroup after its first instructions. */
long clone_child(uint64_t flags, int *pidfd, int cgroup_fd);

#endif
