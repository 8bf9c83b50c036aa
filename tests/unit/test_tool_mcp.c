/* MCP servers by stdio below the tool host: calls at once, deadlines, cancels, deaths and floods.
 * The servers are tests/tools/mcp_peer.py. */
#include "check.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/adopt.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"
#include "tool/define/outcome.h"
#include "tool/host/host.h"

#define WAIT_S 120 /* tells a hang from a wait */
#define IDS 64

static char folder[] = "/tmp/cupel-unit-mcp-XXXXXX";
static struct toolhost *host;
static size_t answered;
static json_t *answers[IDS];

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

static void on_answer(void *user, uint64_t id, json_t *outcome)
{
    (void)user;
    CHECK(id < IDS && !answers[id]);
    answers[id] = json_incref(outcome);
    answered++;
}

/* Two servers, "a" and "b", of a file in the folder of tools or of one apart. */
static void begin(bool in_folder)
{
    struct err err = ERR_INIT;
    own_str peer = realpath("tests/tools/mcp_peer.py", NULL);
    own_buf text = BUF_INIT(8192);
    if (!peer)
        check_failed(__FILE__, __LINE__, "run this in the repository's folder");
    buf_add_text(&text, "{\"mcpServers\":{");
    for (int i = 0; i < 2; i++)
        buf_printf(&text,
                   "%s\"%c\":{\"command\":\"/usr/bin/python3\",\"args\":[\"-B\",\"%s\"],"
                   "\"tools\":{\"*\":{\"caps\":{\"timeout_s\":100}}}}",
                   i ? "," : "", 'a' + i, peer);
    buf_add_text(&text, "}}");
    CHECK(mkdtemp(folder));
    atexit(remove_folder);
    write_file("mcp.json", text.at);
    CHECK_INT(adopt_orphans(), 0);
    own_buf path = BUF_INIT(256);
    buf_printf(&path, "%s/mcp.json", folder);
    struct toolhost_options options = { .folder = in_folder ? folder : NULL,
                                        .mcp_file = in_folder ? NULL : path.at };
    CHECK_INT(toolhost_open(&options, &host, &err), 0);
    toolhost_on_answer(host, on_answer, NULL);
    own_json tools = toolhost_list(host, WAIT_S * 1000, &err);
    CHECK(json_array_size(tools) > 20);
}

static void call(uint64_t id, const char *tool, const char *arguments, int64_t timeout_ms)
{
    struct err err = ERR_INIT;
    own_json given = json_loads(arguments, 0, NULL);
    CHECK(given);
    CHECK_INT(toolhost_call(host, id, tool, given, NULL, timeout_ms, &err), 0);
}

static void turn_until(size_t count)
{
    int64_t due = clock_now_ns() + WAIT_S * CLOCK_S;
    while (answered < count) {
        struct pollfd watched = { toolhost_fd(host), POLLIN, 0 };
        CHECK(clock_now_ns() < due);
        poll(&watched, 1, 100);
        CHECK(toolhost_ready(host));
    }
}

static void end(void)
{
    toolhost_close(host);
    for (size_t i = 0; i < IDS; i++)
        json_decref(answers[i]);
}

static void check_value(uint64_t id, const char *want)
{
    own_json wanted = json_loads(want, JSON_DECODE_ANY, NULL);
    own_str text = json_write(answers[id], JSON_COMPACT);
    if (!json_equal(json_object_get(answers[id], "value"), wanted))
        check_failed(__FILE__, __LINE__, "%d is %s, not %s", (int)id, text, want);
}

static void check_error(uint64_t id, enum outcome_kind kind, const char *part)
{
    struct str message = json_get_str(json_object_get(answers[id], "error"), "message");
    own_str text = json_write(answers[id], JSON_COMPACT);
    if (outcome_kind_of(answers[id]) != kind || !strstr(message.at, part))
        check_failed(__FILE__, __LINE__, "%d is %s, not '%s'", (int)id, text, part);
}

TEST(tool_mcp_calls_at_once_have_deadlines_of_their_own)
{
    begin(/* in_folder= */ false);
    call(1, "a.sleep", "{\"s\":60}", 500);
    call(2, "a.sleep", "{\"s\":60}", 60000);
    for (uint64_t id = 3; id < 8; id++)
        call(id, "a.sleep", "{\"s\":0.2}", 60000);
    call(8, "a.add", "{\"a\":1,\"b\":2}", 60000);
    turn_until(7);
    CHECK(!answers[2]);
    toolhost_cancel(host, 2);
    turn_until(8);
    check_error(1, OUTCOME_TIMEOUT, "");
    check_error(2, OUTCOME_CANCELLED, "");
    for (uint64_t id = 3; id < 8; id++)
        check_value(id, "\"sleep\"");
    check_value(8, "{\"sum\":3}");
    end();
}

TEST(tool_mcp_a_death_is_that_of_its_own_calls)
{
    begin(/* in_folder= */ false);
    call(1, "a.sleep", "{\"s\":60}", 60000);
    call(2, "b.sleep", "{\"s\":1}", 60000);
    turn_until(1); /* by now the first one has reached its server */
    call(3, "a.die", "{}", 60000);
    turn_until(3);
    check_error(1, OUTCOME_ERROR, "exit code 3: out of cheese");
    check_error(3, OUTCOME_ERROR, "exit code 3: out of cheese");
    check_value(2, "\"sleep\"");
    call(4, "a.add", "{\"a\":1,\"b\":2}", 60000); /* another one is started at once */
    turn_until(4);
    check_value(4, "{\"sum\":3}");
    end();
}

TEST(tool_mcp_a_server_that_keeps_dying_gets_a_pause)
{
    begin(/* in_folder= */ false);
    for (uint64_t id = 1; id < 4; id++) {
        call(id, "a.die", "{}", 60000);
        turn_until(id);
        check_error(id, OUTCOME_ERROR, "out of cheese");
    }
    int64_t start = clock_now_ns();
    call(4, "a.add", "{\"a\":1,\"b\":2}", 60000);
    turn_until(4);
    check_error(4, OUTCOME_ERROR, "out of cheese"); /* the reason of the pause */
    CHECK(clock_now_ns() - start < CLOCK_S);
    call(5, "b.add", "{\"a\":1,\"b\":2}", 60000);
    turn_until(5);
    check_value(5, "{\"sum\":3}");
    end();
}

TEST(tool_mcp_floods_and_silence_stop_nobody_else)
{
    begin(/* in_folder= */ false);
    call(1, "a.flood", "{}", 60000);
    call(2, "b.deaf", "{}", 1000);
    turn_until(2);
    call(3, "b.add", "{\"a\":1,\"b\":2}", 1000); /* behind it, in the pipe */
    turn_until(3);
    check_error(1, OUTCOME_ERROR, "64 MiB that nobody asked for");
    check_error(2, OUTCOME_TIMEOUT, "");
    check_error(3, OUTCOME_TIMEOUT, "");
    call(4, "a.add", "{\"a\":1,\"b\":2}", 60000);
    turn_until(4);
    check_value(4, "{\"sum\":3}");
    end();
}

TEST(tool_mcp_another_files_change_ends_no_server)
{
    begin(/* in_folder= */ true);
    call(1, "a.sleep", "{\"s\":1}", 60000);
    write_file("new.json", "{\"name\":\"new\",\"description\":\"\",\"input_schema\":{\"type\":"
                           "\"object\"},\"effect\":\"read\",\"command\":[\"true\"]}");
    call(2, "new", "{}", 60000);
    call(3, "a.add", "{\"a\":1,\"b\":2}", 60000); /* known without a new list */
    turn_until(3);
    check_value(1, "\"sleep\"");
    check_value(2, "null");
    check_value(3, "{\"sum\":3}");
    end();
}
