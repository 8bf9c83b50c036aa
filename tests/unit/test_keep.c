/* The broker's part of sessions: parked, woken, swept and attacked, in a real box. */
#include "keep_session.h"

#if INJECT_HERE

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/attr.h"
#include "base/clock.h"
#include "check.h"

TEST(keep_a_killed_state_comes_back)
{
    if (!keep_begin(256 * MIB))
        return;
    keep_must_park(3);
    CHECK_TEXT(keep_ask("x = 2"), "None");
    CHECK_TEXT(keep_ask("os._exit(7)"), "gone");
    struct box_news exited = keep_news_of(BOX_NEWS_EXITED);
    CHECK(!exited.by_signal);
    CHECK_INT(exited.status, 7);
    keep_sweep();
    CHECK_INT(keep_wake(3).end, INJECT_OK);
    CHECK_TEXT(keep_ask("x, os.getresuid()"), "(1, (1000, 1000, 1001))");
    CHECK_TEXT(keep_ask("subprocess.check_output(['echo', 'hi'])"), "b'hi\\n'");
    CHECK_TEXT(keep_ask("x = 3"), "None");
    keep_go_back(3); /* the place stays */
    CHECK_TEXT(keep_ask("x"), "1");
    keep_end();
}

/* Groups as the box sees them: "/" is its own. */
TEST(keep_a_woken_state_is_in_the_group_of_the_live_part)
{
    static const char groups[] = "{l.split(':')[2] for l in open('/proc/self/cgroup')}";
    char before[256];
    if (!keep_begin(256 * MIB))
        return;
    snprintf(before, sizeof before, "%s", keep_ask(groups));
    keep_must_park(0);
    CHECK_TEXT(keep_ask(groups), before);
    keep_go_back(0);
    CHECK_TEXT(keep_ask(groups), before);
    /* And what is parked is elsewhere: else a place would cost the live part a process. */
    struct box_news news = { .end = INJECT_OK };
    for (uint32_t i = 1; i < BOX_STATES && news.end == INJECT_OK; i++)
        news = keep_park(i);
    CHECK_INT(news.end, INJECT_OK);
    CHECK_TEXT(keep_ask("len([subprocess.Popen(['sleep', '9']) for i in range(28)])"), "28");
    keep_end();
}

TEST(keep_refuses_what_it_cannot_do)
{
    if (!keep_begin(256 * MIB))
        return;
    struct box_call call = { .op = BOX_OP_WAKE, .box = BOX };
    const int channel[BOX_CHANNEL] = { keep_live.words, keep_live.words };
    keep_order(&call, channel, BOX_CHANNEL); /* somebody is there, and nothing is parked */
    struct box_news news = keep_news_of(BOX_NEWS_AWAKE);
    CHECK_INT(news.end, INJECT_REFUSED);
    CHECK_INT(news.error, EBUSY);
    call = (struct box_call){ .op = BOX_OP_CREATE, .box = 1,
                              .create = { .memory_bytes = 64 * MIB, .disk_bytes = 8 * MIB,
                                          .disk_inodes = 512, .pids = 8,
                                          .cpu_thousandths = 1000 } };
    keep_order(&call, NULL, 0);
    keep_news_of(BOX_NEWS_READY);
    call = (struct box_call){ .op = BOX_OP_PARK, .box = 1 }; /* no session */
    keep_order(&call, NULL, 0);
    CHECK_INT(keep_news_of(BOX_NEWS_PARKED).error, EINVAL);
    keep_end();
}

TEST(keep_refuses_places_that_are_taken_and_threads)
{
    if (!keep_begin(256 * MIB))
        return;
    keep_must_park(0);
    struct box_news news = keep_park(0);
    CHECK_INT(news.end, INJECT_REFUSED);
    CHECK_INT(news.error, EEXIST);
    keep_order_place(BOX_OP_DROP, 0);
    keep_must_park(0);
    CHECK_TEXT(keep_ask("import threading; go = threading.Event(); "
                        "t = threading.Thread(target=go.wait); t.start()"),
               "None");
    CHECK_INT(keep_park(1).end, INJECT_THREADS);
    CHECK_TEXT(keep_ask("go.set() or t.join()"), "None");
    keep_must_park(1);
    CHECK_TEXT(keep_ask("os._exit(0)"), "gone");
    keep_news_of(BOX_NEWS_EXITED);
    CHECK_INT(keep_park(2).error, ESRCH);
    keep_sweep();
    CHECK_INT(keep_wake(9).error, ENOENT); /* nothing is there */
    CHECK_INT(keep_wake(1).end, INJECT_OK);
    CHECK_TEXT(keep_ask("x"), "1");
    keep_end();
}

TEST(keep_parked_copies_survive_what_user_code_tries)
{
    if (keep_begin(256 * MIB))
        keep_survive_attacks();
}

TEST(keep_user_code_cannot_take_the_parked_uid)
{
    if (!keep_begin(256 * MIB))
        return;
    keep_must_park(0);
    CHECK_TEXT(keep_ask("refused(os.setuid, 1001), refused(os.seteuid, 1001), "
                        "refused(os.setreuid, 1001, 1001)"),
               "(1, 38, 1)");
    CHECK_TEXT(keep_ask("refused(os.setresuid, 1001, 1001, 1001), "
                        "refused(os.setresuid, -1, -1, 1001)"),
               "(38, 38)");
    CHECK_TEXT(keep_ask("refused(os.setresuid, -1, -1, -1), refused(os.setuid, 1000)"), "(0, 0)");
    CHECK_TEXT(keep_ask("refused(os.sched_setaffinity, 0, os.sched_getaffinity(0)), "
                        "refused(os.setpriority, 0, 0, 19)"),
               "(0, 0)");
    CHECK_TEXT(keep_ask("ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)"), "-1");
    keep_end();
}

TEST(keep_memory_that_runs_out_takes_the_live_part_alone)
{
    if (!keep_begin(96 * MIB))
        return;
    keep_must_park(0);
    CHECK_TEXT(keep_ask("x = bytearray(1 << 30)"), "gone");
    struct box_news exited = keep_news_of(BOX_NEWS_EXITED);
    CHECK(exited.by_signal);
    struct box_news swept = keep_sweep();
    CHECK(swept.stats.oom_kills > 0);
    CHECK_INT(keep_wake(0).end, INJECT_OK);
    CHECK_TEXT(keep_ask("x"), "1");
    CHECK_TEXT(keep_ask("os.fork() == 0 and (bytearray(1 << 30), os._exit(0))"), "False");
    keep_news_of(BOX_NEWS_EXITED); /* it was a child's; all of the live part goes */
    swept = keep_sweep();
    CHECK(swept.stats.oom_kills > 1);
    CHECK_INT(keep_wake(0).end, INJECT_OK);
    CHECK_TEXT(keep_ask("x"), "1");
    keep_end();
}

TEST(keep_a_sweep_takes_children_and_leaves_limits)
{
    if (!keep_begin(256 * MIB))
        return;
    keep_must_park(0);
    CHECK_TEXT(keep_ask("ps = [subprocess.Popen(['sleep', '600'], start_new_session=True) "
                        "for i in range(20)]; len(ps)"),
               "None");
    keep_go_back(0);
    CHECK_TEXT(keep_ask("[subprocess.Popen(['true']).wait() for i in range(3)]"), "[0, 0, 0]");
    CHECK_TEXT(keep_ask("def bomb():\n    n = 0\n"
                        "    while not refused(os.fork) and n < 99: n += 1\n"
                        "    os.write(250, b'full' + bytes(1))\n    time.sleep(600)"),
               "None");
    CHECK_TEXT(keep_ask("bomb()"), "full");
    keep_go_back(0);
    CHECK_TEXT(keep_ask("x"), "1");
    struct box_news swept = keep_sweep();
    CHECK(swept.stats.pids_hits > 0);
    keep_end();
}

TEST(keep_the_keeper_has_two_powers)
{
    if (!keep_begin(256 * MIB))
        return;
    keep_must_park(0);
    const pid_t keeper = keep_process_named("cupel-keeper");
    static const char *const sets[] = { "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb" };
    for (size_t i = 0; i < array_len(sets); i++)
        CHECK_INT(strtoull(keep_status_of(keeper, sets[i]), NULL, 16), 1 << 19 | 1 << 23);
    CHECK_TEXT(keep_status_of(keeper, "NoNewPrivs"), "1");
    CHECK_TEXT(keep_status_of(keeper, "Seccomp"), "2");
    keep_end();
}

/* What an engine that has lost count would get: nothing, rather than another state. */
TEST(keep_another_state_than_the_one_asked_for_is_refused)
{
    if (!keep_begin(256 * MIB))
        return;
    struct box_call call = { .op = BOX_OP_PARK, .box = BOX, .keep.ticket = 41 };
    keep_order(&call, NULL, 0);
    struct box_news news = keep_news_of(BOX_NEWS_PARKED);
    CHECK_INT(news.end, INJECT_OK);
    CHECK_INT(news.ticket, 41);
    call.keep.ticket = 42; /* the place is taken */
    keep_order(&call, NULL, 0);
    news = keep_news_of(BOX_NEWS_PARKED);
    CHECK_INT(news.error, EEXIST);
    CHECK_INT(news.ticket, 42);
    call.op = BOX_OP_DROP; /* not that one */
    keep_order(&call, NULL, 0);
    CHECK_TEXT(keep_ask("x = 5"), "None");
    keep_sweep();
    keep_news_of(BOX_NEWS_EXITED);
    CHECK_INT(keep_wake_ticket(0, 42).error, ESTALE);
    CHECK_INT(keep_wake_ticket(0, 41).end, INJECT_OK);
    CHECK_TEXT(keep_ask("x"), "1");
    keep_end();
}

TEST(keep_a_process_may_run_where_it_could_before)
{
    if (!keep_begin(256 * MIB))
        return;
    CHECK_TEXT(keep_ask("cpus = os.sched_getaffinity(0)"), "None");
    keep_must_park(0);
    CHECK_TEXT(keep_ask("os.sched_getaffinity(0) == cpus"), "True");
    CHECK_TEXT(keep_ask("os.sched_setaffinity(0, {max(cpus)})"), "None");
    keep_must_park(1);
    CHECK_TEXT(keep_ask("os.sched_getaffinity(0) == {max(cpus)}"), "True");
    keep_go_back(0);
    CHECK_TEXT(keep_ask("os.sched_getaffinity(0) == cpus"), "True");
    keep_go_back(1);
    CHECK_TEXT(keep_ask("os.sched_getaffinity(0) == {max(cpus)}"), "True");
    keep_end();
}

TEST(keep_waits_for_an_interpreter_that_will_be_quiet)
{
    if (!keep_begin(256 * MIB))
        return;
    keep_tell("time.sleep(0.2)");
    keep_must_park(0);
    CHECK_TEXT(keep_ask(""), "None");
    const char busy[] = "while True: pass";
    keep_tell(busy);
    CHECK_INT(keep_park(1).end, INJECT_NOT_QUIET);
    keep_go_back(0);
    CHECK_TEXT(keep_ask("x"), "1");
    keep_end();
}

TEST(keep_200_rounds_leave_nothing)
{
    if (!keep_begin(256 * MIB))
        return;
    keep_must_park(0);
    keep_order_place(BOX_OP_DROP, 0);
    keep_must_park(1);
    const pid_t keeper = keep_process_named("cupel-keeper");
    CHECK(keeper > 0);
    usleep(200000); /* the dropped one is dead by then, and its pidfd closed */
    const int broker_fds = keep_fds_of(keep_house.broker), keeper_fds = keep_fds_of(keeper);
    int64_t from = clock_now_ns(), pause_us = 0;
    for (uint32_t i = 0; i < 200; i++) {
        keep_order_place(BOX_OP_PARK, 2 + i % 4);
        struct box_news news = keep_news_of(BOX_NEWS_PARKED);
        CHECK_INT(news.end, INJECT_OK);
        pause_us += news.pause_us;
        keep_order_place(BOX_OP_DROP, 2 + i % 4);
    }
    printf("# park and drop %.0f us, pause %.0f us\n", (double)(clock_now_ns() - from) / 200e3,
           (double)pause_us / 200);
    from = clock_now_ns();
    for (int i = 0; i < 20; i++) {
        CHECK_TEXT(keep_ask("x = x + 1"), "None");
        keep_go_back(1);
        CHECK_TEXT(keep_ask("x"), "1");
    }
    printf("# kill, sweep, wake and ask %.0f us\n", (double)(clock_now_ns() - from) / 20e3);
    keep_must_park(2); /* all drops before it are done */
    CHECK_INT(keep_fds_of(keep_house.broker), broker_fds);
    CHECK_INT(keep_fds_of(keeper), keeper_fds + 1);
    CHECK_INT(keep_children_of_broker(6), 6); /* zygote, init, occupant, keeper, two parked */
    keep_end();
}

TEST(keep_a_state_goes_into_another_box)
{
    if (!keep_begin(256 * MIB))
        return;
    CHECK_TEXT(keep_ask("x = list(range(100000))"), "None");
    keep_must_park(4);
    struct keep_channel first = keep_live;
    keep_live = KEEP_NO_CHANNEL; /* stays open */
    keep_move_in(1, 256 * MIB);
    CHECK_TEXT(keep_ask("x"), "1");
    struct box_call call = { .op = BOX_OP_FORK_INTO, .box = BOX, .keep = { 4, 1, 0 } };
    keep_order(&call, NULL, 0);
    struct box_news news = keep_news_of(BOX_NEWS_FORKED_INTO);
    if (news.end != INJECT_OK)
        check_failed(__FILE__, __LINE__, "forked: %s, %s", inject_end_name(news.end),
                     strerror(news.error));
    CHECK_INT(news.box, BOX);
    CHECK_TEXT(keep_ask("sum(x), os.getresuid()"), "(4999950000, (1000, 1000, 1001))");
    keep_order(&(struct box_call){ .op = BOX_OP_PARK, .box = 1 }, NULL, 0);
    CHECK_INT(keep_news_of(BOX_NEWS_PARKED).end, INJECT_OK); /* by a keeper of its own */
    keep_order(&call, NULL, 0);
    /* In the middle of another one. */
    keep_order(&(struct box_call){ .op = BOX_OP_RELEASE, .box = 1 }, NULL, 0);
    keep_news_of(BOX_NEWS_FORKED_INTO);
    call.keep.to = 7; /* nobody is there */
    keep_order(&call, NULL, 0);
    CHECK_INT(keep_news_of(BOX_NEWS_FORKED_INTO).error, ESRCH);
    close(keep_live.words);
    close(keep_live.requests);
    keep_live = first;
    CHECK_TEXT(keep_ask("len(x)"), "100000");
    keep_end();
}

TEST(keep_the_keepers_death_takes_what_is_parked_and_no_more)
{
    if (!keep_begin(256 * MIB))
        return;
    keep_must_park(0);
    kill(keep_process_named("cupel-keeper"), SIGKILL);
    keep_news_of(BOX_NEWS_KEEPER_GONE);
    CHECK_TEXT(keep_ask("x = 5"), "None");
    keep_must_park(0); /* by another one */
    keep_go_back(0);
    CHECK_TEXT(keep_ask("x"), "5");
    keep_end();
}

TEST(keep_a_killed_box_ends_with_all_that_is_parked)
{
    if (!keep_begin(256 * MIB))
        return;
    for (uint32_t i = 0; i < 4; i++)
        keep_must_park(i);
    keep_order_place(BOX_OP_PARK, 5);
    keep_order(&(struct box_call){ .op = BOX_OP_KILL, .box = BOX }, NULL, 0);
    keep_news_of(BOX_NEWS_PARKED); /* one answer, whatever it is */
    keep_news_of(BOX_NEWS_EMPTY);
    keep_end();
}

TEST(keep_release_does_not_wait_for_a_copy_under_way)
{
    if (!keep_begin(256 * MIB))
        return;
    keep_must_park(0);
    for (uint32_t i = 1; i < 8; i++)
        keep_order_place(BOX_OP_PARK, i);
    keep_end();
}

#endif
