/* Giving up power, for good: what init and the occupant both do before exec. */
#ifndef BOX_WALL_DROP_H
#define BOX_WALL_DROP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Become uid and gid with no supplementary groups (where the kernel lets us
 * clear them: `groups`), no capability in any of the five sets, and
 * no_new_privs. Order matters: ids need capabilities, the bounding set needs
 * CAP_SETPCAP, so the sets go last. 0, or -1 with errno. */
int drop_power(uid_t uid, gid_t gid, bool groups);

/* The same with another saved uid: for a session, whose copies are parked under it. */
int drop_power_saving(uid_t uid, uid_t saved, gid_t gid, bool groups);

/* For a zygote or a keeper: keep these capabilities (bits), across exec too, as the uid that we
 * are. */
int drop_power_but(uint64_t capabilities);

/* Default signal dispositions. */
void drop_signals(void);
/* Empty signal mask, own session, umask 022. */
int drop_inherited_state(void);

struct drop_rlimits {
    uint64_t cpu_s, open_files, processes, file_bytes;
    uint64_t data_bytes; /* 0: no limit; only where no cgroup holds the memory */
    bool piped_core;     /* the host pipes cores: 1 byte, not 0, stops that too */
};
int drop_set_rlimits(const struct drop_rlimits *limits);

#endif
