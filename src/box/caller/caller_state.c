/* The state that the calling programs of a box share. Runs in the box, as the user's code.
 *
 * The parts of the reader (`now`, `next`, `part`) change only under CALLER_READS, and each change
 * is written to `next` first: the reader after one that was killed does it again. `number` and new
 * entries of `open` change under CALLER_WRITES. */
#include "box/caller/caller_state.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/own.h"

#define SLEEP_NS 50000000 /* at most: a reader that was killed wakes nobody */

int caller_open(struct caller *caller)
{
    struct stat st;
    own_fd fd = open(CALLER_STATE, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return -caller_fail(CALLER_ERROR, NULL, CALLER_STATE " cannot be used");
    /* A page that the disk has no room for would be a SIGBUS at its first use. */
    if (posix_fallocate(fd, 0, sizeof(struct caller_state)) != 0)
        return -caller_fail(CALLER_ERROR, NULL, "no room for calls: the box's disk is full");
    void *at = mmap(NULL, sizeof(struct caller_state), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        return -caller_fail(CALLER_ERROR, NULL, CALLER_STATE " cannot be used");
    caller->state = at;
    caller->state_fd = take_fd(&fd);
    return 0;
}

/* Locks of the kernel, by process: its end releases them. */
static int lock_op(const struct caller *caller, int64_t which, short type, int op)
{
    struct flock lock = { .l_type = type, .l_whence = SEEK_SET, .l_start = which, .l_len = 1 };
    int rc;
    do
        rc = fcntl(caller->state_fd, op, &lock);
    while (rc < 0 && errno == EINTR && op == F_SETLKW);
    return op == F_GETLK && rc == 0 ? lock.l_type != F_UNLCK : rc;
}

bool caller_lock(const struct caller *caller, int64_t which, bool wait)
{
    return lock_op(caller, which, F_WRLCK, wait ? F_SETLKW : F_SETLK) == 0;
}

void caller_unlock(const struct caller *caller, int64_t which)
{
    lock_op(caller, which, F_UNLCK, F_SETLK);
}

bool caller_is_locked(const struct caller *caller, int64_t which)
{
    return lock_op(caller, which, F_WRLCK, F_GETLK) > 0;
}

static bool is_own(const struct caller *caller)
{
    return strncmp(caller->state->nonce, caller->tools.nonce, CALLER_NONCE_ROOM) == 0;
}

bool caller_may_call(const struct caller *caller)
{
    return is_own(caller) && !caller->state->ending && !caller->state->over;
}

bool caller_is_over(const struct caller *caller)
{
    return !is_own(caller) || caller->state->over;
}

void caller_renew(struct caller *caller)
{
    struct caller_tools now;
    struct caller_state *state = caller->state;
    if (is_own(caller) || caller_read_tools(&now) < 0 ||
        strcmp(now.nonce, caller->tools.nonce) != 0)
        return; /* or it is an old program, and the cell a new one */
    caller_lock(caller, CALLER_READS, /* wait= */ true);
    memset((char *)state + CALLER_NONCE_ROOM, 0, sizeof *state - CALLER_NONCE_ROOM);
    memcpy(state->nonce, caller->tools.nonce, CALLER_NONCE_ROOM);
    caller_unlock(caller, CALLER_READS);
}

void caller_begin_end(struct caller *caller)
{
    caller->state->ending = true;
}

void caller_set_over(struct caller *caller)
{
    caller->state->over = true;
}

/* --- calls that wait --- */

bool caller_enter(struct caller *caller)
{
    struct caller_state *state = caller->state;
    char path[CALLER_PATH_ROOM];
    size_t i = 0;
    while (i < CALLER_OPEN_MAX && state->open[i])
        i++;
    if (i == CALLER_OPEN_MAX || state->number == INT32_MAX)
        return false;
    caller->number = ++state->number;
    for (int whole = 0; whole < 2; whole++) { /* of an earlier cell */
        caller_answer_path(caller->number, whole, path);
        unlink(path);
    }
    caller_lock(caller, CALLER_CALLS + (int64_t)caller->number, /* wait= */ true);
    state->open[i] = caller->number;
    return true;
}

int32_t caller_dead(const struct caller *caller)
{
    struct caller_state *state = caller->state;
    for (size_t i = 0; i < CALLER_OPEN_MAX; i++) {
        int32_t number = state->open[i];
        if (number == 0 || number == caller->number ||
            caller_is_locked(caller, CALLER_CALLS + (int64_t)number))
            continue;
        state->open[i] = 0;
        return number;
    }
    return 0;
}

void caller_answer_path(int32_t number, bool whole, char out[CALLER_PATH_ROOM])
{
    snprintf(out, CALLER_PATH_ROOM, CALLER_ANSWER "%d%s", number, whole ? "" : ".part");
}

/* --- waiting for one another --- */

uint32_t caller_turn(const struct caller *caller)
{
    return caller->state->turn;
}

void caller_sleep(const struct caller *caller, uint32_t turn)
{
    const struct timespec most = { .tv_nsec = SLEEP_NS };
    syscall(SYS_futex, &caller->state->turn, FUTEX_WAIT, turn, &most, NULL, 0);
}

void caller_wake(const struct caller *caller)
{
    caller->state->turn++;
    syscall(SYS_futex, &caller->state->turn, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
