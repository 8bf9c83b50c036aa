/* The list of walls, and the uids of a box. The engine names walls with it; the broker and the
 * processes inside a box report with it which walls they read back. */
#ifndef BOX_WALL_WALLS_H
#define BOX_WALL_WALLS_H

#define BOX_ID_INIT 999     /* uid of init in a box, where a box has two uids */
#define BOX_ID_OCCUPANT 1000
#define BOX_ID_HOLDER 1001  /* uid of parked copies, with more than one uid */

/* A wall is a fact that the broker or a process in the box read back from the kernel. Every profile
 * requires the walls with 1; a result lists the others when they are missing, but for
 * image_not_of_host, which a box of the image 'host' cannot have. */
#define BOX_WALLS(X)                                                               \
    X(USER_NS, "user_namespace", 1)          /* uid and capabilities mean nothing outside */ \
    X(MOUNT_NS, "mount_namespace", 1)                                              \
    X(PID_NS, "pid_namespace", 1)                                                  \
    X(NET_NS, "network_namespace", 1)                                              \
    X(IPC_NS, "ipc_namespace", 1)                                                  \
    X(UTS_NS, "uts_namespace", 1)                                                  \
    X(CGROUP_NS, "cgroup_namespace", 1)                                            \
    X(READ_ONLY_ROOT, "read_only_root", 1)                                         \
    X(OWN_PROC, "private_proc", 1)           /* subset=pid, own processes only */  \
    X(NO_NEW_NS, "no_new_namespaces", 1)     /* user.max_user_namespaces is 0 */   \
    X(NO_CAPS, "no_capabilities", 1)         /* all five sets empty */             \
    X(NO_NEW_PRIVS, "no_new_privileges", 1)                                        \
    X(SECCOMP, "system_call_filter", 1)                                            \
    X(CLOSED_FDS, "closed_descriptors", 1)   /* five pipes, nothing else */        \
    X(RLIMITS, "rlimits", 1)                                                       \
    X(LANDLOCK, "landlock", 0)                                                     \
    X(PRIVATE_UID, "private_uid", 0)         /* no other process has this uid */   \
    X(NO_GROUPS, "no_groups", 0)             /* no supplementary groups */         \
    X(OWN_NAME, "private_host_name", 0)      /* the host name is "box" */          \
    X(OWN_FILES, "private_files", 0)         /* no other box shares an inode of /usr */ \
    X(OWN_IMAGE, "image_not_of_host", 0)     /* no file of the box is one of the host's */ \
    X(MEMORY_CG, "memory_limit", 0)                                                \
    X(PIDS_CG, "pids_limit", 0)                                                    \
    X(CPU_CG, "cpu_limit", 0)

enum box_wall {
#define X(id, name, required) BOX_WALL_##id,
    BOX_WALLS(X)
#undef X
    BOX_WALL_COUNT
};
#define BOX_WALL_BIT(id) (1u << BOX_WALL_##id)
#define BOX_WALLS_ALL ((1u << BOX_WALL_COUNT) - 1)

#endif
