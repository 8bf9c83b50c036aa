/* The clock of a seeded run: a library that the loader puts before libc in every program of the box
 * (/etc/ld.so.preload, which leads to a plant). Runs in the box, in processes of the user's code
 * and with their rights: it protects nothing and knows no secret.
 *
 * The clock shows
 *     start + slept + waited + rest + 1 microsecond for each look
 * `slept` are the sleeps, and `waited` the timeouts that passed: as the code asked for them, not
 * how long they took. `rest` is the time that the code computes: 0 for the first three seconds,
 * whose true length no two runs share, and then whole true seconds, so that a loop until a certain
 * time ends. Monotonic clocks stay true; deadlines in the shown time are translated for the kernel,
 * which knows the true one alone.
 *
 * All processes of a box share one page in /dev/shm. The code may change or remove it, and then
 * has a different clock. A driver begins a run or cell by writing the page's first words
 * (drivers/PROTOCOL.md); the next look starts the time anew. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/attr.h"

#define SHOWN __attribute__((visibility("default")))
#define PAGE_PATH "/dev/shm/.cupel-clock"
#define START_S INT64_C(1735689600) /* 2025-01-01T00:00:00Z */
#define CELL_S 60 /* from the start of a cell to that of the next, at least */
#define SECOND INT64_C(1000000000)
#define LOOK_NS 1000
/* Sleeps and timeouts are rounded: the caller computed what is left of them a moment before. */
#define SLEEP_STEP_NS 100000
#define WAIT_STEP_NS 10000000
#define GRACE_NS (3 * SECOND)
#define ABSOLUTE_S 1000000000 /* deadlines beyond it are times of day: no host is up so long */

struct page {
    /* Written by drivers. */
    _Atomic int64_t cell; /* a cell that begins; 0: none */
    _Atomic int64_t step_ns; /* 0: WAIT_STEP_NS; node begins timers before it runs the code */
    _Atomic int64_t grace_ns; /* 0: GRACE_NS */
    /* By this library. */
    _Atomic int64_t base_ns; /* monotonic time of its first look; 0: none yet */
    _Atomic int64_t start_s; /* the clock at that time; 0: START_S */
    _Atomic int64_t slept_ns, waited_ns, looks, last_ns;
};

static struct page own; /* where there is no other */
static struct page *page = &own;

/* libc's functions, found at the first use. */
#define REAL(name)                                                                                 \
    static __typeof__(&name) real_##name(void)                                                     \
    {                                                                                              \
        static _Atomic(__typeof__(&name)) found;                                                   \
        if (!found)                                                                                \
            found = (__typeof__(&name))find(#name);                                                \
        return found;                                                                              \
    }

/* Old binaries' pthread_cond_timedwait has the same name; dlsym may prefer it. */
static void *find(const char *name)
{
    void *at = dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");
    return at ? at : dlsym(RTLD_NEXT, name);
}

REAL(clock_gettime)
REAL(clock_nanosleep)
REAL(poll)
REAL(ppoll)
REAL(select)
REAL(pselect)
REAL(epoll_pwait)
REAL(sem_timedwait)
REAL(sem_clockwait)
REAL(pthread_cond_timedwait)
REAL(pthread_cond_clockwait)
REAL(pthread_mutex_timedlock)

static int64_t to_ns(const struct timespec *at)
{
    return at->tv_sec * SECOND + at->tv_nsec;
}

static struct timespec from_ns(int64_t ns)
{
    return (struct timespec){ ns / SECOND, ns % SECOND };
}

static int64_t true_ns(clockid_t clock)
{
    struct timespec now = { 0 };
    real_clock_gettime()(clock, &now);
    return to_ns(&now);
}

__attribute__((constructor)) static void open_page(void)
{
    struct stat st;
    int fd = open(PAGE_PATH, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return;
    /* A page without a block behind it would be a fault at the first look. */
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
        syscall(SYS_fallocate, fd, 0, (off_t)0, (off_t)sizeof *page) == 0) {
        void *at = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (at != MAP_FAILED)
            page = at;
    }
    close(fd);
}

static void raise_to(_Atomic int64_t *value, int64_t least)
{
    int64_t now = *value;
    while (now < least && !atomic_compare_exchange_weak(value, &now, least))
        ;
}

/* Time of the current cell so far, in true nanoseconds. */
static int64_t elapsed_ns(void)
{
    int64_t now = true_ns(CLOCK_MONOTONIC), none = 0;
    int64_t cell = page->cell ? atomic_exchange(&page->cell, 0) : 0;
    if (cell > 0) {
        int64_t start = START_S + (cell - 1) * CELL_S, after = page->last_ns / SECOND + 1;
        page->start_s = cell > 1 && after > start ? after : start;
        page->slept_ns = page->waited_ns = page->looks = 0;
        page->base_ns = now;
    }
    atomic_compare_exchange_strong(&page->base_ns, &none, now);
    return now - page->base_ns;
}

static int64_t round_to(int64_t ns, int64_t step)
{
    return (ns + step / 2) / step * step;
}

static int64_t shown_ns(bool look)
{
    int64_t elapsed = elapsed_ns(), slept = page->slept_ns, waited = page->waited_ns;
    int64_t rest = elapsed - slept - waited, start = page->start_s ? page->start_s : START_S;
    int64_t grace = page->grace_ns > 0 ? page->grace_ns : GRACE_NS;
    int64_t step = page->step_ns > 0 ? page->step_ns : WAIT_STEP_NS;
    int64_t looks = look ? atomic_fetch_add(&page->looks, 1) + 1 : page->looks;
    int64_t shown = start * SECOND + slept + round_to(waited, step) +
                    (rest >= grace ? rest / SECOND * SECOND : 0) + looks * LOOK_NS;
    raise_to(&page->last_ns, shown);
    return shown;
}

static bool is_shown(clockid_t clock)
{
    return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
}

SHOWN int clock_gettime(clockid_t clock, struct timespec *out)
{
    if (!is_shown(clock))
        return real_clock_gettime()(clock, out);
    *out = from_ns(shown_ns(/* look= */ true));
    return 0;
}

/* libc's header says that it never is. */
static bool is_null(const void *volatile at)
{
    return !at;
}

SHOWN int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    struct timespec now = from_ns(shown_ns(/* look= */ true));
    if (zone)
        *(struct timezone *)zone = (struct timezone){ 0 };
    if (!is_null(out))
        *out = (struct timeval){ now.tv_sec, now.tv_nsec / 1000 };
    return 0;
}

SHOWN time_t time(time_t *out)
{
    time_t now = shown_ns(/* look= */ true) / SECOND;
    if (out)
        *out = now;
    return now;
}

SHOWN int timespec_get(struct timespec *out, int base)
{
    if (base != TIME_UTC)
        return 0;
    *out = from_ns(shown_ns(/* look= */ true));
    return base;
}

/* --- sleeps --- */

/* Sleeps and timeouts of several threads pass at the same time: from this mark each. */
static int64_t idle_mark(void)
{
    (void)elapsed_ns(); /* the cell begins at the latest now */
    return page->slept_ns + page->waited_ns;
}

static void pass_idle(_Atomic int64_t *value, int64_t mark, int64_t ns)
{
    int64_t missing = mark + ns - page->slept_ns - page->waited_ns;
    if (missing > 0)
        atomic_fetch_add(value, missing);
}

static int sleep_until(clockid_t clock, int flags, const struct timespec *want,
                       struct timespec *left)
{
    bool absolute = flags & TIMER_ABSTIME;
    int64_t mark = idle_mark();
    int64_t now = !absolute ? 0 : is_shown(clock) ? shown_ns(/* look= */ false) : true_ns(clock);
    int64_t time_ns = to_ns(want) - now;
    struct timespec rest = from_ns(time_ns > 0 ? time_ns : 0);
    int failed = absolute && is_shown(clock)
                     ? real_clock_nanosleep()(CLOCK_MONOTONIC, 0, &rest, NULL)
                     : real_clock_nanosleep()(clock, flags, want, left);
    if (!failed && time_ns > 0)
        pass_idle(&page->slept_ns, mark, round_to(time_ns, SLEEP_STEP_NS));
    return failed;
}

SHOWN int clock_nanosleep(clockid_t clock, int flags, const struct timespec *want,
                          struct timespec *left)
{
    bool strange = want->tv_sec < 0 || want->tv_nsec < 0 || want->tv_nsec >= SECOND;
    return strange ? real_clock_nanosleep()(clock, flags, want, left)
                   : sleep_until(clock, flags, want, left);
}

SHOWN int nanosleep(const struct timespec *want, struct timespec *left)
{
    int failed = clock_nanosleep(CLOCK_REALTIME, 0, want, left);
    errno = failed ? failed : errno;
    return failed ? -1 : 0;
}

SHOWN int usleep(useconds_t us)
{
    return nanosleep(&(struct timespec){ us / 1000000, us % 1000000 * 1000 }, NULL);
}

SHOWN unsigned sleep(unsigned seconds)
{
    struct timespec left = { 0 };
    return nanosleep(&(struct timespec){ seconds, 0 }, &left) < 0 ? (unsigned)left.tv_sec : 0;
}

/* --- timeouts: an answer of 0 means that all of it passed --- */

SHOWN int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    int64_t mark = timeout_ms > 0 ? idle_mark() : 0;
    int ready = real_poll()(fds, count, timeout_ms);
    if (ready == 0 && timeout_ms > 0)
        pass_idle(&page->waited_ns, mark, timeout_ms * SECOND / 1000);
    return ready;
}

SHOWN int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
                const sigset_t *mask)
{
    int64_t ns = timeout ? to_ns(timeout) : 0, mark = ns > 0 ? idle_mark() : 0;
    int ready = real_ppoll()(fds, count, timeout, mask);
    if (ready == 0 && ns > 0)
        pass_idle(&page->waited_ns, mark, ns);
    return ready;
}

SHOWN int select(int count, fd_set *restrict in, fd_set *restrict out, fd_set *restrict odd,
                 struct timeval *restrict timeout)
{
    int64_t ns = timeout ? timeout->tv_sec * SECOND + timeout->tv_usec * 1000 : 0;
    int64_t mark = ns > 0 ? idle_mark() : 0;
    int ready = real_select()(count, in, out, odd, timeout);
    if (ready == 0 && ns > 0)
        pass_idle(&page->waited_ns, mark, ns);
    return ready;
}

SHOWN int pselect(int count, fd_set *restrict in, fd_set *restrict out, fd_set *restrict odd,
                  const struct timespec *restrict timeout, const sigset_t *restrict mask)
{
    int64_t ns = timeout ? to_ns(timeout) : 0, mark = ns > 0 ? idle_mark() : 0;
    int ready = real_pselect()(count, in, out, odd, timeout, mask);
    if (ready == 0 && ns > 0)
        pass_idle(&page->waited_ns, mark, ns);
    return ready;
}

SHOWN int epoll_pwait(int epoll, struct epoll_event *events, int most, int timeout_ms,
                      const sigset_t *mask)
{
    int64_t mark = timeout_ms > 0 ? idle_mark() : 0;
    int ready = real_epoll_pwait()(epoll, events, most, timeout_ms, mask);
    if (ready == 0 && timeout_ms > 0)
        pass_idle(&page->waited_ns, mark, timeout_ms * SECOND / 1000);
    return ready;
}

SHOWN int epoll_wait(int epoll, struct epoll_event *events, int most, int timeout_ms)
{
    return epoll_pwait(epoll, events, most, timeout_ms, NULL);
}

/* --- deadlines --- */

/* The true time of a deadline; monotonic ones are small numbers and stay. */
static struct timespec true_deadline(const struct timespec *until)
{
    if (until->tv_sec < ABSOLUTE_S)
        return *until;
    int64_t ns = to_ns(until) - shown_ns(/* look= */ false) + true_ns(CLOCK_REALTIME);
    return ns > 0 ? from_ns(ns) : (struct timespec){ 0 };
}

/* Python's timeouts of locks, queues and events. */
static void pass_deadline(int64_t mark, int64_t left_ns)
{
    if (left_ns > 0 && errno == ETIMEDOUT)
        pass_idle(&page->slept_ns, mark, round_to(left_ns, SLEEP_STEP_NS));
}

SHOWN int sem_timedwait(sem_t *restrict sem, const struct timespec *restrict until)
{
    struct timespec at = true_deadline(until);
    int64_t mark = idle_mark(), left_ns = to_ns(&at) - true_ns(CLOCK_REALTIME);
    int failed = real_sem_timedwait()(sem, &at);
    if (failed)
        pass_deadline(mark, left_ns);
    return failed;
}

SHOWN int sem_clockwait(sem_t *restrict sem, clockid_t clock, const struct timespec *restrict until)
{
    struct timespec at = true_deadline(until);
    int64_t mark = idle_mark(), left_ns = to_ns(&at) - true_ns(clock);
    int failed = real_sem_clockwait()(sem, clock, &at);
    if (failed)
        pass_deadline(mark, left_ns);
    return failed;
}

SHOWN int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                                 const struct timespec *restrict until)
{
    struct timespec at = true_deadline(until);
    return real_pthread_cond_timedwait()(cond, mutex, &at);
}

SHOWN int pthread_cond_clockwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                                 clockid_t clock, const struct timespec *restrict until)
{
    struct timespec at = true_deadline(until);
    return real_pthread_cond_clockwait()(cond, mutex, clock, &at);
}

SHOWN int pthread_mutex_timedlock(pthread_mutex_t *restrict mutex,
                                  const struct timespec *restrict until)
{
    struct timespec at = true_deadline(until);
    return real_pthread_mutex_timedlock()(mutex, &at);
}
