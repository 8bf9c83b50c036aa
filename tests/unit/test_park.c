/* Parked copies of a real python3, as they are meant, and what is refused. The test is
 * the tracer too. Figures are reported, never judged. */
#include "box/park/park.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "check.h"
#include "park_target.h"

#if INJECT_HERE

TEST(park_a_copy_is_the_state_before)
{
    if (!may_run())
        return;
    struct python live = start(false);
    char ids[64], before[64], after[64];
    snprintf(ids, sizeof ids, "%s", ask(live.sock, "os.getresuid(), os.getppid()"));
    list_fds(live.sock, before);
    struct park parked = copy_of(&live);
    CHECK_TEXT(ask(live.sock, "x = 2"), "None");
    CHECK_TEXT(ask(live.sock, "x"), "2");
    struct python old = live;
    kill(live.pid, SIGKILL);
    CHECK_TEXT(ask(live.sock, ""), ""); /* its end is seen, whoever is parked */
    stop(&old);
    live = wake(&parked, &stay);
    CHECK(live.pid != old.pid);
    CHECK_TEXT(ask(live.sock, "x"), "1");
    CHECK_TEXT(ask(live.sock, "os.getresuid(), os.getppid()"), ids);
    CHECK_TEXT(list_fds(live.sock, after), before);
    CHECK_TEXT(ask(live.sock, "os.getsid(0) == os.getpid() == threading.get_native_id()"), "True");
    CHECK_TEXT(ask(live.sock, "os.get_inheritable(9)"), "False");
    CHECK_TEXT(ask(live.sock, "signal.pthread_sigmask(signal.SIG_BLOCK, [])"), "set()");
    CHECK_TEXT(ask(live.sock, "subprocess.check_output(['echo', 'hi'])"), "b'hi\\n'");
    stop(&live);
    check_nothing_left();
}

TEST(park_the_old_channel_is_not_heard_and_does_not_matter)
{
    if (!may_run())
        return;
    struct python live = start(false);
    struct park parked = copy_of(&live);
    struct python woken = wake(&parked, &stay); /* beside the live one */
    CHECK_TEXT(ask(live.sock, "x = 'old'"), "None");
    CHECK_TEXT(ask(live.sock, "box.shutdown(2) or os._exit(0)"), "");
    CHECK_TEXT(ask(woken.sock, "x"), "1");
    stop(&live);
    stop(&woken);
    check_nothing_left();
}

TEST(park_copies_of_copies_keep_the_state)
{
    if (!may_run())
        return;
    struct python live = start(false);
    CHECK_TEXT(ask(live.sock, "x = 10"), "None");
    struct park first = copy_of(&live), second = PARK_NONE, third = PARK_NONE;
    CHECK_INT(park_copy_parked(&session, &first, &stay, &second), INJECT_OK);
    CHECK_INT(park_copy_parked(&session, &second, &stay, &third), INJECT_OK);
    struct python a = wake(&second, &stay), b = wake(&first, &stay);
    CHECK_TEXT(ask(a.sock, "x = x + 1"), "None");
    CHECK_TEXT(ask(a.sock, "x"), "11");
    CHECK_TEXT(ask(b.sock, "x"), "10");
    struct park again = copy_of(&a); /* what was woken is parked like any other */
    park_drop(&third);
    stop(&a);
    a = wake(&again, &stay);
    CHECK_TEXT(ask(a.sock, "x"), "11");
    stop(&a);
    stop(&b);
    CHECK_TEXT(ask(live.sock, "x"), "10");
    stop(&live);
    check_nothing_left();
}

static int open_fds(void)
{
    int count = 0;
    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static int by_size(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static double median_us(int64_t *ns, size_t count)
{
    qsort(ns, count, sizeof *ns, by_size);
    return (double)ns[count / 2] / 1e3;
}

static void report_rounds(const char *what, struct python *live, int rounds)
{
    int64_t copy_ns[300], pause_ns[300], drop_ns[300];
    for (int i = 0; i < rounds; i++) {
        int64_t from = clock_now_ns();
        struct park parked = copy_of(live);
        copy_ns[i] = clock_now_ns() - from;
        pause_ns[i] = parked.pause_ns;
        from = clock_now_ns();
        park_drop(&parked);
        drop_ns[i] = clock_now_ns() - from;
    }
    const size_t part = (size_t)rounds / 6;
    printf("# %s: copy %.0f us (first %.0f, last %.0f), pause %.0f us, drop %.0f us\n", what,
           median_us(copy_ns + part, part * 4), median_us(copy_ns, part),
           median_us(copy_ns + (size_t)rounds - part, part), median_us(pause_ns, (size_t)rounds),
           median_us(drop_ns, (size_t)rounds));
}

TEST(park_300_rounds_leave_nothing)
{
    if (!may_run())
        return;
    struct python live = start(false);
    char before[64], after[64];
    list_fds(live.sock, before);
    const int ours = open_fds();
    report_rounds("no data", &live, 300);
    CHECK_INT(open_fds(), ours);
    CHECK_TEXT(list_fds(live.sock, after), before);
    CHECK_TEXT(ask(live.sock, "x"), "1");
    stop(&live);
    check_nothing_left();
}

TEST(park_a_large_array)
{
    if (!may_run())
        return;
    struct python live = start(false);
    if (strcmp(ask(live.sock, "os.environ.update(OPENBLAS_NUM_THREADS='1') or "
                              "__import__('numpy').ones(13107200, 'f8').sum()"),
               "13107200.0")) {
        printf("# skipped: no numpy\n");
    } else {
        CHECK_TEXT(ask(live.sock, "import numpy; data = numpy.ones(13107200)"), "None");
        report_rounds("100 MB numpy", &live, 30);
        struct park parked = copy_of(&live);
        CHECK_TEXT(ask(live.sock, "data *= 2"), "None");
        int64_t from = clock_now_ns();
        struct python old = wake(&parked, &stay);
        int64_t woken = clock_now_ns();
        CHECK_TEXT(ask(old.sock, "data.sum()"), "13107200.0");
        printf("# 100 MB numpy: wake %.0f us, first answer %.0f us after\n",
               (double)(woken - from) / 1e3, (double)(clock_now_ns() - woken) / 1e3);
        stop(&old);
    }
    stop(&live);
    check_nothing_left();
}

/* --- refusals --- */

/* Each says "on", and goes on until SIGUSR1. */
TEST(park_refuses_what_is_not_quiet_and_does_not_disturb_it)
{
    static const char *const busy[] = {
        "box.send(b'on'); os.read(p[1].fileno(), 1)", /* but no request */
        "box.send(b'on')\nwhile not done: pass",
        "box.send(b'on')\nwhile not done: time.sleep(0.1)",
    };
    if (!may_run())
        return;
    session.settle_ms = 0;
    struct python live = start(false);
    struct park made = PARK_NONE;
    /* The handler in C writes to p: Python's own may not run while a read that began after the
     * signal waits. */
    CHECK_TEXT(ask(live.sock, "done, p = [], socket.socketpair(); p[0].setblocking(False); "
                              "signal.set_wakeup_fd(p[0].fileno()); "
                              "signal.signal(signal.SIGUSR1, lambda *a: done.append(1))"),
               "None");
    for (size_t i = 0; i < array_len(busy); i++) {
        CHECK_TEXT(ask(live.sock, "done.clear()"), "None");
        CHECK_TEXT(ask(live.sock, busy[i]), "on");
        usleep(20000); /* it may have come to sleep by then: another refusal inside */
        CHECK_TEXT(inject_end_name(park_copy(&session, live.pid, &stay, &made)), "not quiet");
        kill(live.pid, SIGUSR1);
        CHECK_TEXT(ask(live.sock, ""), "None");
    }
    session.channel[BOX_REQUESTS] = 5; /* it waits, but on another descriptor */
    CHECK_TEXT(inject_end_name(park_copy(&session, live.pid, &stay, &made)), "not quiet");
    session.channel[BOX_REQUESTS] = REQUESTS;
    session.settle_ms = 20000;
    CHECK_TEXT(ask(live.sock, "e = threading.Event(); t = threading.Thread(target=e.wait); "
                              "t.start()"),
               "None");
    CHECK_TEXT(inject_end_name(park_copy(&session, live.pid, &stay, &made)), "has threads");
    CHECK_INT(made.pid, 0);
    /* Joined, a thread is not yet gone. */
    CHECK_TEXT(ask(live.sock, "e.set(); t.join()\nwhile len(os.listdir('/proc/self/task')) > 1: "
                              "time.sleep(0.01)"),
               "None");
    made = copy_of(&live);
    park_drop(&made);
    stop(&live);
    check_nothing_left();
}

TEST(park_of_the_dead_says_so)
{
    if (!may_run())
        return;
    struct python live = start(false);
    struct park parked = copy_of(&live), other = PARK_NONE, third = copy_of(&live);
    kill(live.pid, SIGKILL);
    siginfo_t info;
    CHECK_INT(waitid(P_PID, (id_t)live.pid, &info, WEXITED | WNOWAIT), 0);
    CHECK_INT(park_copy(&session, live.pid, &stay, &other), INJECT_DIED);
    stop(&live);
    CHECK_INT(park_copy(&session, live.pid, &stay, &other), INJECT_DIED);
    kill(parked.pid, SIGKILL);
    struct pollfd end = { .fd = parked.pidfd, .events = POLLIN };
    CHECK_INT(poll(&end, 1, 5000), 1);
    CHECK_INT(park_copy_parked(&session, &parked, &stay, &other), INJECT_DIED);
    park_drop(&parked);
    kill(third.pid, SIGKILL);
    CHECK_INT(park_wake(&session, &third, (int[]){ 0, 0 }, &stay, &live.pid, &woken_lost),
              INJECT_DIED);
    CHECK(other.pid == 0 && third.pid == 0);
    check_nothing_left();
}

TEST(park_a_target_killed_at_any_moment_leaves_no_copy)
{
    if (!may_run())
        return;
    int died = 0;
    for (int i = 0; i < 40; i++) {
        struct python live = start(false);
        pid_t killer = fork();
        if (killer == 0) {
            usleep((useconds_t)(100 + i * 20));
            kill(live.pid, SIGKILL);
            _exit(0);
        }
        struct park parked = PARK_NONE;
        enum inject_end end = park_copy(&session, live.pid, &stay, &parked);
        CHECK(end == INJECT_OK || end == INJECT_DIED);
        died += end == INJECT_DIED;
        park_drop(&parked);
        CHECK_INT(waitpid(killer, NULL, 0), killer);
        close(live.sock);
        waitpid(live.pid, NULL, 0); /* the tracer may have taken its end: the same process here */
        check_nothing_left();
    }
    printf("# killed while it was being copied: %d of 40\n", died);
}

TEST(park_what_does_not_answer_in_time_is_killed)
{
    if (!may_run())
        return;
    struct python live = start(false);
    const struct inject_target target = { .pid = live.pid, .proc = session.proc,
                                          .requests = REQUESTS,
                                          .timeout_ms = 100, .settle_ms = 2000 };
    const struct inject_order for_ever = { SYS_pause, { 0 } };
    struct inject at;
    long result = 0;
    CHECK_INT(inject_attach(&target, &at), INJECT_OK);
    CHECK_INT(inject_call(&at, &for_ever, &result), INJECT_LOST);
    CHECK_TEXT(ask(live.sock, ""), "");
    close(live.sock);
    check_nothing_left();
}

/* --- signals --- */

TEST(park_no_signal_is_lost)
{
    if (!may_run())
        return;
    struct python live = start(false);
    const struct inject_target target = { .pid = live.pid, .proc = session.proc,
                                          .requests = REQUESTS,
                                          .timeout_ms = 5000, .settle_ms = 2000 };
    const struct inject_order order = { SYS_getppid, { 0 } };
    struct inject at;
    long result = 0;
    CHECK_INT(inject_attach(&target, &at), INJECT_OK);
    kill(live.pid, SIGINT);
    CHECK_INT(inject_call(&at, &order, &result), INJECT_OK);
    CHECK_INT(result, getpid());
    CHECK_INT(inject_let_go(&at), INJECT_OK);
    CHECK_TEXT(ask(live.sock, ""), "interrupted");
    /* A stop cannot be put off: it ends the attempt, and is obeyed. */
    CHECK_INT(inject_attach(&target, &at), INJECT_OK);
    kill(live.pid, SIGSTOP);
    CHECK_INT(inject_call(&at, &order, &result), INJECT_NOT_QUIET);
    CHECK_INT(inject_let_go(&at), INJECT_OK);
    int status = 0;
    CHECK_INT(waitpid(live.pid, &status, WUNTRACED), live.pid);
    CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
    kill(live.pid, SIGCONT);
    /* One that comes between two calls, with SIGCONT. */
    CHECK_INT(inject_attach(&target, &at), INJECT_OK);
    kill(live.pid, SIGCONT);
    CHECK_INT(inject_call(&at, &order, &result), INJECT_OK);
    CHECK_INT(inject_let_go(&at), INJECT_OK);
    CHECK_TEXT(ask(live.sock, "x"), "1");
    CHECK_TEXT(ask(live.sock, "signal.signal(signal.SIGTRAP, lambda *a: 0)"), "0");
    struct park parked = copy_of(&live);
    park_drop(&parked);
    CHECK_TEXT(ask(live.sock, "signal.raise_signal(signal.SIGTRAP)"), "None");
    CHECK_TEXT(ask(live.sock, "x"), "1");
    /* The very signal that ends our own steps. */
    CHECK_TEXT(ask(live.sock, "trapped = []; n = signal.signal(signal.SIGTRAP, "
                              "lambda *a: trapped.append(1))"),
               "None");
    CHECK_INT(inject_attach(&target, &at), INJECT_OK);
    kill(live.pid, SIGTRAP);
    CHECK_INT(inject_call(&at, &order, &result), INJECT_NOT_QUIET);
    CHECK_INT(inject_let_go(&at), INJECT_OK);
    CHECK_TEXT(ask(live.sock, "trapped"), "[1]");
    CHECK_INT(inject_attach(&target, &at), INJECT_OK);
    kill(live.pid, SIGKILL);
    CHECK_INT(inject_call(&at, &order, &result), INJECT_DIED);
    close(live.sock);
    check_nothing_left();
}

#endif
