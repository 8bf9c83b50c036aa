/* Models that need no server: replay: and exec:. */
#include "check.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/json.h"
#include "base/own.h"
#include "llm/llm.h"

/* A file that is gone at the end of the test. */
struct place {
    char path[64];
};

static struct place made(const char *text, mode_t mode)
{
    struct place place = { "/tmp/cupel-unit-XXXXXX" };
    own_fd fd = mkstemp(place.path);
    CHECK(fd >= 0);
    CHECK(io_write_all(fd, text, strlen(text)) == 0 && fchmod(fd, mode) == 0);
    return place;
}

static void gone(struct place *place)
{
    unlink(place->path);
}
#define own_place attr_cleanup(gone) struct place

static void done(struct llm_model **model)
{
    llm_close(*model);
}
#define own_model attr_cleanup(done) struct llm_model *
#define own_reply attr_cleanup(llm_reply_done) struct llm_reply

static struct llm_model *opened(const char *kind, const char *path)
{
    struct err err = ERR_INIT;
    struct llm_model *model = NULL;
    char spec[256];
    snprintf(spec, sizeof spec, "%s:%s", kind, path);
    if (llm_open(spec, &model, &err) < 0)
        check_failed(__FILE__, __LINE__, "%s: %s", spec, err.text);
    CHECK_TEXT(llm_name(model), spec);
    return model;
}

static struct err refused(const char *spec)
{
    struct err err = ERR_INIT;
    own_model model = NULL;
    if (llm_open(spec, &model, &err) == 0 && llm_ready(model, &err) == 0)
        check_failed(__FILE__, __LINE__, "'%s' was opened", spec);
    return err;
}

static struct llm_reply asked(struct llm_model *model, int64_t deadline_ms)
{
    struct llm_reply reply;
    own_json messages = json_pack("[{s:s,s:[{s:s,s:s}]}]", "role", "user", "content", "type",
                                  "text", "text", "What is 2+2?");
    struct llm_request request = { .instructions = "Be brief.",
                                   .messages = messages,
                                   .deadline_ms = deadline_ms };
    llm_ask(model, &request, NULL, &reply);
    return reply;
}

TEST(llm_replay_serves_lines_in_order)
{
    own_place file = made("{\"text\":\"one\"}\n\n{\"text\":\"two\",\"extra\":1}\r\n"
                          "{\"text\":\"\",\"tool_calls\":[{\"name\":\"python\","
                          "\"arguments\":{\"code\":\"1\"}}],"
                          "\"usage\":{\"input_tokens\":7,\"output_tokens\":2}}",
                          0600);
    own_model model = opened("replay", file.path);
    CHECK(llm_is_scripted(model) && !llm_sees(model));
    own_reply one = asked(model, 0);
    CHECK_INT(one.outcome, LLM_OK);
    CHECK_TEXT(one.text, "one");
    CHECK_INT(one.usage.input, -1);
    CHECK(one.cost_usd < 0);
    own_reply two = asked(model, 0);
    CHECK_TEXT(two.text, "two");
    own_reply three = asked(model, 0);
    CHECK_TEXT(three.text, "");
    CHECK_INT(three.stop, LLM_STOP_TOOLS);
    CHECK_INT(three.usage.input, 7);
    CHECK_INT(three.usage.output, 2);
    const json_t *call = json_array_get(three.content, 0);
    CHECK_TEXT(json_string_value(json_object_get(call, "type")), "tool_call");
    CHECK(json_str(json_object_get(call, "id")).len > 0);
    own_reply four = asked(model, 0);
    CHECK_INT(four.outcome, LLM_EXHAUSTED);
    CHECK(four.content == NULL && four.hint[0]);
}

TEST(llm_counts_that_no_model_can_have_used_are_not_told)
{
    own_place file = made("{\"text\":\"a\",\"usage\":{\"input_tokens\":9223372036854775807,"
                          "\"cache_read_tokens\":9223372036854775807,\"output_tokens\":-1,"
                          "\"cache_write_tokens\":1000000000000}}\n",
                          0600);
    own_model model = opened("replay", file.path);
    own_reply reply = asked(model, 0);
    CHECK_INT(reply.outcome, LLM_OK);
    CHECK_INT(reply.usage.input, -1);
    CHECK_INT(reply.usage.cache_read, -1);
    CHECK_INT(reply.usage.output, -1);
    CHECK_INT(reply.usage.cache_write, 1000000000000);
}

TEST(llm_replay_takes_an_array)
{
    own_place file = made(" [{\"text\":\"a\"},\n {\"text\":\"b\"}]\n", 0600);
    own_model model = opened("replay", file.path);
    own_reply one = asked(model, 0), two = asked(model, 0), three = asked(model, 0);
    CHECK_TEXT(one.text, "a");
    CHECK_TEXT(two.text, "b");
    CHECK_INT(three.outcome, LLM_EXHAUSTED);
}

TEST(llm_replay_faults_are_found_before_it_is_asked)
{
    own_place bad = made("{\"text\":\"a\"}\n{oops\n", 0600), list = made("[1]", 0600);
    char spec[256];
    CHECK_INT(refused("replay:/nowhere/at/all").kind, ERR_ABSENT);
    CHECK_INT(refused("replay:").kind, ERR_USAGE);
    snprintf(spec, sizeof spec, "replay:%s", bad.path);
    CHECK(strstr(refused(spec).text, "line 2"));
    snprintf(spec, sizeof spec, "replay:%s", list.path);
    CHECK_INT(refused(spec).kind, ERR_INPUT);
}

TEST(llm_replay_of_an_odd_reply_is_garbage)
{
    own_place file = made("{}\n{\"text\":1}\n{\"text\":\"x\",\"tool_calls\":[{\"name\":\"f\","
                          "\"arguments\":\"{cut\"}]}\n{\"tool_calls\":{}}\n",
                          0600);
    own_model model = opened("replay", file.path);
    for (int i = 0; i < 4; i++) {
        own_reply reply = asked(model, 0);
        CHECK_INT(reply.outcome, LLM_GARBAGE);
        CHECK(reply.detail[0] && reply.hint[0]);
    }
}

TEST(llm_exec_gives_the_request_and_takes_a_reply)
{
    own_place program = made("#!/usr/bin/python3\nimport json, sys\nr = json.load(sys.stdin)\n"
                             "m = r['messages'][0]\n"
                             "print(json.dumps({'text': r['system'] + m['role'] + m['content'] +"
                             " str(r['tools']), 'usage': {'output_tokens': 3}}))\n",
                             0700);
    own_model model = opened("exec", program.path);
    for (int i = 0; i < 2; i++) {
        own_reply reply = asked(model, 0);
        CHECK_INT(reply.outcome, LLM_OK);
        CHECK_TEXT(reply.text, "Be brief.userWhat is 2+2?[]");
        CHECK_INT(reply.usage.output, 3);
    }
}

TEST(llm_exec_output_that_is_no_json_is_the_text)
{
    own_model model = opened("exec", "echo two words");
    own_reply reply = asked(model, 0);
    CHECK_INT(reply.outcome, LLM_OK);
    CHECK_TEXT(reply.text, "two words");
}

TEST(llm_exec_program_gets_no_key)
{
    setenv("ANTHROPIC_API_KEY", "sk-secret", 1);
    setenv("OPENAI_API_KEY", "sk-secret", 1);
    setenv("CUPEL_UNIT_OTHER", "kept", 1);
    own_model model = opened("exec", "env");
    own_reply reply = asked(model, 0);
    CHECK_INT(reply.outcome, LLM_OK);
    CHECK(!strstr(reply.text, "sk-secret"));
    CHECK(strstr(reply.text, "CUPEL_UNIT_OTHER=kept"));
}

TEST(llm_text_after_a_nul_is_not_hidden)
{
    own_place file = made("{\"text\":\"\\u0000one\\u0000\\u0000two\\u0000\"}\n", 0600);
    own_model model = opened("replay", file.path);
    own_reply reply = asked(model, 0);
    CHECK_TEXT(reply.text, "\ufffdone\ufffd\ufffdtwo\ufffd");
    own_model program = opened("exec", "printf a\\000b");
    own_reply said = asked(program, 0);
    CHECK_TEXT(said.text, "a\ufffdb");
}

TEST(llm_exec_failures_have_an_outcome)
{
    static const struct {
        const char *command;
        enum llm_outcome outcome;
        const char *detail;
    } rows[] = {
        { "false", LLM_GARBAGE, "exit code 1" },
        { "true", LLM_GARBAGE, "wrote nothing" },
        { "/nowhere/at/all", LLM_UNKNOWN_MODEL, "cannot be run" },
        { "cat /dev/zero", LLM_TOO_LONG, "more than a reply" },
        { "ls /no-such-folder", LLM_GARBAGE, "No such file" },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        own_model model = opened("exec", rows[i].command);
        own_reply reply = asked(model, 0);
        CHECK_INT(reply.outcome, rows[i].outcome);
        if (!strstr(reply.detail, rows[i].detail))
            check_failed(__FILE__, __LINE__, "%s: %s", rows[i].command, reply.detail);
    }
}

TEST(llm_exec_is_ended_at_the_deadline_and_can_be_asked_again)
{
    own_place mark = made("", 0600);
    own_place program = made("#!/bin/sh\n[ -e \"$1\" ] && { sleep 600 & sleep 600; }\necho ok\n",
                             0700);
    char command[256];
    snprintf(command, sizeof command, "%s %s", program.path, mark.path);
    own_model model = opened("exec", command);
    own_reply late = asked(model, clock_now_ns() / 1000000 + 300);
    CHECK_INT(late.outcome, LLM_TIMEOUT);
    CHECK(late.hint[0]);
    unlink(mark.path);
    own_reply again = asked(model, 0);
    CHECK_TEXT(again.text, "ok");
}

TEST(llm_exec_is_cancelled)
{
    struct llm_reply reply;
    own_fd timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    struct itimerspec soon = { .it_value = { .tv_nsec = 200000000 } };
    CHECK(timer >= 0 && timerfd_settime(timer, 0, &soon, NULL) == 0);
    own_model model = opened("exec", "sleep 600");
    own_json messages = json_array();
    struct llm_request request = { .messages = messages };
    struct llm_watch watch = { .cancel_fd = timer };
    for (int i = 0; i < 2; i++) { /* while it runs, then before */
        llm_ask(model, &request, &watch, &reply);
        CHECK_INT(reply.outcome, LLM_CANCELLED);
        CHECK_INT(reply.tries, 1 - i);
        llm_reply_done(&reply);
    }
}

TEST(llm_without_a_model_says_how_to_have_one)
{
    static const char *const variables[] = { "CUPEL_MODEL", "ANTHROPIC_API_KEY", "OPENAI_API_KEY",
                                             "OPENROUTER_API_KEY" };
    for (size_t i = 0; i < array_len(variables); i++)
        unsetenv(variables[i]);
    setenv("XDG_CONFIG_HOME", "/nowhere", 1);
    struct err err = refused(NULL);
    CHECK_INT(err.kind, ERR_ABSENT);
    CHECK(strstr(err.hint, "CUPEL_MODEL"));
}
