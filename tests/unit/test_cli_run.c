/* The command line of `cupel run` as far as it is pure: -f, rules, languages. */
#include <string.h>

#include "base/attr.h"
#include "base/base64.h"
#include "base/own.h"
#include "cli/run/figures.h"
#include "cli/run/run_inputs.h"
#include "cli/run/run_options.h"
#include "cli/run/run_request.h"
#include "check.h"

static const char *only_file;

static bool is_only_file(const char *host)
{
    return only_file && strcmp(host, only_file) == 0;
}

TEST(cli_run_file_spec_is_taken_apart)
{
    static const struct {
        const char *text, *exists, *host, *path;
        bool readonly;
    } cases[] = {
        { "data.csv", NULL, "data.csv", "data.csv", false },
        { "/a/b/data.csv", NULL, "/a/b/data.csv", "data.csv", false },
        { "data.csv:ro", NULL, "data.csv", "data.csv", true },
        { "data.csv:in/x.csv", NULL, "data.csv", "in/x.csv", false },
        { "data.csv:in/x.csv:ro", NULL, "data.csv", "in/x.csv", true },
        { "data.csv:in/", NULL, "data.csv", "in/data.csv", false },
        { "data.csv:/workspace/x.csv", NULL, "data.csv", "x.csv", false },
        { "data.csv:/workspace/", NULL, "data.csv", "data.csv", false },
        { "a:b", "a:b", "a:b", "a:b", false },
        { "a:b:c", "a:b", "a:b", "c", false },
        { "a:ro", "a:ro", "a:ro", "a:ro", false },
        { "a:ro:ro", "a:ro", "a:ro", "a:ro", true },
    };
    for (size_t i = 0; i < array_len(cases); i++) {
        struct cli_run_spec spec = { 0 };
        struct err err = ERR_INIT;
        only_file = cases[i].exists;
        CHECK_INT(cli_run_spec_parse(cases[i].text, is_only_file, &spec, &err), 0);
        CHECK_TEXT(spec.host, cases[i].host);
        CHECK_TEXT(spec.path, cases[i].path);
        CHECK_INT(spec.readonly, cases[i].readonly);
        cli_run_spec_done(&spec);
    }
}

TEST(cli_run_file_spec_without_a_file_is_refused)
{
    static const char *const cases[] = { "", ":x", "a:", ":ro" };
    for (size_t i = 0; i < array_len(cases); i++) {
        struct cli_run_spec spec = { 0 };
        struct err err = ERR_INIT;
        only_file = NULL;
        CHECK_INT(cli_run_spec_parse(cases[i], is_only_file, &spec, &err), -1);
        CHECK_INT(err.kind, ERR_USAGE);
    }
}

static int parse(struct err *err, const char *a, const char *b, const char *c, const char *d)
{
    const char *all[] = { a, b, c, d };
    static char room[4][32];
    static char *argv[4];
    int argc = 0;
    for (; argc < 4 && all[argc]; argc++) {
        snprintf(room[argc], sizeof room[argc], "%s", all[argc]);
        argv[argc] = room[argc];
    }
    struct cli_run_options options = CLI_RUN_OPTIONS_INIT;
    *err = ERR_INIT;
    int rc = cli_run_options_parse(argc, argv, &options, err);
    cli_run_options_done(&options);
    return rc;
}

TEST(cli_run_options_that_contradict_are_refused)
{
    struct err err;
    CHECK_INT(parse(&err, "print(1)", NULL, NULL, NULL), 0);
    CHECK_INT(parse(&err, NULL, NULL, NULL, NULL), -1);
    CHECK_INT(parse(&err, "--request", "-", "-t", "5"), -1);
    CHECK_TEXT(err.text, "options '--request' and '--timeout' cannot be combined");
    CHECK_INT(parse(&err, "--request", "r.json", "print(1)", NULL), -1);
    CHECK_INT(parse(&err, "--request", "r.json", "--json", "-q"), 0);
    CHECK_INT(parse(&err, "-", "--stdin", "-", NULL), -1);
    CHECK_INT(parse(&err, "-c", "pass", "--stdin", "-"), 0);
    CHECK_INT(parse(&err, "-c", "pass", "-e", "HOME"), -1);
    CHECK_TEXT(err.text, "option '--env' takes NAME=VALUE, not 'HOME'");
    CHECK(strstr(err.hint, "-e HOME=\"$HOME\""));
    CHECK_INT(parse(&err, "-c", "pass", "-e", "=x"), -1);
    CHECK_INT(parse(&err, "-c", "pass", "-e", "A="), 0);
}

TEST(cli_run_shebang_names_a_language)
{
    CHECK_INT(cli_run_request_shebang(STR("#!/bin/bash\necho")), REQUEST_BASH);
    CHECK_INT(cli_run_request_shebang(STR("#!/usr/bin/env python3.11\n")), REQUEST_PYTHON);
    CHECK_INT(cli_run_request_shebang(STR("#!/usr/bin/env -S node --x")), REQUEST_JAVASCRIPT);
    CHECK_INT(cli_run_request_shebang(STR("#!/usr/bin/perl\nbash")), -1);
    CHECK_INT(cli_run_request_shebang(STR("print(1)")), -1);
    CHECK_INT(cli_run_request_shebang(STR("#!")), -1);
}

TEST(base64_decodes_or_gives_nothing)
{
    size_t len = 0;
    own_str plain = base64_decode(STR("aGVsbG8="), &len);
    CHECK(plain && len == 5 && memcmp(plain, "hello", 5) == 0);
    own_str lines = base64_decode(STR("aGVs\nbG8="), &len);
    CHECK(lines && len == 5);
    CHECK(!base64_decode(STR("aGV*bG8="), &len));
    CHECK(!base64_decode(STR("aG=sbG8="), &len));
    own_str empty = base64_decode(STR(""), &len);
    CHECK(empty && len == 0);
}
