/* Programs of a build: their walls, their ends, and what is kept of their words. */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "image/make/child.h"
#include "image/make/job.h"

static char *const env[] = { (char[]){ "PATH=/usr/bin:/bin" }, (char[]){ "ONLY=this" }, NULL };

struct place {
    char path[64];
    int fd;
    struct make_scene scene;
};

static struct place place(void)
{
    struct place made = { .path = "/tmp/cupel-unit-make-XXXXXX" };
    CHECK(mkdtemp(made.path) != NULL);
    made.fd = open(made.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(made.fd >= 0);
    made.scene = (struct make_scene){ .stage_fd = made.fd,
                                      .env = env,
                                      .due_ns = clock_now_ns() + 60 * CLOCK_S,
                                      .timeout_s = 60,
                                      .stop_fd = -1 };
    return made;
}

static void done(struct place *place)
{
    close(place->fd);
    CHECK_INT(make_stage_remove(AT_FDCWD, place->path), 0);
}

static int sh(struct place *place, const char *script, struct buf *answer, struct err *err)
{
    place->scene.stage = place->path;
    const char *const argv[] = { "/bin/sh", "-c", script, NULL };
    return make_child_ask(&place->scene, ".", "sh", argv, answer, err);
}

TEST(make_child_gets_its_environment_folder_and_streams_alone)
{
    struct place made = place();
    own_buf answer = BUF_INIT(4096);
    struct err err = ERR_INIT;
    setenv("SECRET", "x", 1);
    CHECK_INT(sh(&made, "echo $ONLY-$SECRET; pwd; cat; echo note >&2; ls /proc/self/fd | wc -l",
                 &answer, &err),
              0);
    own_buf want = BUF_INIT(4096);
    CHECK_INT(buf_printf(&want, "this-\n%s\n4\n", made.path), 0); /* 0 to 2, and ls's own */
    CHECK_TEXT(answer.at, want.at);
    done(&made);
}

TEST(make_child_writes_nowhere_but_in_its_stage)
{
    struct place made = place(), other = place();
    own_buf answer = BUF_INIT(4096), script = BUF_INIT(4096);
    struct err err = ERR_INIT;
    CHECK_INT(buf_printf(&script, "echo x >%s/in && echo in; echo x >%s/out && echo out; exit 0",
                         made.path, other.path),
              0);
    CHECK_INT(sh(&made, script.at, &answer, &err), 0);
    CHECK_TEXT(answer.at, made.scene.bare ? "in\nout\n" : "in\n");
    done(&made);
    done(&other);
}

TEST(make_child_tells_a_failure_in_the_programs_words)
{
    struct place made = place();
    own_buf answer = BUF_INIT(4096);
    struct err err = ERR_INIT;
    CHECK_INT(sh(&made, "echo ERROR: no such thing >&2; exit 3", &answer, &err), -1);
    CHECK_TEXT(err.text, "sh could not do it: ERROR: no such thing");
    CHECK_INT(sh(&made, "kill -9 $$", &answer, &err), -1);
    CHECK(strstr(err.text, "signal 9"));
    const char *const argv[] = { "/nonexistent/tool", NULL };
    CHECK_INT(make_child_must(&made.scene, ".", "tool", argv, &err), -1);
    CHECK_INT(err.sys, ENOENT);
    done(&made);
}

TEST(make_child_ends_with_all_it_started)
{
    struct place made = place();
    own_buf answer = BUF_INIT(4096);
    struct err err = ERR_INIT;
    /* A child in a session of its own, without our pipes, in whose number we are interested. */
    CHECK_INT(sh(&made, "setsid sleep 1000 <&- >&- 2>&- & echo $!", &answer, &err), 0);
    int pid = (int)strtol(answer.at, NULL, 10);
    CHECK(pid > 0 && kill(pid, 0) < 0 && errno == ESRCH);
    done(&made);
}

TEST(make_child_ends_at_its_time_and_when_it_is_told)
{
    struct place made = place();
    own_buf answer = BUF_INIT(4096);
    struct err err = ERR_INIT;
    int ends[2];
    made.scene.due_ns = clock_now_ns() + CLOCK_S / 5;
    made.scene.timeout_s = 1;
    CHECK_INT(sh(&made, "sleep 1000", &answer, &err), -1);
    CHECK_INT(err.kind, ERR_SLOW);
    CHECK(strstr(err.hint, "--timeout"));
    made.scene.due_ns = clock_now_ns() + 60 * CLOCK_S;
    CHECK(pipe(ends) == 0 && write(ends[1], "i", 1) == 1);
    made.scene.stop_fd = ends[0];
    CHECK_INT(sh(&made, "sleep 1000", &answer, &err), -1);
    CHECK_INT(err.kind, ERR_CANCELLED);
    close(ends[0]);
    close(ends[1]);
    done(&made);
}

TEST(make_child_may_not_fill_the_disk)
{
    struct place made = place();
    own_buf answer = BUF_INIT(4096);
    struct err err = ERR_INIT;
    made.scene.bytes_max = 1 << 20;
    CHECK_INT(sh(&made, "mkdir a; head -c 3000000 /dev/zero >a/b", &answer, &err), -1);
    CHECK_INT(err.kind, ERR_LIMIT);
    done(&made);
}

TEST(make_child_keeps_the_end_of_many_words)
{
    struct place made = place();
    own_buf said = BUF_INIT(MAKE_SAID_MAX);
    struct err err = ERR_INIT;
    int status = 0;
    const char *const argv[] = { "/bin/sh", "-c",
                                 "yes 0123456789 | head -n 100000; echo the end", NULL };
    CHECK_INT(make_child_run(&made.scene, ".", argv, &said, &status, &err), 0);
    CHECK(said.len <= MAKE_SAID_MAX && str_ends(buf_str(&said), STR("the end\n")));
    own_buf answer = BUF_INIT(100);
    CHECK_INT(make_child_ask(&made.scene, ".", "sh", argv, &answer, &err), -1);
    CHECK_INT(err.kind, ERR_LIMIT);
    done(&made);
}
