/* Parking: a quiet interpreter is copied from outside, and the copy is kept, stopped,
 * until it is needed as the state before. The keeper of a session calls these; what it
 * must be is said in box/park/inject.h.
 *
 * What others rely on:
 * 1. A parked copy has never run an instruction of its own and does not until it is
 *    woken. The interpreter that it was copied from has no part in any of this.
 * 2. Parked, it has the uids (H,S,H), is not dumpable from its birth on, and leads a
 *    session of its own: nothing of uid S can signal, trace or read it. Live
 *    interpreters are (S,S,H). Where S and H are one, its number in the box's pid
 *    namespace is from the range that the box's filter refuses (box/proto/warden.h).
 * 3. Descriptors go to a copy over a socket pair that nobody else holds, through memory
 *    that nobody else maps. A parked copy has its channel closed, so that the live process's
 *    end is seen as its end; other descriptors (stdio) it shares.
 * 4. A call either does all of it or leaves no copy behind. If the keeper dies, so do
 *    all parked copies.
 * 5. No answer of a call that a copy made is believed where it matters: its uids, session,
 *    number, filters, control groups and descriptors are read back from /proc.
 * 6. A copy is the live process's sibling (CLONE_PARENT): its parent must take its end,
 *    after the keeper has. */
#ifndef BOX_PARK_PARK_H
#define BOX_PARK_PARK_H

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attr.h"
#include "box/park/inject.h"
#include "box/proto/proto.h"

#define PARK_TASKS_MAX 12
#define PARK_PAGES_MAX 384
#define PARK_FDS 1024      /* an interpreter has no descriptor of this number or above */
#define PARK_FILES_MAX 128 /* of which the place is known in each state */
#define PARK_SET_FLAGS (O_APPEND | O_NONBLOCK | O_ASYNC | O_DIRECT | O_NOATIME) /* by F_SETFL */

/* Pages that the next cell will surely write: they are made the live process's own while it
 * stands still, because each is a fault on the path of a cell otherwise. */
struct park_pages {
    uint64_t count;
    uint64_t at[PARK_PAGES_MAX];
};

/* What stays the same in a session. */
struct park_session {
    int proc;          /* a procfs that knows the pids, of the keeper's pid namespace */
    int channel[BOX_CHANNEL]; /* the interpreter's: it waits in read on that for requests */
    uid_t own, holder; /* S and H, as the interpreter's user namespace numbers them */
    uid_t seen_own, seen_holder; /* the same, as our /proc shows them */
    int filters;       /* how many system call filters an interpreter has; 0: not known */
    int copies;        /* of one interpreter at once: its limit of processes must allow them */
    int warden;        /* where S and H are one: the socket with it; -1: none */
    int timeout_ms;    /* for each call: what does not answer by then is killed */
    int settle_ms;     /* how long a live interpreter may take to become quiet */
    const struct park_pages *pages; /* NULL: none are known */
};

/* Control groups to move into: open `tasks` files, which check the uid of their opener.
 * It must be H. */
struct park_tasks {
    size_t count; /* at most PARK_TASKS_MAX; 0: it stays where it is */
    int fd[PARK_TASKS_MAX];
    const char *name; /* of the group, in all of these hierarchies; NULL: is not read back */
    const char *controller[PARK_TASKS_MAX];
};

/* Copies share open files with the interpreter: where these stand, and their flags, is noted
 * when it is copied, and set back when a copy is woken. */
struct park_files {
    uint32_t lost; /* bits of BOX_LOST: what it had open and cannot be set back */
    uint32_t count;
    struct park_file {
        int64_t offset; /* -1: it has none */
        int32_t fd, flags;
    } at[PARK_FILES_MAX];
};

/* What setitimer has set: interval and value, each in seconds and microseconds. */
#define PARK_TIMERS 3
struct park_timers {
    uint32_t lost; /* bits of BOX_LOST: timers of another kind, signals that wait */
    struct park_timer {
        uint64_t interval[2], value[2];
    } at[PARK_TIMERS];
};

struct park {
    pid_t pid;        /* in the keeper's pid namespace */
    pid_t inside;     /* in its own */
    int pidfd;        /* readable once it has died: then park_drop */
    int64_t pause_ns; /* how long what it was copied from stood still */
    struct park_files files;
    struct park_timers timers;
};
#define PARK_NONE ((struct park){ .pid = 0, .pidfd = -1 })

/* Copy a live interpreter. At OK, NOT_QUIET, THREADS and REFUSED (errno) it goes on as
 * if nothing had happened; DIED and LOST are said of it, and never of the copy. *out is
 * untouched but at OK. REFUSED with these says that a copy was made and is not what the calls
 * answered (EPROTO), that it has a filter which could fake them (EPROTOTYPE), or that it could
 * not be woken later: no room for descriptors (EMFILE, EBADF), for memory or mappings (ENOMEM),
 * for processes (EAGAIN). */
enum inject_end park_copy(const struct park_session *session, pid_t live,
                          const struct park_tasks *tasks, struct park *out) attr_must_use;
/* Copy a parked copy, which stays as it is, in order to wake the new one: its number is an
 * ordinary one. Should the old one have died, drop it. */
enum inject_end park_copy_parked(const struct park_session *session, const struct park *from,
                                 const struct park_tasks *tasks, struct park *out) attr_must_use;
/* Make a parked copy the live interpreter: uids (S,S,H), dumpable, `channel` (which stays the
 * caller's too) in the place of its own, with close-on-exec. Its open files stand where they
 * stood; *out_lost has the bits of BOX_LOST that do not. It goes on in read there. At any end
 * *parked is PARK_NONE; at OK *out_live is the process, no longer the keeper's; else it is dead.
 * It takes a mapping and a few descriptors for a moment: parking does the same, so that one
 * which has no room for it is not kept. */
enum inject_end park_wake(const struct park_session *session, struct park *parked,
                          const int channel[BOX_CHANNEL], const struct park_tasks *tasks,
                          pid_t *out_live, uint32_t *out_lost) attr_must_use;
/* What of a parked copy another process cannot have: bits of BOX_LOST. */
uint32_t park_lost_in_fork(const struct park *parked);
/* How many system call filters the caller has; 0: the kernel does not say. */
int park_own_filters(int proc);
/* Choose the numbers of processes in the box, by its warden: of the range, or ordinary.
 * Nothing where there is none. 0, or -1 with errno. */
int park_number_reserved(const struct park_session *session) attr_must_use;
int park_number_ordinary(const struct park_session *session) attr_must_use;
/* Kill all of the box but init and these copies, by its warden. 0, or -1 with errno. */
int park_sweep(const struct park_session *session, const struct park *parked, size_t count)
    attr_must_use;
/* Kill a parked copy, which is to be dropped once its pidfd says that it has died: to die takes
 * longer than most calls. */
void park_let_die(const struct park *parked);
/* Kill a parked copy, dead or alive, and take its end. Nothing if PARK_NONE. */
void park_drop(struct park *parked);

#endif
