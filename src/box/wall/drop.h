/* Dropping privileges permanently: init and the occupant do it before exec. */
#ifndef BOX_WALL_DROP_H
#define BOX_WALL_DROP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Become uid and gid with no capability in any of the five sets and no_new_privs. `groups`: also
 * clear the supplementary groups, where the kernel allows it. Order matters: changing ids needs
 * capabilities, and the bounding set needs CAP_SETPCAP, so the sets go last. 0, or -1 with
 * errno. */
int drop_power(uid_t uid, gid_t gid, bool groups);

/* The same with another saved uid: a session parks its copies under that uid. */
int drop_power_saving(uid_t uid, uid_t saved, gid_t gid, bool groups);

/* For a zygote or a keeper: keep the uid and these capability bits, across exec too. */
int drop_power_but(uint64_t capabilities);

/* Default signal dispositions. */
void drop_signals(void);
/* Empty signal mask, own session, umask 022. */
int drop_inherited_state(void);

struct drop_rlimits {
    uint64_t cpu_s, open_files, processes, file_bytes;
    uint64_t data_bytes; /* 0: no limit; used only where no cgroup limits memory */
    bool piped_core;     /* the host pipes core dumps: a limit of 1 byte stops them, 0 does not */
};
int drop_set_rlimits(const struct drop_rlimits *limits);

#endif
