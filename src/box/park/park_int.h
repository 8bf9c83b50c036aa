/* What the files of box/park/park.h share. */
#ifndef BOX_PARK_PARK_INT_H
#define BOX_PARK_PARK_INT_H

#include <stdbool.h>

#include "box/park/park.h"
#include "box/proto/proto.h"

#if INJECT_HERE

#define PARK_GIFTS_MAX (PARK_TASKS_MAX + BOX_CHANNEL)

/* What has reached a copy, under the numbers that it has there. */
struct park_gifts {
    uint64_t page;
    size_t count;
    int fd[PARK_GIFTS_MAX];
};

/* Which descriptors a process has. */
struct park_fds {
    uint64_t bit[PARK_FDS / 64];
};

/* park_proc.c: what the kernel says. Each 0, or -1 with errno. */
int park_list_fds(int proc, pid_t pid, struct park_fds *out) attr_must_use;
/* All of a short file of /proc/PID, as text; E2BIG: as much as there is room for. */
int park_read_proc(int proc, pid_t pid, const char *name, char *text, size_t room) attr_must_use;
int park_read_path(int proc, const char *path, char *text, size_t room) attr_must_use;
/* "PID/fd/N", for "fd/". */
void park_fd_path(char out[INJECT_PROC_PATH], pid_t pid, const char *folder, int fd);
struct park_claim {
    pid_t pid, inside;
    bool parked;              /* else it is about to go on */
    const struct park_fds *fds;
    const struct park_tasks *tasks;
    const int *channel;       /* ours, which it should have in the channel's place; NULL: none */
};
/* Is it what the calls that it made should have made of it? */
int park_confirm(const struct park_session *session, const struct park_claim *claim) attr_must_use;
/* Does its limit of processes leave room for copies of it? */
int park_check_limits(const struct park_session *session, pid_t pid) attr_must_use;

/* park_files.c: note what is open in a stopped copy with a table of its own. 0, or -1. */
int park_note_files(const struct park_session *session, pid_t pid, const struct park_fds *fds,
                    struct park_files *out) attr_must_use;
int park_read_file(const struct park_session *session, pid_t pid, int fd, struct park_file *out)
    attr_must_use;
/* Set it back in a copy of it; *out_lost: what was not. */
enum inject_end park_restore_files(const struct park_session *session, struct inject *copy,
                                   const struct park_files *files, uint32_t *out_lost)
    attr_must_use;

/* park_memory.c: what a stopped copy shares: *out gets bits of BOX_LOST, and BOX_MAPS_FILES. 0, or
 * -1 with errno. */
int park_note_memory(const struct park_session *session, pid_t pid, uint32_t *out) attr_must_use;

/* park_timers.c: of a live process, and to a copy that goes on. */
enum inject_end park_note_timers(const struct park_session *session, struct inject *from,
                                 struct park_timers *out) attr_must_use;
enum inject_end park_restore_timers(struct inject *copy, const struct park_timers *timers,
                                    uint32_t *out_lost) attr_must_use;

/* A process that is not dumpable keeps its /proc files from others of its uid. */
enum inject_end park_set_dumpable(struct inject *at, uint64_t dumpable) attr_must_use;
/* Calls that must succeed: REFUSED with errno where the kernel answers an error. */
enum inject_end park_call(struct inject *at, struct inject_order order, long *out) attr_must_use;
enum inject_end park_call_all(struct inject *at, const struct inject_order *orders, size_t count)
    attr_must_use;

/* A page and a pair of sockets that are the copy's alone; we take one end, and through
 * it send what it shall have. */
enum inject_end park_hand_over(struct inject *copy, int pidfd, const int *fds, size_t count,
                               struct park_gifts *out) attr_must_use;
/* From the gift `first` on they are `tasks`: enter each and close it. */
enum inject_end park_enter_groups(struct inject *copy, const struct park_gifts *gifts,
                                  size_t first) attr_must_use;
enum inject_end park_forget_page(struct inject *copy, const struct park_gifts *gifts) attr_must_use;

#endif
#endif
