/* The agent's end of the engine's socket, against an engine that a child plays: frames are matched
 * by id, artifacts put together, and no wait outlives a cancel. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/box.h"
#include "base/io.h"
#include "base/json.h"
#include "base/own.h"
#include "check.h"
#include "contract/frame.h"

#define SUM "0123456789012345678901234567890123456789012345678901234567890123"

/* --- the engine that is played --- */

static json_t *take(int fd)
{
    uint32_t len = 0;
    static char text[1 << 16];
    if (io_read_all(fd, &len, sizeof len) < 0 || len >= sizeof text ||
        io_read_all(fd, text, len) < 0)
        _exit(0);
    return json_loadb(text, len, 0, NULL);
}

/* "ID" in the text becomes the id of `ask`, ' becomes ". */
static void give(int fd, const json_t *ask, const char *text)
{
    const char *id = json_string_value(json_object_get(ask, "id"));
    own_buf out = BUF_INIT(1u << 16);
    for (; *text; text++) {
        if (strncmp(text, "ID", 2) == 0) {
            buf_add_text(&out, id ? id : "");
            text++;
        } else {
            buf_add(&out, *text == '\'' ? "\"" : text, 1);
        }
    }
    uint32_t len = (uint32_t)out.len;
    if (io_write_all(fd, &len, sizeof len) < 0 || io_write_all(fd, out.at, out.len) < 0)
        _exit(1);
}

static struct agent_box box_with(void (*engine)(int fd), struct embed_client *client)
{
    int ends[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    if (fork() == 0) {
        close(ends[0]);
        engine(ends[1]);
        _exit(0);
    }
    close(ends[1]);
    const struct embed_link link = { .fd = ends[0], .in = BUF_INIT(1u << 24) };
    *client = EMBED_CLIENT_INIT;
    embed_client_init(client, &link);
    return (struct agent_box){ .engine = client, .session = "s_1", .cancel_fd = -1 };
}

static void leave(struct agent_box *box)
{
    box->session[0] = 0; /* nobody is there to end it */
    agent_box_close(box);
    embed_client_close(box->engine);
    while (wait(NULL) > 0)
        ;
}

/* --- tests --- */

static void cell_engine(int fd)
{
    own_json ask = take(fd);
    const json_t *request = json_object_get(ask, "request");
    if (!json_is_true(json_object_get(request, "names")) ||
        !str_is(json_str(json_object_get(request, "on_error")), "rollback"))
        give(fd, ask, "{'id':'ID','error':{'kind':'input','message':'not as expected'}}");
    give(fd, ask, "{'id':'other','result':{'status':'wrong'}}");
    give(fd, ask, "{'id':'other','error':{'kind':'busy','message':'not ours'}}");
    give(fd, ask, "{'id':'ID','event':'start'}");
    give(fd, ask, "{'id':'ID','event':'stdout','text':'hi'}");
    give(fd, ask, "{'id':'ID','event':'later','text':'unknown'}");
    for (int offset = 0; offset < 6; offset += 3) {
        char text[400];
        snprintf(text, sizeof text,
                 "{'id':'ID','event':'artifact','path':'a','size_bytes':6,'offset':%d,"
                 "'sha256':'" SUM "','base64':'YWJj'}",
                 offset);
        give(fd, ask, text);
    }
    give(fd, ask, "{'id':'ID','result':{'status':'ok'}}");
}

static void hear(void *user, const char *stream, struct str text)
{
    snprintf(user, 32, "%s %.*s", stream, (int)text.len, text.at);
}

TEST(agent_box_takes_what_is_its_own)
{
    struct embed_client client;
    struct agent_box box = box_with(cell_engine, &client);
    struct err err = ERR_INIT;
    char heard[32] = "";
    own_json result = agent_box_cell(&box, "x", 5, hear, heard, &err);
    CHECK_TEXT(err.text, "");
    CHECK_TEXT(json_string_value(json_object_get(result, "status")), "ok");
    CHECK_TEXT(heard, "stdout hi");
    CHECK_INT(box.artifact_count, 1);
    CHECK_TEXT(box.artifacts[0].content.at, "abcabc");
    leave(&box);
}

static void odd_artifact_engine(int fd)
{
    own_json ask = take(fd);
    give(fd, ask,
         "{'id':'ID','event':'artifact','path':'a','size_bytes':6,'offset':3,'base64':'YWJj',"
         "'sha256':'" SUM "'}");
    take(fd);
}

TEST(agent_box_refuses_artifacts_that_do_not_fit)
{
    struct embed_client client;
    struct agent_box box = box_with(odd_artifact_engine, &client);
    struct err err = ERR_INIT;
    CHECK(!agent_box_cell(&box, "x", 5, NULL, NULL, &err));
    CHECK_INT(err.kind, ERR_BUG);
    leave(&box);
}

static void refusing_engine(int fd)
{
    own_json ask = take(fd);
    give(fd, ask, "{'id':'ID','error':{'kind':'input','field':'do','message':'none is known'}}");
}

TEST(agent_box_says_that_an_engine_cannot_check)
{
    struct embed_client client;
    struct agent_box box = box_with(refusing_engine, &client);
    struct err err = ERR_INIT;
    CHECK(!agent_box_check(&box, "x", &err));
    CHECK_INT(err.kind, ERR_INPUT);
    CHECK(!agent_box_check(&box, "x", &err)); /* the engine is gone by now */
    CHECK_INT(err.kind, ERR_HOST);
    leave(&box);
}

/* Answers an interrupt with the end of the cell. */
static void patient_engine(int fd)
{
    own_json ask = take(fd);
    own_json next = take(fd);
    if (str_is(json_str(json_object_get(next, "op")), "interrupt"))
        give(fd, ask, "{'id':'ID','result':{'status':'interrupted'}}");
}

static int cancelled(void)
{
    int ends[2];
    CHECK(pipe(ends) == 0 && write(ends[1], "x", 1) == 1);
    return ends[0];
}

TEST(agent_box_interrupts_a_cell_when_cancelled)
{
    struct embed_client client;
    struct agent_box box = box_with(patient_engine, &client);
    struct err err = ERR_INIT;
    box.cancel_fd = cancelled();
    own_json result = agent_box_cell(&box, "x", 600, NULL, NULL, &err);
    CHECK_TEXT(json_string_value(json_object_get(result, "status")), "interrupted");
    leave(&box);
}

static void deaf_engine(int fd)
{
    for (;;)
        json_decref(take(fd));
}

TEST(agent_box_leaves_an_engine_that_does_not_answer)
{
    struct embed_client client;
    struct agent_box box = box_with(deaf_engine, &client);
    struct err err = ERR_INIT;
    box.cancel_fd = cancelled();
    CHECK(!agent_box_cell(&box, "x", 600, NULL, NULL, &err));
    CHECK_INT(err.kind, ERR_CANCELLED);
    leave(&box);
}

TEST(agent_box_takes_no_code_that_is_no_text)
{
    struct embed_client client;
    struct agent_box box = box_with(deaf_engine, &client);
    struct err err = ERR_INIT;
    CHECK(!agent_box_cell(&box, "\xff", 5, NULL, NULL, &err));
    CHECK_INT(err.kind, ERR_INPUT);
    err = ERR_INIT;
    CHECK(!agent_box_fresh(&box, "\xff", 5, &err));
    CHECK_INT(err.kind, ERR_INPUT);
    err = ERR_INIT;
    CHECK(!agent_box_check(&box, "\xff", &err));
    CHECK_INT(err.kind, ERR_INPUT);
    leave(&box);
}
