/* The tool host from its parent's side: calls at once, cancel, and the death of each process. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/adopt.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"
#include "tests/unit/check.h"
#include "tool/define/outcome.h"
#include "tool/host/host.h"

#define WAIT_S 60 /* tells a hang from a wait */

static char folder[] = "/tmp/cupel-unit-tools-XXXXXX";

static void remove_folder(void)
{
    own_dirp dir = opendir(folder);
    for (const struct dirent *entry; dir && (entry = readdir(dir));)
        unlinkat(dirfd(dir), entry->d_name, 0);
    rmdir(folder);
}

static void write_file(const char *name, const char *text)
{
    own_buf path = BUF_INIT(256);
    buf_printf(&path, "%s/%s", folder, name);
    own_fd fd = open(path.at, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
}

/* A tool that runs a line of sh. */
static void write_tool(const char *name, const char *line, const char *more)
{
    own_buf text = BUF_INIT(4096), file = BUF_INIT(128);
    buf_printf(&text,
               "{\"name\":\"%s\",\"description\":\"d\",\"effect\":\"read\",\"input_schema\":"
               "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"},\"key\":{}}},"
               "\"command\":[\"sh\",\"-c\",\"%s\"]%s}",
               name, line, more);
    buf_printf(&file, "%s.json", name);
    write_file(file.at, text.at);
}

static struct toolhost *host;
static size_t answered;
static json_t *answers[TOOLHOST_CALLS_MAX + 2];

static void on_answer(void *user, uint64_t id, json_t *outcome)
{
    (void)user;
    CHECK(id < array_len(answers) && !answers[id]);
    answers[id] = json_incref(outcome);
    answered++;
}

static void open_host(void)
{
    struct err err = ERR_INIT;
    struct toolhost_options options = { .folder = folder };
    CHECK_INT(toolhost_open(&options, &host, &err), 0);
    toolhost_on_answer(host, on_answer, NULL);
}

static void begin(void)
{
    CHECK(mkdtemp(folder));
    atexit(remove_folder);
    CHECK_INT(adopt_orphans(), 0); /* a process that is left behind would be ours */
}

static void call(uint64_t id, const char *tool, json_t *arguments)
{
    struct err err = ERR_INIT;
    own_json given = arguments;
    CHECK_INT(toolhost_call(host, id, tool, given, NULL, 0, &err), 0);
    CHECK_TEXT(err.text, "");
}

/* Until so many were answered, or the host died. */
static bool turn_until(size_t count)
{
    int64_t due = clock_now_ns() + WAIT_S * CLOCK_S;
    while (answered < count) {
        struct pollfd watched = { toolhost_fd(host), POLLIN, 0 };
        CHECK(clock_now_ns() < due);
        poll(&watched, 1, 100);
        if (!toolhost_ready(host))
            return false;
    }
    return true;
}

static const char *message_of(uint64_t id)
{
    CHECK(answers[id]);
    return json_get_str(json_object_get(answers[id], "error"), "message").at;
}

static size_t children(void)
{
    char text[4096], path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    own_fd fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, text, sizeof text - 1);
    size_t count = 0;
    CHECK(n >= 0);
    for (ssize_t i = 0; i < n; i++)
        count += text[i] == ' ';
    return count;
}

static void end(void)
{
    toolhost_close(host);
    CHECK_INT(children(), 0);
    for (size_t i = 0; i < array_len(answers); i++)
        json_decref(answers[i]);
}

/* The only child of a process. */
static pid_t child_of(pid_t parent)
{
    char text[256] = "", path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)parent, (int)parent);
    own_fd fd = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0 && read(fd, text, sizeof text - 1) > 0);
    return (pid_t)strtol(text, NULL, 10);
}

TEST(toolhost_answers_a_hundred_calls_at_once)
{
    begin();
    write_tool("wait", "sleep 0.3; cat", ",\"caps\":{\"at_once\":64}");
    open_host();
    for (uint64_t id = 1; id <= 100; id++)
        call(id, "wait", json_pack("{s:i}", "n", (int)id));
    CHECK(turn_until(100));
    for (uint64_t id = 1; id <= 100; id++) {
        const json_t *value = json_object_get(answers[id], "value");
        CHECK_INT(json_integer_value(json_object_get(value, "n")), id);
    }
    end();
}

TEST(toolhost_refuses_more_calls_than_it_has_room_for)
{
    struct err err = ERR_INIT;
    own_json none = json_object();
    begin();
    write_tool("wait", "sleep 100", "");
    open_host();
    for (uint64_t id = 1; id <= TOOLHOST_CALLS_MAX; id++)
        call(id, "wait", json_object());
    CHECK_INT(toolhost_call(host, 999, "wait", none, NULL, 0, &err), -1);
    CHECK_INT(err.kind, ERR_BUSY);
    end();
}

TEST(toolhost_refuses_numbers_names_and_arguments_that_are_none)
{
    struct err err = ERR_INIT;
    own_json none = json_object();
    own_json list = json_array();
    own_json deep = json_object();
    for (int i = 0; i < 60; i++) {
        json_t *outer = json_object();
        json_object_set_new(outer, "a", take_ptr(deep));
        deep = outer;
    }
    begin();
    write_tool("wait", "sleep 100", "");
    open_host();
    CHECK_INT(toolhost_call(host, 0, "wait", none, NULL, 0, &err), -1);
    CHECK_INT(toolhost_call(host, 1, "wa it", none, NULL, 0, &err), -1);
    CHECK_TEXT(err.text, "'wa it' is no name of a tool");
    CHECK_INT(toolhost_call(host, 1, "wait", list, NULL, 0, &err), -1);
    CHECK_INT(toolhost_call(host, 1, "wait", deep, NULL, 0, &err), -1);
    CHECK_TEXT(err.text, "the arguments of 'wait' are nested more than 56 deep");
    call(1, "wait", json_object());
    CHECK_INT(toolhost_call(host, 1, "wait", none, NULL, 0, &err), -1);
    CHECK_TEXT(err.text, "the number 1 of a tool's call is taken");
    end();
}

TEST(toolhost_cancels_one_call_and_not_the_others)
{
    begin();
    write_tool("wait", "sleep 100", "");
    write_tool("quick", "echo 7", "");
    open_host();
    call(1, "wait", json_object());
    call(2, "wait", json_object());
    toolhost_cancel(host, 1);
    toolhost_cancel(host, 77);
    CHECK(turn_until(1));
    CHECK_INT(outcome_kind_of(answers[1]), OUTCOME_CANCELLED);
    CHECK(!answers[2]);
    call(3, "quick", json_object());
    CHECK(turn_until(2));
    CHECK_INT(json_integer_value(json_object_get(answers[3], "value")), 7);
    end();
}

TEST(toolhost_that_is_killed_answers_its_calls_and_starts_again)
{
    begin();
    write_tool("wait", "setsid sleep 100 & sleep 100", "");
    write_tool("quick", "echo 7", "");
    open_host();
    call(1, "quick", json_object());
    CHECK(turn_until(1));
    pid_t guard = child_of(getpid());
    pid_t tool_host = child_of(guard);
    call(2, "wait", json_object());
    call(3, "wait", json_object());
    CHECK_INT(kill(tool_host, SIGKILL), 0);
    CHECK(!turn_until(3));
    CHECK_INT(toolhost_fd(host), -1);
    CHECK_INT(answered, 3);
    CHECK_TEXT(message_of(2),
               "the tool host died during the call; what the tool has done is not known");
    call(4, "quick", json_object());
    CHECK(turn_until(4));
    CHECK_INT(json_integer_value(json_object_get(answers[4], "value")), 7);
    CHECK_INT(child_of(getpid()), guard);
    end();
}

TEST(toolhost_ends_with_its_guard_and_says_so)
{
    struct err err = ERR_INIT;
    own_json none = json_object();
    begin();
    write_tool("wait", "setsid sleep 100 & sleep 100", "");
    open_host();
    call(1, "wait", json_object());
    pid_t guard = child_of(getpid());
    poll(NULL, 0, 300); /* the programs are on their way */
    CHECK_INT(kill(guard, SIGKILL), 0);
    CHECK(!turn_until(2));
    CHECK_INT(outcome_kind_of(answers[1]), OUTCOME_ERROR);
    CHECK_INT(toolhost_call(host, 2, "wait", none, NULL, 0, &err), -1);
    CHECK_TEXT(err.text, "the tool host has ended and cannot be started again");
    /* Its orphans came to us: they end by themselves. */
    toolhost_close(host);
    int64_t due = clock_now_ns() + WAIT_S * CLOCK_S;
    while (children() > 0) {
        CHECK(clock_now_ns() < due);
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
        poll(NULL, 0, 10);
    }
}

TEST(toolhost_passes_the_idempotency_key_to_its_argument)
{
    struct err err = ERR_INIT;
    begin();
    write_tool("keyed", "cat", ",\"idempotency_key\":\"key\"");
    write_tool("plain", "cat", "");
    open_host();
    own_json none = json_object();
    own_json own = json_pack("{s:s}", "key", "mine");
    CHECK_INT(toolhost_call(host, 1, "keyed", none, "k-1", 0, &err), 0);
    CHECK_INT(toolhost_call(host, 2, "keyed", own, "k-1", 0, &err), 0);
    CHECK_INT(toolhost_call(host, 3, "plain", none, "k-1", 0, &err), 0);
    CHECK(turn_until(3));
    CHECK_TEXT(json_get_str(json_object_get(answers[1], "value"), "key").at, "k-1");
    CHECK_TEXT(json_get_str(json_object_get(answers[2], "value"), "key").at, "mine");
    CHECK_INT(json_object_size(json_object_get(answers[3], "value")), 0);
    end();
}

TEST(toolhost_reads_files_again_when_they_change)
{
    struct err err = ERR_INIT;
    begin();
    write_tool("one", "echo 1", "");
    open_host();
    call(1, "one", json_object());
    CHECK(turn_until(1));
    write_tool("one", "echo 11", "");
    write_tool("two", "echo 2", "");
    write_file("bad.json", "{");
    call(2, "one", json_object());
    call(3, "two", json_object());
    CHECK(turn_until(3));
    CHECK_INT(json_integer_value(json_object_get(answers[2], "value")), 11);
    CHECK_INT(json_integer_value(json_object_get(answers[3], "value")), 2);
    own_json list = toolhost_list(host, 10000, &err);
    CHECK_INT(json_array_size(list), 2);
    CHECK_INT(json_array_size(toolhost_faults(host)), 1);
    call(4, "three", json_object());
    CHECK(turn_until(4));
    CHECK_TEXT(message_of(4), "there is no tool 'three'");
    end();
}

/* Kernels before 6.13 give two changes within a tick the same time. */
TEST(toolhost_sees_a_change_of_the_same_length_within_a_tick)
{
    struct err err = ERR_INIT;
    begin();
    open_host();
    for (int i = 0; i < 300; i++) {
        char more[48];
        snprintf(more, sizeof more, ",\"caps\":{\"calls\":%d}", 100 + i);
        write_tool("one", "true", more);
        own_json list = toolhost_list(host, 10000, &err);
        const json_t *caps = json_object_get(json_array_get(list, 0), "caps");
        CHECK_INT(json_integer_value(json_object_get(caps, "calls")), 100 + i);
    }
    end();
}
