/* Declarations that the files of box/park and box/fork share. */
#ifndef BOX_PARK_PARK_INT_H
#define BOX_PARK_PARK_INT_H

#include <stdbool.h>

#include "box/park/park.h"
#include "box/proto/proto.h"

#if INJECT_HERE

#define PARK_GIFTS_MAX (PARK_TASKS_MAX + BOX_CHANNEL)

/* The descriptors that a copy received, with their numbers there. */
struct park_gifts {
    uint64_t page;
    size_t count;
    int fd[PARK_GIFTS_MAX];
};

/* The descriptors of a process. */
struct park_fds {
    uint64_t bit[PARK_FDS / 64];
};

/* park_proc.c: reads /proc. Each returns 0, or -1 with errno. */
int park_list_fds(int proc, pid_t pid, struct park_fds *out) attr_must_use;
/* Read a file of /proc/PID as text. E2BIG: the text is cut at `room`. */
int park_read_proc(int proc, pid_t pid, const char *name, char *text, size_t room) attr_must_use;
int park_read_path(int proc, const char *path, char *text, size_t room) attr_must_use;
/* "PID/fd/N", for "fd/". */
void park_fd_path(char out[INJECT_PROC_PATH], pid_t pid, const char *folder, int fd);
struct park_claim {
    pid_t pid, inside;
    bool parked;              /* false: it is about to continue */
    const struct park_fds *fds;
    const struct park_tasks *tasks;
    const int *channel;       /* our descriptors of its channel; NULL: it has none */
};
/* Whether /proc shows the state that our calls should have made. */
int park_confirm(const struct park_session *session, const struct park_claim *claim) attr_must_use;
/* Whether its RLIMIT_NPROC leaves room for copies. */
int park_check_limits(const struct park_session *session, pid_t pid) attr_must_use;

/* park_files.c: note the open files of a stopped copy that has its own descriptor table. */
int park_note_files(const struct park_session *session, pid_t pid, const struct park_fds *fds,
                    struct park_files *out) attr_must_use;
int park_read_file(const struct park_session *session, pid_t pid, int fd,
                   struct park_file *out) attr_must_use;
/* Restore them in a copy; *out_lost has BOX_LOST_BIT for those that are not. */
enum inject_end park_restore_files(const struct park_session *session, struct inject *copy,
                                   const struct park_files *files,
                                   uint32_t *out_lost) attr_must_use;

/* park_memory.c: find the shared memory of a stopped copy. *out gets BOX_LOST_BIT and
 * BOX_MAPS_FILES. 0, or -1 with errno. */
int park_note_memory(const struct park_session *session, pid_t pid, uint32_t *out) attr_must_use;

/* park_timers.c: read the timers of a live process, and set them in a copy. */
enum inject_end park_note_timers(const struct park_session *session, struct inject *from,
                                 struct park_timers *out) attr_must_use;
enum inject_end park_restore_timers(struct inject *copy, const struct park_timers *timers,
                                    uint32_t *out_lost) attr_must_use;

/* Other processes of its uid cannot open the /proc files of a process that is not dumpable. */
enum inject_end park_set_dumpable(struct inject *at, uint64_t dumpable) attr_must_use;
/* Calls that must succeed: an error of the kernel is REFUSED with errno. */
enum inject_end park_call(struct inject *at, struct inject_order order, long *out) attr_must_use;
enum inject_end park_call_all(struct inject *at, const struct inject_order *orders,
                              size_t count) attr_must_use;

/* Make the copy map a page and open a socket pair. We take one end and send it descriptors. */
enum inject_end park_hand_over(struct inject *copy, int pidfd, const int *fds, size_t count,
                               struct park_gifts *out) attr_must_use;
/* The descriptors from `first` on are `tasks` files: enter each group and close the file. */
enum inject_end park_enter_groups(struct inject *copy, const struct park_gifts *gifts,
                                  size_t first) attr_must_use;
enum inject_end park_forget_page(struct inject *copy, const struct park_gifts *gifts) attr_must_use;

#endif
#endif
