/* Tasks in threads, against an engine that a child plays and models from files and programs: news
 * come in the loop's thread, two tasks do not disturb each other, and no wait outlives a cancel. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/json.h"
#include "base/own.h"
#include "check.h"
#include "serve/api/tasks_request.h"
#include "serve/api/tasks_thread.h"

#define TYPED "{\"text\": \"It is four.\"}\n"

/* --- the engine that is played: a session, and nothing runs in it --- */

static void say(int fd, const char *text)
{
    uint32_t len = (uint32_t)strlen(text);
    if (io_write_all(fd, &len, sizeof len) < 0 || io_write_all(fd, text, len) < 0)
        _exit(1);
}

static attr_noreturn void play(int fd)
{
    static char text[1 << 16];
    char answer[400];
    say(fd, "{\"op\":\"hello\",\"protocol\":1,\"engine\":\"played\"}");
    for (uint32_t len; io_read_all(fd, &len, sizeof len) == 0 && len < sizeof text;) {
        if (io_read_all(fd, text, len) < 0)
            break;
        own_json ask = json_loadb(text, len, 0, NULL);
        snprintf(answer, sizeof answer,
                 "{\"id\":\"%s\",\"session\":{\"session\":\"s_1\",\"limits\":{\"timeout_s\":9,"
                 "\"memory_bytes\":1048576}}}",
                 json_get_str(ask, "id").at);
        say(fd, answer);
    }
    _exit(0);
}

static int engine_socket(void)
{
    int ends[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    if (fork() == 0) {
        close(ends[0]);
        if (io_close_from(ends[1] + 1) < 0)
            _exit(1);
        play(ends[1]);
    }
    close(ends[1]);
    return ends[0];
}

/* --- what comes --- */

struct heard {
    char kinds[2000];
    char status[24], reason[600], id[40];
    int ends, artifacts;
};

static void on_event(void *user, const char *kind, json_t *data)
{
    struct heard *heard = user;
    size_t len = strlen(heard->kinds);
    snprintf(heard->kinds + len, sizeof heard->kinds - len, "%s ", kind);
    json_decref(data);
}

static void on_ask(void *user, const char *question)
{
    (void)user;
    (void)question;
}

static void on_end(void *user, struct tasks_end *end)
{
    struct heard *heard = user;
    heard->ends++;
    if (!end->report)
        return;
    snprintf(heard->status, sizeof heard->status, "%s", json_get_str(end->report, "status").at);
    snprintf(heard->reason, sizeof heard->reason, "%s", json_get_str(end->report, "reason").at);
    snprintf(heard->id, sizeof heard->id, "%s", json_get_str(end->report, "task").at);
}

static const struct tasks_hooks hooks = { on_event, on_ask, on_end };

/* Models of which copies are made; open as long as those. */
static struct llm_model *opened[4];
static size_t opened_count;

static struct llm_model *model_of(const char *replies, const char *program)
{
    struct err err = ERR_INIT;
    struct llm_model *first = NULL, *copy = NULL;
    char path[] = "/tmp/cupel-unit-XXXXXX", spec[64];
    if (!program) {
        own_fd fd = mkstemp(path);
        CHECK(fd >= 0 && io_write_all(fd, replies, strlen(replies)) == 0);
        snprintf(spec, sizeof spec, "replay:%s", path);
    }
    CHECK(llm_open(program ? program : spec, &first, &err) == 0);
    if (!program)
        unlink(path);
    CHECK(llm_ready(first, &err) == 0 && llm_again(first, &copy, &err) == 0);
    opened[opened_count++] = first;
    return copy;
}

static struct tasks_question question_of(const char *text, struct llm_model *model, bool keep)
{
    return (struct tasks_question){
        .engine = engine_socket(),
        .models = { .model = model },
        .task = { .question = text, .budget = AGENT_BUDGET_DEFAULT },
        .keep = keep,
        .ask_s = 5,
    };
}

static void turn_until(struct loop *loop, const int *count, int wanted)
{
    for (int i = 0; i < 5000 && *count < wanted; i++)
        CHECK(loop_turn(loop) == 0);
    CHECK_INT(*count, wanted);
}

static struct tasks_threads *open_threads(struct loop *loop)
{
    struct err err = ERR_INIT;
    *loop = LOOP_INIT;
    CHECK(loop_open(loop) == 0);
    struct tasks_threads *threads = tasks_threads_open(loop, &hooks, /* store= */ NULL, &err);
    CHECK(threads);
    return threads;
}

static void close_threads(struct loop *loop, struct tasks_threads *threads)
{
    tasks_threads_close(threads);
    loop_close(loop);
    while (opened_count > 0)
        llm_close(opened[--opened_count]);
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
}

/* --- tests --- */

TEST(tasks_in_two_threads_do_not_disturb_each_other)
{
    struct loop loop;
    struct err err = ERR_INIT;
    struct tasks_threads *threads = open_threads(&loop);
    struct heard heard[2] = { { .ends = 0 }, { .ends = 0 } };
    struct tasks_thread *thread[2];
    for (int i = 0; i < 2; i++) {
        const struct tasks_question question = question_of(
            i ? "How many?" : "How much?", model_of(TYPED TYPED, NULL), /* keep= */ false);
        thread[i] = tasks_thread_new(threads, &heard[i]);
        CHECK(tasks_thread_begin(thread[i], &question, &err) == 0);
    }
    CHECK_INT(tasks_threads_running(threads), 2);
    for (int i = 0; i < 2; i++) {
        turn_until(&loop, &heard[i].ends, 1);
        CHECK_TEXT(heard[i].status, "unverified");
        CHECK_TEXT(heard[i].reason, "typed, not computed");
        CHECK_TEXT(heard[i].id, tasks_thread_id(thread[i]));
        CHECK(strncmp(heard[i].kinds, "task ", 5) == 0);
        CHECK(strstr(heard[i].kinds, "history ") != NULL);
        CHECK(!tasks_thread_has_agent(thread[i]));
    }
    CHECK(strcmp(heard[0].id, heard[1].id) != 0);
    CHECK_TEXT(heard[0].kinds, heard[1].kinds);
    CHECK_INT(tasks_threads_running(threads), 0);
    for (int i = 0; i < 2; i++)
        tasks_thread_free(thread[i]);
    close_threads(&loop, threads);
}

TEST(tasks_ask_further_with_the_same_agent)
{
    struct loop loop;
    struct err err = ERR_INIT;
    struct tasks_threads *threads = open_threads(&loop);
    struct heard heard = { .ends = 0 };
    struct tasks_thread *thread = tasks_thread_new(threads, &heard);
    struct tasks_question question = question_of("How much?", model_of(TYPED TYPED, NULL),
                                                 /* keep= */ true);
    CHECK(tasks_thread_begin(thread, &question, &err) == 0);
    turn_until(&loop, &heard.ends, 1);
    CHECK(tasks_thread_has_agent(thread) && !tasks_thread_runs(thread));
    CHECK_INT(tasks_thread_reply(thread, STR("nobody asked")), -1);
    question.engine = -1;
    question.models = (struct tasks_models){ 0 };
    question.task.question = "And now?";
    CHECK(tasks_thread_begin(thread, &question, &err) == 0);
    turn_until(&loop, &heard.ends, 2);
    CHECK_TEXT(heard.status, "failed"); /* no reply is left: the conversation went on */
    CHECK(strstr(heard.reason, "no further reply after its 2") != NULL);
    CHECK(tasks_thread_finish(thread, &err) == 0);
    turn_until(&loop, &heard.ends, 3);
    CHECK(!tasks_thread_has_agent(thread));
    tasks_thread_free(thread);
    close_threads(&loop, threads);
}

TEST(tasks_with_a_stuck_model_end_on_a_cancel)
{
    struct loop loop;
    struct err err = ERR_INIT;
    struct tasks_threads *threads = open_threads(&loop);
    struct heard heard = { .ends = 0 };
    struct tasks_thread *thread = tasks_thread_new(threads, &heard);
    const struct tasks_question question = question_of(
        "How much?", model_of(NULL, "exec:/bin/sleep 1000"), /* keep= */ false);
    CHECK(tasks_thread_begin(thread, &question, &err) == 0);
    while (!strstr(heard.kinds, "phase "))
        CHECK(loop_turn(&loop) == 0);
    tasks_thread_cancel(thread);
    turn_until(&loop, &heard.ends, 1);
    CHECK_TEXT(heard.status, "failed");
    tasks_thread_free(thread);
    close_threads(&loop, threads);
}

TEST(tasks_that_run_are_joined_at_the_close)
{
    struct loop loop;
    struct err err = ERR_INIT;
    struct tasks_threads *threads = open_threads(&loop);
    struct heard heard = { .ends = 0 };
    struct tasks_thread *thread = tasks_thread_new(threads, &heard);
    const struct tasks_question question = question_of(
        "How much?", model_of(NULL, "exec:/bin/sleep 1000"), /* keep= */ false);
    CHECK(tasks_thread_begin(thread, &question, &err) == 0);
    tasks_thread_cancel(thread);
    close_threads(&loop, threads);
    CHECK_INT(heard.ends, 0);
    tasks_thread_free(thread);
}

TEST(tasks_requests_name_the_field_that_is_wrong)
{
    static const struct {
        const char *body, *field;
    } rows[] = {
        { "{}", "question" },
        { "{\"question\":\" \"}", "question" },
        { "{\"question\":7}", "question" },
        { "{\"question\":\"x\",\"modell\":\"y\"}", "modell" },
        { "{\"question\":\"x\",\"wait\":1}", "wait" },
        { "{\"question\":\"x\",\"mode\":\"both\"}", "mode" },
        { "{\"question\":\"x\",\"schema\":[]}", "schema" },
        { "{\"question\":\"x\",\"budget\":{\"steps\":0}}", "budget.steps" },
        { "{\"question\":\"x\",\"budget\":{\"steps\":null}}", "budget.steps" },
        { "{\"question\":\"x\",\"budget\":{\"stepps\":1}}", "budget.stepps" },
        { "{\"question\":\"x\",\"limits\":{\"timeout_s\":-1}}", "limits.timeout_s" },
        { "{\"question\":\"x\",\"profile\":\"none\"}", "profile" },
        { "{\"question\":\"x\",\"files\":[{\"path\":\"../a\",\"text\":\"\"}]}", "files[0].path" },
    };
    const struct request_ceilings ceilings = { .host_memory_bytes = (int64_t)1 << 34 };
    for (size_t i = 0; i < array_len(rows); i++) {
        struct err err = ERR_INIT;
        struct tasks_request request;
        own_json body = json_loads(rows[i].body, 0, NULL);
        CHECK(tasks_request_read(body, &ceilings, &request, &err) < 0);
        CHECK_TEXT(err.field, rows[i].field);
    }
}

TEST(tasks_requests_take_every_field)
{
    struct err err = ERR_INIT;
    const struct request_ceilings ceilings = { .host_memory_bytes = (int64_t)1 << 34 };
    struct tasks_request request, reply;
    own_json body = json_loads("{\"question\":\"How much? \\n\",\"files\":[{\"path\":\"a.csv\","
                               "\"text\":\"x\\n1\\n\"}],\"budget\":{\"steps\":3,\"wall_s\":null},"
                               "\"mode\":\"tools\",\"conversation\":true,\"verify\":false,"
                               "\"schema\":{},\"instructions\":\"Be brief.\",\"judge\":\"off\","
                               "\"limits\":{\"timeout_s\":7}}",
                               0, NULL);
    CHECK(tasks_request_read(body, &ceilings, &request, &err) == 0);
    CHECK_TEXT(request.question.at, "How much?");
    CHECK_INT(request.made_of.file_count, 1);
    CHECK_INT(request.budget.steps, 3);
    CHECK(request.budget.wall_s < 0 && request.conversation && !request.verify && request.schema);
    CHECK_TEXT(request.instructions, "Be brief.");
    CHECK(!json_object_get(request.session, "files"));
    CHECK_TEXT(json_get_str(request.session, "profile").at, "analysis");
    own_json again = json_loads(
        "{\"question\":\"x\",\"files\":[{\"path\":\"a.csv\",\"text\":\"\"}]}", 0, NULL);
    CHECK(tasks_request_read_reply(again, &request, &ceilings, &reply, &err) < 0);
    CHECK_TEXT(err.field, "files.path");
    own_json text = json_loads("{\"text\":\"the first\"}", 0, NULL);
    CHECK(tasks_request_read_reply(text, &request, &ceilings, &reply, &err) == 0);
    CHECK_TEXT(reply.text, "the first");
    tasks_request_done(&reply);
    tasks_request_done(&request);
}
