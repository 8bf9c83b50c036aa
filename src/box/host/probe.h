/* Tries what this kernel allows this user. For `cupel doctor`: every probe runs in its own child
 * and leaves nothing behind. */
#ifndef BOX_HOST_PROBE_H
#define BOX_HOST_PROBE_H

#include <stdbool.h>

/* Steps of raising a box's walls, in order. */
enum box_probe_step {
    BOX_PROBE_USER,    /* a user namespace */
    BOX_PROBE_MAP,     /* its uid map */
    BOX_PROBE_SPACES,  /* mount, pid, network, ipc, uts and cgroup namespaces in it */
    BOX_PROBE_MOUNT,   /* a tmpfs in them */
    BOX_PROBE_OVERLAY, /* an overlay of folders on that tmpfs */
    BOX_PROBE_PROC,    /* a /proc of its own pid namespace */
    BOX_PROBE_DONE,    /* all steps worked */
};

struct box_probe_walls {
    enum box_probe_step step; /* the first failed step, or BOX_PROBE_DONE */
    int error;                /* its errno */
};

/* -1 with errno when no child could be made. */
int box_probe_walls(struct box_probe_walls *out);

struct box_probe_seccomp {
    bool filter;       /* the kernel has SECCOMP_RET_KILL_PROCESS */
    bool notification; /* the kernel has SECCOMP_RET_USER_NOTIF */
};
void box_probe_seccomp(struct box_probe_seccomp *out);

#endif
