/* Parking copies a quiet interpreter from outside. The copy stays stopped until the session goes
 * back to that state. The keeper of a session calls these functions; box/park/inject.h says which
 * powers it needs.
 *
 * Invariants:
 * 1. A parked copy runs no instruction until the keeper wakes it. The interpreter that was copied
 *    takes no part in the copying.
 * 2. A parked copy has the uids (H,S,H), is not dumpable from its start, and leads a session of its
 *    own: no process of uid S can signal, trace or read it. Live interpreters have (S,S,H). Where S
 *    and H are one uid, the pid of the copy is in the range that the filter of the box refuses
 *    (box/proto/warden.h).
 * 3. A copy gets descriptors over a socket pair that no other process holds, through memory that no
 *    other process maps. Its channel is closed, so the engine sees the end of the live process. It
 *    shares all other descriptors (stdio) with the live process.
 * 4. A call does all of its work, or it leaves no copy. All parked copies die with the keeper.
 * 5. The keeper reads the uids, session, pid, filters, control groups and descriptors of a copy in
 *    /proc. It does not trust the results of calls that the copy made.
 * 6. A copy is a sibling of the live process (CLONE_PARENT): their parent must wait for it, after
 *    the keeper has. */
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
#define PARK_FDS 1024      /* descriptors of an interpreter are below this number */
#define PARK_FILES_MAX 128 /* whose offsets a state has */
#define PARK_SET_FLAGS (O_APPEND | O_NONBLOCK | O_ASYNC | O_DIRECT | O_NOATIME) /* F_SETFL */

/* Pages that the next cell will certainly write. The keeper makes them private to the live process
 * while it is stopped. Otherwise each one is a page fault during the cell. */
struct park_pages {
    uint64_t count;
    uint64_t at[PARK_PAGES_MAX];
};

/* The constants of a session. */
struct park_session {
    int proc;          /* a procfs of the keeper's pid namespace */
    int channel[BOX_CHANNEL]; /* the interpreter's numbers: it reads requests from one */
    uid_t own, holder; /* S and H in the interpreter's user namespace */
    uid_t seen_own, seen_holder; /* the same in the keeper's /proc */
    int filters;       /* number of system call filters of an interpreter; 0: unknown */
    int copies;        /* maximum at one time: the interpreter's RLIMIT_NPROC must allow them */
    int warden;        /* where S and H are one: the socket with it; -1: none */
    int timeout_ms;    /* for each call: the keeper kills a process that does not answer */
    int settle_ms;     /* the time to wait until a live interpreter is quiet */
    const struct park_pages *pages; /* NULL: unknown */
};

/* Control groups for a copy: open `tasks` files. The kernel checks the uid that opened them. It
 * must be H. */
struct park_tasks {
    size_t count; /* at most PARK_TASKS_MAX; 0: the copy does not move */
    int fd[PARK_TASKS_MAX];
    const char *name; /* of the group in all hierarchies; NULL: not read back */
    const char *controller[PARK_TASKS_MAX];
};

/* Copies share open files with the interpreter. Parking notes their offsets and flags, and waking
 * restores them. */
struct park_files {
    uint32_t lost; /* BOX_LOST_BIT: open files that waking cannot restore */
    uint32_t count;
    struct park_file {
        int64_t offset; /* -1: it has none */
        int32_t fd, flags;
    } at[PARK_FILES_MAX];
};

/* The timers of setitimer: interval and value, each in seconds and microseconds. */
#define PARK_TIMERS 3
struct park_timers {
    uint32_t lost; /* BOX_LOST_BIT: other timers, pending signals */
    struct park_timer {
        uint64_t interval[2], value[2];
    } at[PARK_TIMERS];
};

struct park {
    pid_t pid;        /* in the keeper's pid namespace */
    pid_t inside;     /* in the box's pid namespace */
    int pidfd;        /* readable after its death: then call park_drop */
    int64_t pause_ns; /* how long the original was stopped */
    struct park_files files;
    struct park_timers timers;
};
#define PARK_NONE ((struct park){ .pid = 0, .pidfd = -1 })

/* Copy a live interpreter. At OK, NOT_QUIET, THREADS and REFUSED (errno) it continues unchanged.
 * DIED and LOST describe the interpreter, never the copy. *out changes at OK only. These errors of
 * REFUSED have a special meaning. EPROTO: /proc contradicts the results of the copy's calls.
 * EPROTOTYPE: a filter could fake those results. Waking would fail later, because the process has
 * no room for descriptors (EMFILE, EBADF), memory or mappings (ENOMEM), or processes (EAGAIN). */
enum inject_end park_copy(const struct park_session *session, pid_t live,
                          const struct park_tasks *tasks, struct park *out) attr_must_use;
/* Copy a parked copy in order to wake the new one, which has an ordinary pid. The old one stays
 * parked; if it has died, drop it. */
enum inject_end park_copy_parked(const struct park_session *session, const struct park *from,
                                 const struct park_tasks *tasks, struct park *out) attr_must_use;
/* Make a parked copy the live interpreter: uids (S,S,H), dumpable, with `channel` as its channel
 * (close-on-exec). The caller keeps its own descriptors of the channel. The offsets of open files
 * are restored; *out_lost has BOX_LOST_BIT for those that are not. The copy continues in read().
 * At every end *parked is PARK_NONE. At OK *out_live is the process, which the keeper no longer
 * traces. At other ends the process is dead. Waking needs a mapping and a few descriptors for a
 * moment. Parking needs the same, so a process without room for them is never parked. */
enum inject_end park_wake(const struct park_session *session, struct park *parked,
                          const int channel[BOX_CHANNEL], const struct park_tasks *tasks,
                          pid_t *out_live, uint32_t *out_lost) attr_must_use;
/* BOX_LOST_BIT: parts of a parked copy that a fork cannot have. */
uint32_t park_lost_in_fork(const struct park *parked);
/* The number of system call filters of the caller; 0: the kernel does not report it. */
int park_own_filters(int proc);
/* Let the warden choose the next pids in the box: from the reserved range, or ordinary ones.
 * Nothing happens in a box without a warden. 0, or -1 with errno. */
int park_number_reserved(const struct park_session *session) attr_must_use;
int park_number_ordinary(const struct park_session *session) attr_must_use;
/* Let the warden kill all processes of the box but init and these copies. 0, or -1 with errno. */
int park_sweep(const struct park_session *session, const struct park *parked,
               size_t count) attr_must_use;
/* Kill a parked copy without waiting, because dying takes longer than most calls. Call park_drop
 * when its pidfd reports its death. */
void park_let_die(const struct park *parked);
/* Kill a parked copy, dead or alive, and wait for its end. PARK_NONE is allowed. */
void park_drop(struct park *parked);

#endif
