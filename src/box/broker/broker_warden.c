/* The warden of a session with one uid: see box/proto/warden.h. A child of the broker in the box's
 * pid namespace and in no other namespace of it, uid 0 of W, with CAP_CHECKPOINT_RESTORE there and
 * nothing else, under policy/warden.policy; one thread, no heap, no stdio.
 *
 * 1. It reads only from the keeper, and the keeper ends with it.
 * 2. Nothing in the box can signal it: its number is in the range from its birth.
 * 3. Ordinary numbers stay below the range except while a copy is made. */
#include "box/broker/broker.h"
#include "box/proto/warden.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/clock.h"
#include "base/io.h"
#include "box/wall/drop.h"
#include "box/wall/filter.h"
#include "box/wall/seccomp.h"

#define FD_SOCK 3
#define FD_LAST 4
#define START_AGAIN_AT 16384 /* ordinary numbers wrap here, to START_AGAIN */
#define START_AGAIN 300      /* the kernel's own wrap point */
#define CHASE_NS INT64_C(200000000)

struct warden {
    pid_t own;
    int most;     /* highest number seen in use */
    int ordinary; /* the newest ordinary number while numbers are reserved; else 0 */
};

/* --- numbers --- */

static int newest(void)
{
    char text[16];
    int number = 0;
    ssize_t len = pread(FD_LAST, text, sizeof text, 0);
    for (ssize_t i = 0; i < len && text[i] >= '0' && text[i] <= '9' && number < 1 << 24; i++)
        number = number * 10 + (text[i] - '0');
    return number;
}

/* The next process gets the next free number. */
static int set_newest(int number)
{
    char digits[16];
    size_t at = sizeof digits;
    for (int rest = number; rest || at == sizeof digits; rest /= 10)
        digits[--at] = (char)('0' + rest % 10);
    ssize_t len = (ssize_t)(sizeof digits - at);
    return pwrite(FD_LAST, digits + at, (size_t)len, 0) == len ? 0 : -1;
}

static int reserve(struct warden *warden)
{
    if (!warden->ordinary) {
        warden->ordinary = newest();
        warden->most = warden->ordinary > warden->most ? warden->ordinary : warden->most;
    }
    return set_newest(WARDEN_FIRST - 1);
}

static int go_back(struct warden *warden)
{
    const int now = newest();
    if (!warden->ordinary)
        warden->most = now > warden->most ? now : warden->most;
    int back = warden->ordinary ? warden->ordinary : now;
    back = back < START_AGAIN_AT ? back : START_AGAIN;
    if (back != now && set_newest(back) < 0)
        return -1;
    warden->ordinary = 0;
    return 0;
}

/* --- sweeping --- */

static void kill_all(const struct warden *warden, const struct warden_order *order, int from,
                     int to)
{
    for (int number = from < 2 ? 2 : from; number <= to; number++) {
        bool stays = number == warden->own;
        for (uint32_t i = 0; i < order->count; i++)
            stays |= order->stays[i] == number;
        if (!stays)
            kill(number, SIGKILL);
    }
}

/* Kills by number, from the lowest: a child born before its parent was killed has a higher number,
 * and a killed process has no more children. Then it chases new processes until there are none. If
 * numbers wrapped unseen, the broker finds the rest. */
static int sweep(const struct warden *warden, const struct warden_order *order)
{
    const int64_t until = clock_now_ns() + CHASE_NS;
    int last = newest();
    int to = last > warden->most ? last : warden->most;
    kill_all(warden, order, 2, to);
    if (to < WARDEN_LAST)
        kill_all(warden, order, to < WARDEN_FIRST ? WARDEN_FIRST - 1 : to, WARDEN_LAST);
    for (int now; (now = newest()) != last && clock_now_ns() < until; last = now)
        kill_all(warden, order, now > last ? last : 2, now);
    return 0;
}

/* --- setup --- */

/* Keep only stdio, which leads to /dev/null, and these two. */
static int settle_fds(int sock)
{
    int fds[] = { sock, open("/proc/sys/kernel/ns_last_pid", O_RDWR | O_CLOEXEC) };
    if (fds[1] < 0 || io_place(fds, array_len(fds), FD_SOCK, /* inherited= */ 0) < 0)
        return -1;
    return io_close_from(FD_LAST + 1);
}

static int become(struct warden *out, int sock)
{
    prctl(PR_SET_NAME, "cupel-warden");
    drop_signals();
    setsid();
    if (settle_fds(sock) < 0 || drop_power_but(UINT64_C(1) << CAP_CHECKPOINT_RESTORE) < 0 ||
        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return -1;
    *out = (struct warden){ .own = getpid() };
    return seccomp_raise(box_filter_warden, SECCOMP_FILTER_FLAG_SPEC_ALLOW);
}

static int obey(struct warden *warden, const struct warden_order *order)
{
    if (order->op == WARDEN_RESERVED)
        return reserve(warden);
    return order->op == WARDEN_ORDINARY ? go_back(warden) : sweep(warden, order);
}

void warden_run(int sock)
{
    struct warden warden;
    struct warden_order order;
    size_t none = 0;
    if (become(&warden, sock) < 0)
        _exit(70);
    while (io_recv(FD_SOCK, &order, sizeof order, NULL, 0, &none) == 1 &&
           order.op >= WARDEN_RESERVED && order.op <= WARDEN_SWEEP &&
           order.count <= array_len(order.stays)) {
        struct warden_answer answer = { .error = obey(&warden, &order) < 0 ? errno : 0 };
        if (io_send(FD_SOCK, &answer, sizeof answer, NULL, 0) < 0)
            break;
    }
    go_back(&warden);
    _exit(0);
}

/* --- the broker's side --- */

static long clone_as(int number)
{
    pid_t wanted = number;
    struct clone_args args = { .exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)&wanted,
                               .set_tid_size = 1 };
    return syscall(SYS_clone3, &args, sizeof args);
}

long broker_warden_start(const struct broker *broker, const struct broker_box *box, int sock)
{
    long pid = -1;
    if (setns(box->ns[POSTURE_NS_PID], CLONE_NEWPID) < 0)
        return -1;
    errno = EEXIST;
    for (int number = WARDEN_FIRST; pid < 0 && errno == EEXIST && number <= WARDEN_LAST; number++)
        pid = clone_as(number);
    if (pid == 0)
        warden_run(sock);
    int saved = errno;
    if (setns(broker->own_pid_ns, CLONE_NEWPID) < 0)
        _exit(72);
    errno = saved;
    return pid;
}
