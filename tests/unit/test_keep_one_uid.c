/* The broker's part of sessions where the user has one uid only: what is parked is out of
 * reach by its number, and a sweep goes by numbers. In a real box. */
#include "keep_session.h"

#if INJECT_HERE

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/clock.h"
#include "box/proto/warden.h"
#include "check.h"

/* Innermost number of a child of the broker. */
static long inside_of(pid_t pid)
{
    const char *numbers = keep_status_of(pid, "NSpid");
    const char *last = strrchr(numbers, '\t');
    return strtol(last ? last : numbers, NULL, 10);
}

static bool is_reserved(long number)
{
    return number >= WARDEN_FIRST && number <= WARDEN_LAST;
}

TEST(keep_one_uid_a_killed_state_comes_back)
{
    if (!keep_begin_as_user(256 * MIB))
        return;
    keep_must_park(3);
    CHECK_TEXT(keep_ask("os._exit(7)"), "gone");
    CHECK_INT(keep_news_of(BOX_NEWS_EXITED).status, 7);
    keep_sweep();
    CHECK_INT(keep_wake(3).end, INJECT_OK);
    CHECK_TEXT(keep_ask("x, os.getresuid(), os.getpid() < 32257"), "(1, (1000, 1000, 1000), True)");
    CHECK_TEXT(keep_ask("os.listdir('/proc/self/fd') != [], os.getpgid(0) == os.getpid()"),
               "(True, True)");
    CHECK_TEXT(keep_ask("subprocess.check_output(['echo', 'hi'])"), "b'hi\\n'");
    CHECK_TEXT(keep_ask("x = 3"), "None");
    keep_go_back(3); /* the place stays */
    CHECK_TEXT(keep_ask("x"), "1");
    CHECK_TEXT(keep_ask("signal.signal(10, lambda *_: names.update(x=8)) or "
                        "signal.raise_signal(10) or x"),
               "8");
    keep_end();
}

TEST(keep_one_uid_parked_copies_survive_what_user_code_tries)
{
    if (keep_begin_as_user(256 * MIB))
        keep_survive_attacks();
}

TEST(keep_one_uid_numbers_are_reserved_and_hidden)
{
    if (!keep_begin_as_user(256 * MIB))
        return;
    keep_must_park(0);
    keep_must_park(1);
    CHECK(is_reserved(inside_of(keep_process_named("cupel-warden"))));
    CHECK_TEXT(keep_ask("[p for p in os.listdir('/proc') if p.isdigit() and int(p) > 1000]"), "[]");
    CHECK_TEXT(keep_ask("{refused(os.open, f'/proc/{p}/stat', 0) for p in range(32257, 32262)}"),
               "{2}");
    CHECK_TEXT(keep_ask("{refused(os.kill, p, 0) for p in (32257, 32767, -32257, -32767, -1)}"),
               "{1}");
    CHECK_TEXT(keep_ask("refused(os.kill, 32255, 0), refused(os.kill, 32768, 0)"), "(3, 3)");
    /* Numbers go on as if nothing had been made. */
    CHECK_TEXT(keep_ask("subprocess.Popen(['true']).pid < 40"), "True");
    keep_end();
}

TEST(keep_one_uid_all_places_leave_room_for_processes)
{
    if (!keep_begin_as_user(256 * MIB))
        return;
    struct box_news news = { .end = INJECT_OK };
    for (uint32_t i = 0; i < BOX_STATES && news.end == INJECT_OK; i++)
        news = keep_park(i);
    CHECK_INT(news.end, INJECT_OK);
    CHECK_TEXT(keep_ask("len([subprocess.Popen(['sleep', '9']) for i in range(28)])"), "28");
    keep_go_back(BOX_STATES - 1);
    CHECK_TEXT(keep_ask("x"), "1");
    keep_end();
}

/* Each bears, and ends, and so on: there is never more than one, and it is never there. */
#define COMET "while True:\n    if os.fork(): os._exit(0)"
#define BOMB "while True:\n    refused(os.fork)"
#define SWARM                                                              \
    "for i in range(12):\n    if not os.fork():\n        while True:\n"    \
    "            if refused(os.fork) == 0: os._exit(0)\n"

TEST(keep_one_uid_a_sweep_takes_all_and_leaves_what_is_parked)
{
    static const char *const runaways[] = { COMET, BOMB, SWARM, COMET, BOMB };
    if (!keep_begin_as_user(256 * MIB))
        return;
    keep_must_park(0);
    int64_t spent = 0;
    for (size_t i = 0; i < array_len(runaways); i++) {
        keep_tell(runaways[i]);
        poll(NULL, 0, 150);
        spent -= clock_now_ns();
        keep_go_back(0);
        spent += clock_now_ns();
        CHECK_TEXT(keep_ask("x"), "1");
    }
    printf("# sweep of a runaway and wake %.1f ms\n", (double)spent / 1e6 / array_len(runaways));
    CHECK(!keep_heard(BOX_NEWS_KEEPER_GONE));
    keep_end();
}

TEST(keep_one_uid_a_sweep_without_copies_takes_all)
{
    if (!keep_begin_as_user(256 * MIB))
        return;
    keep_tell(BOMB);
    poll(NULL, 0, 200);
    keep_sweep();
    keep_news_of(BOX_NEWS_EXITED);
    CHECK(!keep_heard(BOX_NEWS_EMPTY));
    keep_end();
}

/* Threads have numbers, too, and are made faster than processes. */
TEST(keep_one_uid_numbers_that_run_into_the_range_are_set_back)
{
    static const char count_up[] =
        "import threading\n"
        "def count_up(to):\n"
        "    n = 0\n"
        "    while n < to:\n"
        "        t = threading.Thread(target=int); t.start(); t.join(); n = t.native_id\n"
        "def sleeper():\n"
        "    p = os.fork()\n"
        "    if p: return p\n"
        "    while True: time.sleep(9)\n";
    if (!keep_begin_as_user(256 * MIB))
        return;
    keep_must_park(0);
    CHECK_TEXT(keep_ask(count_up), "None");
    CHECK_TEXT(keep_ask("count_up(32300) or sleeper() > 32300"), "True");
    keep_must_park(1); /* beside that one */
    CHECK_TEXT(keep_ask("p = sleeper()"), "None");
    CHECK_TEXT(keep_ask("299 < p < 1000, refused(os.kill, p, 9)"), "(True, 0)");
    CHECK_TEXT(keep_ask("x = 5"), "None");
    keep_go_back(0); /* all of them are gone, else it would not be swept */
    CHECK_TEXT(keep_ask("x, os.getpid() < 1000"), "(1, True)");
    keep_go_back(1);
    CHECK_TEXT(keep_ask("x, os.getpid() < 1000"), "(1, True)");
    CHECK(!keep_heard(BOX_NEWS_KEEPER_GONE));
    keep_end();
}

/* A copy must not be open to others for a moment, because what they open stays open. */
TEST(keep_one_uid_a_copy_is_hidden_from_its_birth)
{
    static const char spy[] =
        "import select\n"
        "told = socket.socketpair()\n"
        "if os.fork() == 0:\n"
        "    got, end = 0, time.monotonic() + 20\n"
        "    while time.monotonic() < end and not select.select([told[1]], [], [], 0)[0]:\n"
        "        for p in range(32257, 32263):\n"
        "            got += not refused(os.open, f'/proc/{p}', 0)\n"
        "    told[1].send(str(got).encode()); os._exit(0)\n";
    if (!keep_begin_as_user(256 * MIB))
        return;
    CHECK_TEXT(keep_ask(spy), "None");
    for (int i = 0; i < 100; i++) {
        keep_must_park(0);
        keep_order_place(BOX_OP_DROP, 0);
    }
    CHECK_TEXT(keep_ask("told[0].send(b'x') and told[0].recv(99)"), "b'0'");
    keep_end();
}

TEST(keep_one_uid_the_warden_has_one_power)
{
    if (!keep_begin_as_user(256 * MIB))
        return;
    keep_must_park(0);
    const pid_t warden = keep_process_named("cupel-warden");
    static const char *const sets[] = { "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb" };
    for (size_t i = 0; i < array_len(sets); i++)
        CHECK_INT(strtoull(keep_status_of(warden, sets[i]), NULL, 16), 1ull << 40);
    CHECK_TEXT(keep_status_of(warden, "NoNewPrivs"), "1");
    CHECK_TEXT(keep_status_of(warden, "Seccomp"), "2");
    keep_end();
}

TEST(keep_one_uid_the_wardens_death_takes_what_is_parked_and_no_more)
{
    if (!keep_begin_as_user(256 * MIB))
        return;
    keep_must_park(0);
    kill(keep_process_named("cupel-warden"), SIGKILL);
    keep_news_of(BOX_NEWS_KEEPER_GONE);
    CHECK_TEXT(keep_ask("x = 5"), "None");
    keep_must_park(0); /* by others */
    keep_go_back(0);
    kill(keep_process_named("cupel-keeper"), SIGKILL);
    keep_news_of(BOX_NEWS_KEEPER_GONE);
    keep_must_park(0);
    CHECK_TEXT(keep_ask("x"), "5");
    keep_end();
}

TEST(keep_one_uid_200_rounds_leave_nothing)
{
    if (!keep_begin_as_user(256 * MIB))
        return;
    keep_must_park(1);
    int64_t from = clock_now_ns(), pause_us = 0;
    for (uint32_t i = 0; i < 200; i++) {
        struct box_news news = keep_park(2 + i % 4);
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
    /* zygote, init, occupant, keeper, warden, two parked */
    CHECK_INT(keep_children_of_broker(7), 7);
    keep_end();
}

TEST(keep_one_uid_a_state_goes_into_another_box)
{
    if (!keep_begin_as_user(256 * MIB))
        return;
    CHECK_TEXT(keep_ask("x = list(range(100000))"), "None");
    keep_must_park(4);
    struct keep_channel first = keep_live;
    keep_live = KEEP_NO_CHANNEL; /* stays open */
    keep_move_in(1, 256 * MIB);
    struct box_call call = { .op = BOX_OP_FORK_INTO, .box = BOX, .keep = { 4, 1, 0 } };
    keep_order(&call, NULL, 0);
    CHECK_INT(keep_news_of(BOX_NEWS_FORKED_INTO).end, INJECT_OK);
    CHECK_TEXT(keep_ask("sum(x), os.getresuid()"), "(4999950000, (1000, 1000, 1000))");
    keep_order(&(struct box_call){ .op = BOX_OP_PARK, .box = 1 }, NULL, 0);
    CHECK_INT(keep_news_of(BOX_NEWS_PARKED).end, INJECT_OK); /* by a keeper of its own */
    close(keep_live.words);
    close(keep_live.requests);
    keep_live = first;
    CHECK_TEXT(keep_ask("len(x)"), "100000");
    keep_end();
}

/* Orders under way when it is swept: what is parked then is parked, and stays. */
TEST(keep_one_uid_a_sweep_waits_for_a_copy_that_is_being_made)
{
    if (!keep_begin_as_user(256 * MIB))
        return;
    for (uint32_t i = 0; i < 4; i++) {
        keep_order_place(BOX_OP_PARK, 2 * i);
        keep_order_place(BOX_OP_PARK, 2 * i + 1);
        keep_sweep();
        keep_news_of(BOX_NEWS_EXITED);
        CHECK_INT(keep_news_of(BOX_NEWS_PARKED).end, INJECT_OK);
        CHECK_INT(keep_news_of(BOX_NEWS_PARKED).end, INJECT_OK);
        CHECK_INT(keep_wake(2 * i).end, INJECT_OK);
        CHECK_TEXT(keep_ask("x"), "1");
    }
    keep_end();
}

TEST(keep_one_uid_a_killed_box_ends_with_all_that_is_parked)
{
    if (!keep_begin_as_user(256 * MIB))
        return;
    for (uint32_t i = 0; i < 4; i++)
        keep_must_park(i);
    keep_order_place(BOX_OP_PARK, 5);
    keep_order(&(struct box_call){ .op = BOX_OP_KILL, .box = BOX }, NULL, 0);
    keep_news_of(BOX_NEWS_PARKED); /* one answer, whatever it is */
    keep_news_of(BOX_NEWS_EMPTY);
    keep_end();
}

#endif
