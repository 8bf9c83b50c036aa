/* The command line of `cupel ask`, and how its events are drawn. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/own.h"
#include "check.h"
#include "cli/ask/ask_draw.h"
#include "cli/ask/ask_options.h"

static struct err err;

static int budget(const char *text, struct agent_budget *out)
{
    *out = AGENT_BUDGET_DEFAULT;
    err = ERR_INIT;
    return cli_ask_options_budget(text, out, &err);
}

TEST(cli_ask_budget_sets_what_it_names_and_nothing_else)
{
    struct agent_budget b;
    CHECK_INT(budget("steps=3,wall_s=1.5,model_s=9,execution_s=none,tokens=5000,usd=0.25,"
                     "artifact_bytes=2M",
                     &b),
              0);
    CHECK_INT(b.steps, 3);
    CHECK(b.wall_s == 1.5 && b.model_s == 9 && b.execution_s < 0 && b.money_usd == 0.25);
    CHECK_INT(b.tokens, 5000);
    CHECK_INT(b.artifact_bytes, 2 << 20);
    CHECK_INT(budget("0.50", &b), 0);
    CHECK(b.money_usd == 0.5 && b.steps == AGENT_BUDGET_DEFAULT.steps);
    CHECK_INT(budget("tokens=none,3", &b), 0);
    CHECK(b.money_usd == 3 && b.tokens == -1);
}

TEST(cli_ask_budget_refuses_by_field_value_and_bound)
{
    static const struct {
        const char *text, *field, *says;
    } cases[] = {
        { "steps=0", "budget.steps",
          "field 'budget.steps' is '0': allowed is a whole number, 1 to 1000" },
        { "steps=1001", "budget.steps", "'1001'" },
        { "steps=2.5", "budget.steps", "'2.5'" },
        { "steps=none", "budget.steps", "'none'" },
        { "wall_s=0.5", "budget.wall_s", "1 to 86400" },
        { "wall_s=1e3", "budget.wall_s", "'1e3'" },
        { "wall_s=-1", "budget.wall_s", "'-1'" },
        { "wall_s=inf", "budget.wall_s", "'inf'" },
        { "model_s=0", "budget.model_s", "1 to 864000" },
        { "execution_s=", "budget.execution_s", "''" },
        { "tokens=0", "budget.tokens", "'0'" },
        { "usd=0", "budget.usd", "0.0001" },
        { "0", "budget.usd", "'0'" },
        { "usd=.", "budget.usd", "'.'" },
        { "artifact_bytes=lots", "budget.artifact_bytes", "'lots'" },
        { "artifact_bytes=1025G", "budget.artifact_bytes", "1024G" },
        { "steps", "budget", "has no value" },
        { "1,50", "budget", "'usd' is given twice" },
        { "steps=2,wall_s=9,steps=3", "budget", "'steps' is given twice" },
        { "", "budget", "unknown budget ''" },
        { "steps=3,", "budget", "unknown budget ''" },
        { "money=3", "budget", "unknown budget 'money'" },
        { "steps=3,usd=x", "budget.usd", "'x'" },
    };
    struct agent_budget b;
    for (size_t i = 0; i < array_len(cases); i++) {
        CHECK_INT(budget(cases[i].text, &b), -1);
        CHECK_INT(err.kind, ERR_INPUT);
        CHECK_TEXT(err.field, cases[i].field);
        CHECK(strstr(err.text, cases[i].says));
        CHECK(err.bound[0]);
    }
    CHECK_INT(budget("stps=3", &b), -1);
    CHECK_TEXT(err.hint, "did you mean steps=?");
}

static int parse(struct cli_ask_options *out, int argc, const char *const *argv)
{
    static char room[16][64];
    static char *copy[16];
    for (int i = 0; i < argc; i++) {
        snprintf(room[i], sizeof room[i], "%s", argv[i]);
        copy[i] = room[i];
    }
    *out = CLI_ASK_OPTIONS_INIT;
    err = ERR_INIT;
    return cli_ask_options_parse(argc, copy, out, &err);
}

#define PARSE(into, ...)                                           \
    parse(into, (int)array_len(((const char *[]){ __VA_ARGS__ })), \
          (const char *[]){ __VA_ARGS__ })

TEST(cli_ask_takes_a_question_files_and_options)
{
    struct cli_ask_options o;
    CHECK_INT(PARSE(&o, "why?", "a.csv", "--max-steps", "3", "b.csv:in/b.csv", "--mode", "tools"),
              0);
    CHECK_TEXT(o.question, "why?");
    CHECK_INT(o.run.files.count, 2);
    CHECK_TEXT(o.run.files.at[1], "b.csv:in/b.csv");
    CHECK_INT(o.budget.steps, 3);
    CHECK_INT(o.mode, AGENT_TOOLS);
    CHECK_TEXT(o.run.profile, "analysis");
    CHECK(!o.planner && !o.model);
    CHECK_TEXT(o.judge, ""); /* the task's own */
    cli_ask_options_done(&o);
}

TEST(cli_ask_takes_the_model_of_planner_and_judge_or_none)
{
    struct cli_ask_options o;
    CHECK_INT(PARSE(&o, "--planner", "why?", "--judge", "off"), 0);
    CHECK_TEXT(o.planner, "");
    CHECK_TEXT(o.judge, NULL);
    CHECK_TEXT(o.question, "why?");
    cli_ask_options_done(&o);
    CHECK_INT(PARSE(&o, "--planner=small", "--judge", "replay:r.jsonl", "why?", "f.csv"), 0);
    CHECK_TEXT(o.planner, "small");
    CHECK_TEXT(o.judge, "replay:r.jsonl");
    CHECK_TEXT(o.question, "why?");
    CHECK_INT(o.run.files.count, 1);
    cli_ask_options_done(&o);
    CHECK_INT(PARSE(&o, "--", "--planner"), 0);
    CHECK_TEXT(o.question, "--planner");
    CHECK(!o.planner);
    cli_ask_options_done(&o);
}

TEST(cli_ask_refuses_what_does_not_fit_together)
{
    struct cli_ask_options o;
    CHECK_INT(PARSE(&o, "--mode", "fast", "why?"), -1);
    CHECK_TEXT(err.text, "option '--mode' takes code or tools, not 'fast'");
    cli_ask_options_done(&o);
    CHECK_INT(PARSE(&o, "--max-steps", "0", "why?"), -1);
    CHECK_TEXT(err.field, "budget.steps");
    cli_ask_options_done(&o);
    CHECK_INT(PARSE(&o, "--max-steps", "4", "--budget", "steps=5", "why?"), -1);
    CHECK(strstr(err.text, "cannot be combined"));
    cli_ask_options_done(&o);
    CHECK_INT(PARSE(&o, "--show", "t_1", "why?"), -1);
    CHECK(strstr(err.text, "takes no question"));
    cli_ask_options_done(&o);
    CHECK_INT(PARSE(&o, "-", "-"), -1);
    CHECK(strstr(err.text, "both question and file"));
    cli_ask_options_done(&o);
    CHECK_INT(PARSE(&o, "-q"), -1);
    CHECK_TEXT(err.text, "nothing to answer: give a question");
    cli_ask_options_done(&o);
}

/* --- drawing --- */

/* What a row of {kind, data} pairs, ended by NULL, puts on the two descriptors. */
static char *drawn(const char *const *events, bool quiet, bool second)
{
    int fds[2];
    fds[0] = memfd_create("progress", MFD_CLOEXEC);
    fds[1] = memfd_create("answer", MFD_CLOEXEC);
    struct cli_ask_draw draw;
    cli_ask_draw_init(&draw, fds[0], fds[1], quiet, /* live= */ false);
    for (; events[0]; events += 2) {
        own_json data = json_read(str_of(events[1]), 1 << 20, &err);
        CHECK(data != NULL);
        cli_ask_draw_event(&draw, events[0], data);
    }
    cli_ask_draw_done(&draw);
    static char text[1 << 16];
    ssize_t n = pread(fds[second], text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = 0;
    close(fds[0]);
    close(fds[1]);
    return text;
}

static const char *const whole[] = {
    "task",
    "{\"task\":\"t_1\",\"question\":\"why?\",\"model\":\"replay:r\",\"scripted\":true,\"files\":"
    "[{\"path\":\"a.csv\",\"size_bytes\":10}],\"budget\":{\"steps\":12,\"wall_s\":600,"
    "\"money_usd\":null,\"artifact_bytes\":1024}}",
    "phase", "{\"phase\":\"generate\"}", "text", "{\"text\":\"secret thoughts\"}",
    "plan",
    "{\"steps\":[\"Load it.\",\"Count.\"]}",
    "code", "{\"n\":1,\"code\":\"x = 1\\nprint(x)\\n\",\"purpose\":\"count\"}",
    "output", "{\"stream\":\"stdout\",\"text\":\"1\\nunfin\"}",
    "output", "{\"stream\":\"stderr\",\"text\":\"warned\\n\"}",
    "output", "{\"stream\":\"stdout\",\"text\":\"ished\"}",
    "repair", "{\"why\":\"told in the cell\",\"attempt\":1,\"of\":3}",
    "step",
    "{\"n\":1,\"run\":\"r_1\",\"status\":\"ok\",\"state\":\"kept\",\"result\":{\"metrics\":"
    "{\"wall_ms\":12.4},\"results\":[{\"text/plain\":\"42\"}],\"names_added\":[{\"name\":\"x\","
    "\"type\":\"int\"},{\"name\":\"d\",\"type\":\"DataFrame\",\"shape\":[12,3]}],"
    "\"artifacts\":[{\"path\":\"c.png\"}]}}",
    "budget", "{\"steps_left\":11,\"wall_s_left\":598.4,\"artifact_bytes_left\":7}",
    "repair", "{\"why\":\"KeyError\",\"attempt\":1,\"of\":3}",
    "wait", "{\"why\":\"rate_limit\",\"seconds\":2}",
    "check", "{\"check\":\"values\",\"outcome\":\"pass\",\"detail\":\"1 of 1\"}",
    "check", "{\"check\":\"rerun\",\"outcome\":\"fail\",\"detail\":\"\"}",
    "repair", "{\"why\":\"rerun\",\"attempt\":2,\"of\":3}",
    "step",
    "{\"n\":2,\"status\":\"error\",\"state\":\"rolled_back\",\"result\":{\"metrics\":"
    "{\"wall_ms\":1250},\"error\":{\"name\":\"KeyError\",\"message\":\"'x'\",\"line\":3},"
    "\"names_added\":[{\"name\":\"gone\",\"type\":\"int\"}]}}",
    "check", "{\"check\":\"judge\",\"outcome\":\"no_verdict\",\"detail\":\"\"}",
    "later", "{\"of\":\"another version\"}",
    "end",
    "{\"status\":\"unverified\",\"answer\":\"It is 1.\",\"reason\":\"rerun\",\"evidence\":"
    "[{\"run\":\"r_1\"},{\"run\":null}],\"artifacts\":[{\"path\":\"c.png\",\"size_bytes\":2048}],"
    "\"cost\":{\"usd\":0.0123,\"requests\":2,\"input_tokens\":100,\"output_tokens\":20,"
    "\"wall_s\":1.23}}",
    NULL,
};

TEST(cli_ask_draws_a_task_line_by_line)
{
    CHECK_TEXT(drawn(whole, false, 0),
               "why?\n"
               "model  replay:r, a scripted model: its replies are recorded, all else is real\n"
               "budget 12 steps, 600 s, 1.0 KiB of files\n"
               "file   a.csv (10 B)\n"
               "plan   Load it.\n"
               "       Count.\n"
               "step 1: count\n"
               "    x = 1\n"
               "    print(x)\n"
               "  | 1\n"
               "  | warned\n"
               "  | unfinished\n"
               "  = 42\n"
               "  ok in 12 ms; new x (int), d (DataFrame 12×3); made c.png\n"
               "repair 1 of 3: told in the cell\n"
               "left   11 steps, 598 s\n"
               "repair 1 of 3: KeyError\n"
               "wait   2.0 s: rate_limit\n"
               "checks\n"
               "  ✓ values: 1 of 1\n"
               "  ✗ rerun\n"
               "repair 2 of 3: rerun\n"
               "  error in 1.2 s: KeyError: 'x' (line 3); state rolled back\n"
               "checks\n"
               "  ? judge, no verdict\n"
               "\n"
               "\n"
               "unverified: an answer that is typed or not proven\n"
               "  reason: rerun\n"
               "evidence r_1\n"
               "made     c.png (2.0 KiB)\n"
               "cost     $0.0123; 2 requests, 100 tokens in, 20 out; 1.2 s\n");
    CHECK_TEXT(drawn(whole, false, 1), "It is 1.\n");
}

TEST(cli_ask_says_when_quiet_only_why_there_is_no_answer)
{
    static const char *const failed[] = {
        "code", "{\"n\":1,\"code\":\"x\"}",
        "end", "{\"status\":\"stuck\",\"answer\":null,\"reason\":\"three times\"}", NULL };
    CHECK_TEXT(drawn(whole, true, 0), "");
    CHECK_TEXT(drawn(whole, true, 1), "It is 1.\n");
    CHECK_TEXT(drawn(failed, true, 0),
               "stuck: repairs did not help, a person must take over\n  reason: three times\n");
    CHECK_TEXT(drawn(failed, true, 1), "");
}

TEST(cli_ask_lets_no_text_drive_the_terminal)
{
#define EVIL "\\u001b]0;e\\u0007\\r\\u009b2J\\u202e"
    static const char *const events[] = {
        "task", "{\"question\":\"" EVIL "\",\"model\":\"" EVIL "\","
                "\"files\":[{\"path\":\"" EVIL "\"}]}",
        "plan", "{\"steps\":[\"" EVIL "\"]}",
        "code", "{\"n\":1,\"code\":\"" EVIL "\",\"purpose\":\"" EVIL "\"}",
        "output", "{\"stream\":\"stdout\",\"text\":\"" EVIL "\"}",
        "step", "{\"status\":\"" EVIL "\",\"result\":{\"results\":[{\"text/plain\":\"" EVIL "\"}],"
                "\"error\":{\"name\":\"" EVIL "\",\"message\":\"" EVIL "\"},"
                "\"names_added\":[{\"name\":\"" EVIL "\",\"type\":\"" EVIL "\"}],"
                "\"artifacts\":[{\"path\":\"" EVIL "\"}]}}",
        "step", "{\"status\":\"not_run\",\"result\":null,\"observation\":\"" EVIL "\"}",
        "repair", "{\"why\":\"" EVIL "\"}",
        "wait", "{\"why\":\"" EVIL "\"}",
        "check", "{\"check\":\"" EVIL "\",\"outcome\":\"pass\",\"detail\":\"" EVIL "\"}",
        "end", "{\"status\":\"" EVIL "\",\"answer\":\"" EVIL "\",\"reason\":\"" EVIL "\","
               "\"hint\":\"" EVIL "\",\"evidence\":[{\"run\":\"" EVIL "\"}],"
               "\"artifacts\":[{\"path\":\"" EVIL "\"}]}",
        NULL };
    for (int second = 0; second < 2; second++) {
        const char *text = drawn(events, false, second);
        CHECK(strstr(text, "\\x1b]0;e\\x07\\r\\x9b2J\\u202e"));
        for (const char *at = text; *at; at++)
            CHECK((unsigned char)*at >= ' ' || *at == '\n');
        CHECK(!strstr(text, "\xc2\x9b") && !strstr(text, "\xe2\x80\xae"));
    }
}

TEST(cli_ask_cuts_long_code_and_long_output)
{
    own_buf code = BUF_INIT(1 << 20), output = BUF_INIT(1 << 20);
    buf_add_text(&code, "{\"n\":1,\"code\":\"");
    buf_add_text(&output, "{\"stream\":\"stdout\",\"text\":\"");
    for (int i = 1; i <= 100; i++) {
        buf_printf(&code, "c%d\\n", i);
        buf_printf(&output, "o%d\\n", i);
    }
    buf_add_text(&code, "\"}");
    buf_add_text(&output, "\"}");
    const char *const events[] = { "code", code.at, "output", output.at,
                                   "step", "{\"status\":\"ok\",\"result\":{}}", NULL };
    const char *text = drawn(events, false, 0);
    CHECK(strstr(text, "   10 c10\n    … 86 more lines\n   97 c97\n"));
    CHECK(strstr(text, "  100 c100\n  | o1\n"));
    CHECK(strstr(text, "  | o30\n  | … 70 more lines\n  ok\n"));
}

TEST(cli_ask_draws_events_of_any_shape)
{
    static const char *const kinds[] = { "task", "plan", "text", "phase", "code", "output", "step",
                                         "repair", "wait", "check", "budget", "end" };
    static const char *const shapes[] = {
        "{}", "[]", "{\"steps\":3,\"files\":{},\"requirements\":[1,null],\"code\":1,\"n\":\"x\"}",
        "{\"result\":{\"metrics\":[],\"results\":{},\"error\":1,\"names_added\":[1],"
        "\"artifacts\":[null]}}",
        "{\"evidence\":[1],\"artifacts\":[2],\"cost\":{\"usd\":\"x\"},\"answer\":5,"
        "\"status\":null}",
        "{\"steps\":[1],\"results\":[],\"code\":\"\",\"text\":\"\",\"stream\":4}",
    };
    for (size_t i = 0; i < array_len(kinds); i++)
        for (size_t j = 0; j < array_len(shapes); j++) {
            const char *const events[] = { kinds[i], shapes[j], NULL };
            CHECK(drawn(events, false, 0) != NULL);
        }
}
