/* Frozen runs, in real boxes, as whoever runs the tests and as an ordinary user, who has no control
 * groups on most hosts: nothing of the code moves, its time limit stands still, and it can be ended
 * at any moment. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/own.h"
#include "check.h"
#include "freeze_place.h"

/* Threads, children, a child that leaves its group and session, and one that forks again and
 * again: each writes to stdout all the time. */
static const char crowd[] =
    "import os, threading, time, signal\n"
    "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
    "def tick(mark):\n"
    "    while True:\n"
    "        os.write(1, mark)\n"
    "        time.sleep(0.005)\n"
    "for i in range(3): threading.Thread(target=tick, args=(b't',), daemon=True).start()\n"
    "for i in range(3):\n"
    "    if os.fork() == 0:\n"
    "        os.setsid()\n"
    "        tick(b'c')\n"
    "if os.fork() == 0:\n"
    "    while True:\n"
    "        if os.fork() == 0:\n"
    "            os.write(1, b'f')\n"
    "            os._exit(0)\n"
    "        time.sleep(0.001)\n"
    "tick(b'm')\n";

static const char beat[] = "import os, time\n"
                           "while True:\n"
                           "    os.write(1, b'.')\n"
                           "    time.sleep(0.005)\n";

static const char beat_js[] = "setInterval(() => process.stdout.write('.'), 5);";
static const char beat_bash[] = "while true; do echo .; sleep 0.01; done";

static void check_all_code_stops(bool as_user)
{
    struct place place;
    if (!place_open(&place, as_user))
        return;
    place_begin(&place, "python", crowd, 60, NULL);
    place_hear(&place);
    place_turn(&place, 200);
    for (int i = 0; i < 3; i++) {
        place_freeze(&place, true);
        place_freeze(&place, true);
        place_is_still(&place, 300);
        place_freeze(&place, false);
        place_freeze(&place, false);
        place_hear(&place);
    }
    engine_cancel(place.run);
    place_end(&place);
    CHECK_TEXT(result_status_name(place.result.status), "interrupted");
    place_close(&place);
}

TEST(freeze_stops_all_code)
{
    check_all_code_stops(false);
}

TEST(freeze_stops_all_code_of_an_ordinary_user)
{
    check_all_code_stops(true);
}

static void check_languages(bool as_user)
{
    static const char *const rows[][2] = { { "javascript", beat_js }, { "bash", beat_bash } };
    struct place place;
    if (!place_open(&place, as_user))
        return;
    for (int i = 0; i < 2; i++) {
        place_begin(&place, rows[i][0], rows[i][1], 60, NULL);
        place_hear(&place);
        place_freeze(&place, true);
        place_is_still(&place, 300);
        place_freeze(&place, false);
        place_hear(&place);
        engine_cancel(place.run);
        place_end(&place);
    }
    place_close(&place);
}

TEST(freeze_stops_javascript_and_bash)
{
    check_languages(false);
}

TEST(freeze_stops_javascript_and_bash_of_an_ordinary_user)
{
    check_languages(true);
}

/* Frozen for longer than the whole limit, it has then all of the rest. */
static void check_time_limit(bool as_user)
{
    struct place place;
    if (!place_open(&place, as_user))
        return;
    place_begin(&place, "python", beat, 2, NULL);
    place_hear(&place);
    place_freeze(&place, true);
    place_is_still(&place, 4000);
    place_freeze(&place, false);
    place_hear(&place);
    place_end(&place);
    CHECK_TEXT(result_status_name(place.result.status), "timeout");
    CHECK(place.result.wall_ms >= 2000 && place.result.wall_ms < 2000 + 4000);
    place_close(&place);
}

TEST(freeze_holds_the_time_limit)
{
    check_time_limit(false);
}

TEST(freeze_holds_the_time_limit_of_an_ordinary_user)
{
    check_time_limit(true);
}

/* By a cancel, by an interrupt, which lets it go on first, and with its engine. */
static void check_the_end(bool as_user)
{
    static const char ends[] = "import os, time\n"
                               "try:\n"
                               "    while True:\n"
                               "        os.write(1, b'.')\n"
                               "        time.sleep(0.005)\n"
                               "except KeyboardInterrupt: print('heard')\n";
    struct place place;
    if (!place_open(&place, as_user))
        return;
    for (int i = 0; i < 3; i++) {
        place_begin(&place, "python", i == 1 ? ends : crowd, 60, NULL);
        place_hear(&place);
        place_freeze(&place, true);
        place_is_still(&place, 100);
        if (i == 2)
            break;
        (i == 0 ? engine_cancel : engine_interrupt)(place.run);
        place_end(&place);
        own_buf text = BUF_INIT(1 << 20);
        result_stream_text(&place.result.out, &text);
        CHECK_INT(text.at && strstr(text.at, "heard") != NULL, i == 1);
    }
    place_close(&place);
}

TEST(freeze_ends_with_the_run)
{
    check_the_end(false);
}

TEST(freeze_ends_with_the_run_of_an_ordinary_user)
{
    check_the_end(true);
}

/* A timer sends SIGCONT: the code stands still, or its box is ended. */
static void check_no_way_out(bool as_user)
{
    static const char way_out[] = "import ctypes, os, signal, time\n"
                                  "libc = ctypes.CDLL(None, use_errno=True)\n"
                                  "event = (ctypes.c_byte * 64)()\n"
                                  "event[8] = signal.SIGCONT\n"
                                  "timer = ctypes.c_void_p()\n"
                                  "assert libc.timer_create(1, event, ctypes.byref(timer)) == 0\n"
                                  "every = (ctypes.c_long * 4)(0, 20000000, 0, 20000000)\n"
                                  "assert libc.timer_settime(timer, 0, every, None) == 0\n"
                                  "child = os.fork()\n"
                                  "while True:\n"
                                  "    if child == 0: os.kill(os.getppid(), signal.SIGCONT)\n"
                                  "    else: os.write(1, b'.')\n";
    struct place place;
    if (!place_open(&place, as_user))
        return;
    place_begin(&place, "python", way_out, 60, NULL);
    place_hear(&place);
    place_freeze(&place, true);
    place_turn(&place, 4000);
    if (place.run) {
        place_is_still(&place, 500);
        engine_cancel(place.run);
        place_end(&place);
    } else {
        CHECK_TEXT(place.err.text, "");
        CHECK_TEXT(result_status_name(place.result.status), "killed");
    }
    place_close(&place);
}

TEST(freeze_is_not_undone_by_code)
{
    check_no_way_out(false);
}

TEST(freeze_is_not_undone_by_code_of_an_ordinary_user)
{
    check_no_way_out(true);
}

/* A frozen cell goes on, times out with what was left, and is killed; its session is as any. */
static void check_session(bool as_user, const char *language, const char *code)
{
    struct place place;
    if (!place_open(&place, as_user))
        return;
    char id[64];
    snprintf(id, sizeof id, "%s", place_session(&place, language));
    for (int i = 0; i < 3; i++) {
        place_begin(&place, language, code, i == 0 ? 2 : 60, id);
        place_hear(&place);
        place_freeze(&place, true);
        place_is_still(&place, i == 0 ? 4000 : 300);
        if (i < 2) { /* the last one is killed while it is frozen */
            place_freeze(&place, false);
            place_hear(&place);
        }
        if (i > 0)
            engine_cancel(place.run);
        place_end(&place);
        CHECK_TEXT(result_status_name(place.result.status), i == 0 ? "timeout" : "interrupted");
    }
    place_begin(&place, language, "1", 60, id);
    place_end(&place);
    CHECK_TEXT(result_status_name(place.result.status), "ok");
    place_begin(&place, language, code, 60, id);
    place_hear(&place);
    place_freeze(&place, true);
    place_is_still(&place, 300);
    place_close(&place);
}

TEST(freeze_of_a_cell_leaves_its_session_well)
{
    check_session(false, "python", beat);
}

TEST(freeze_of_a_cell_leaves_its_session_well_of_an_ordinary_user)
{
    check_session(true, "python", beat);
}
