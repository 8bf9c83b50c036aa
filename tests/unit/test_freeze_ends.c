/* The deaths of cupel's own processes while a run is frozen: nothing is left. */
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "engine/engine_int.h"
#include "freeze_place.h"

#define WAIT_MS 30000

static const char beat[] = "import os, time\n"
                           "if os.fork() == 0: os.setsid()\n"
                           "while True:\n"
                           "    os.write(1, b'.')\n"
                           "    time.sleep(0.005)\n";

static bool freeze_one(struct place *place, bool as_user)
{
    if (!place_open(place, as_user))
        return false;
    place_begin(place, "python", beat, 60, NULL);
    place_hear(place);
    place_freeze(place, true);
    place_is_still(place, 100);
    return true;
}

/* All that it left comes to us, its reaper: the broker is pid 1 of the namespace of all boxes. */
static void check_engine_killed(bool as_user)
{
    int told[2];
    char word = 0;
    CHECK_INT(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
    CHECK_INT(pipe(told), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct place place;
        word = freeze_one(&place, as_user) ? 'f' : 's';
        CHECK_INT(write(told[1], &word, 1), 1);
        for (;;)
            pause();
    }
    close(told[1]);
    CHECK_INT(read(told[0], &word, 1), 1);
    kill(pid, SIGKILL);
    bool left = true;
    for (int ms = 0; left && ms < WAIT_MS; ms += 10) {
        while (waitpid(-1, NULL, WNOHANG | __WALL) > 0)
            continue;
        left = errno != ECHILD;
        usleep(10000);
    }
    CHECK(!left);
}

TEST(freeze_leaves_nothing_of_a_killed_engine)
{
    check_engine_killed(false);
}

TEST(freeze_leaves_nothing_of_a_killed_engine_of_an_ordinary_user)
{
    check_engine_killed(true);
}

static void check_broker_killed(bool as_user)
{
    struct place place;
    if (!freeze_one(&place, as_user))
        return;
    pid_t broker = place.engine->house.broker.broker;
    if (kill(broker, SIGKILL) < 0) /* as root it has other uids than we */
        house_break(&place.engine->house, "a test ends it");
    place_end_somehow(&place);
    place_close(&place);
}

TEST(freeze_ends_with_the_broker)
{
    check_broker_killed(false);
}

TEST(freeze_ends_with_the_broker_of_an_ordinary_user)
{
    check_broker_killed(true);
}
