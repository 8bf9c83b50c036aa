/* What a build is asked to add, locks, and the configuration's word on it. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/json.h"
#include "image/make/debian.h"
#include "image/make/child.h"
#include "image/make/lock.h"
#include "image/make/policy.h"
#include "image/make/want.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define B64                                                                                        \
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=="

static const struct {
    enum make_kind kind;
    const char *text;
    bool good, pinned;
    const char *name;
} want_rows[] = {
    { MAKE_PIP, "polars", true, false, "polars" },
    { MAKE_PIP, " Foo_Bar.baz>=1,<2 ", true, false, "foo-bar-baz" },
    { MAKE_PIP, "a==1.0", true, true, "a" },
    { MAKE_PIP, "a == 1.0rc1+local", true, true, "a" },
    { MAKE_PIP, "a===1.0", true, true, "a" },
    { MAKE_PIP, "a==1.*", true, false, "a" },
    { MAKE_PIP, "a==1.0,!=2", true, false, "a" },
    { MAKE_PIP, "a (>=1)", true, false, "a" },
    { MAKE_PIP, "pandas[excel, plot]==2.0.0; python_version > '3.8'", true, true, "pandas" },
    { MAKE_PIP, "a; python_version<'3' --config-settings=x=y", false, false, NULL },
    { MAKE_PIP, "", false, false, NULL },
    { MAKE_PIP, "-r", false, false, NULL },
    { MAKE_PIP, "--index-url=x", false, false, NULL },
    { MAKE_PIP, "./a.whl", false, false, NULL },
    { MAKE_PIP, "a @ file:///a.whl", false, false, NULL },
    { MAKE_PIP, "git+https://h/a", false, false, NULL },
    { MAKE_PIP, "a[", false, false, NULL },
    { MAKE_PIP, "a[]", false, false, NULL },
    { MAKE_PIP, "a>", false, false, NULL },
    { MAKE_PIP, "a=1", false, false, NULL },
    { MAKE_PIP, "a)", false, false, NULL },
    { MAKE_PIP, "a;", false, false, NULL },
    { MAKE_PIP, "a b", false, false, NULL },
    { MAKE_PIP, "a\n-e .", false, false, NULL },
    { MAKE_PIP, "a-", false, false, NULL },
    { MAKE_PIP, "\xc3\xa9", false, false, NULL },
    { MAKE_NPM, "zod", true, false, "zod" },
    { MAKE_NPM, "zod@1.2.3", true, true, "zod" },
    { MAKE_NPM, "zod@^1.2.3", true, false, "zod" },
    { MAKE_NPM, "zod@1.2.x", true, false, "zod" },
    { MAKE_NPM, "zod@latest", true, false, "zod" },
    { MAKE_NPM, "@scope/zod@1.2.3-rc.1", true, true, "@scope/zod" },
    { MAKE_NPM, "zod@>=1 <2 || 3", true, false, "zod" },
    { MAKE_NPM, "zod@", false, false, NULL },
    { MAKE_NPM, "zod@file:x", false, false, NULL },
    { MAKE_NPM, "a@npm:b", false, false, NULL },
    { MAKE_NPM, "./zod", false, false, NULL },
    { MAKE_NPM, "a/b", false, false, NULL },
    { MAKE_NPM, "@scope", false, false, NULL },
    { MAKE_NPM, "@/a", false, false, NULL },
    { MAKE_NPM, "@s/../a", false, false, NULL },
    { MAKE_NPM, "..", false, false, NULL },
    { MAKE_NPM, "--prefix", false, false, NULL },
    { MAKE_NPM, "zod@-g", false, false, NULL },
    { MAKE_APT, "ripgrep", true, false, "ripgrep" },
    { MAKE_APT, "libstdc++6=12.2.0-14", true, true, "libstdc++6" },
    { MAKE_APT, "a", false, false, NULL },
    { MAKE_APT, "Ripgrep", false, false, NULL },
    { MAKE_APT, "ripgrep-", false, false, NULL },
    { MAKE_APT, "ripgrep=", false, false, NULL },
    { MAKE_APT, "ripgrep/sid", false, false, NULL },
    { MAKE_APT, "./a.deb", false, false, NULL },
    { MAKE_APT, "-oDir=x", false, false, NULL },
    { MAKE_APT, "rip*", false, false, NULL },
};

TEST(make_takes_names_of_packages_and_nothing_else)
{
    for (size_t i = 0; i < array_len(want_rows); i++) {
        own_make_wants wants = { 0 };
        struct err err = ERR_INIT;
        bool good = make_wants_add(&wants, want_rows[i].kind, str_of(want_rows[i].text), &err) == 0;
        if (good != want_rows[i].good ||
            (good && (wants.at[0].pinned != want_rows[i].pinned ||
                      strcmp(wants.at[0].name, want_rows[i].name) != 0)))
            check_failed(__FILE__, __LINE__, "'%s' of %s", want_rows[i].text,
                         make_kind_names[want_rows[i].kind]);
        if (!good && (err.kind != ERR_INPUT || !err.hint[0]))
            check_failed(__FILE__, __LINE__, "'%s' is refused without a hint", want_rows[i].text);
    }
}

TEST(make_reads_files_of_requirements)
{
    static const char text[] = "# all\n\npolars>=1  # fast\nnumpy==1.0 \\\n"
                               "    --hash=sha256:" HEX " \\\n    --hash=sha256:" HEX "\n"
                               "pandas ; python_version > '3.8'\r\n";
    own_make_wants wants = { 0 };
    struct err err = ERR_INIT;
    CHECK_INT(make_wants_add_file(&wants, str_of(text), "r.txt", &err), 0);
    CHECK_INT(wants.count, 3);
    CHECK_TEXT(wants.at[0].text, "polars>=1");
    CHECK(wants.at[1].hashed && wants.at[1].pinned);
    CHECK_TEXT(wants.at[2].name, "pandas");
    CHECK_INT(make_wants_add_file(&wants, STR("\xef\xbb\xbfzod\r\n"), "r.txt", &err), 0);
    CHECK_TEXT(wants.at[3].name, "zod");
}

TEST(make_refuses_more_packages_than_a_build_adds)
{
    own_make_wants wants = { 0 };
    struct err err = ERR_INIT;
    own_buf text = BUF_INIT(1 << 20);
    for (int i = 0; i <= MAKE_WANTS_MAX; i++)
        CHECK_INT(buf_printf(&text, "a%d\n", i), 0);
    CHECK_INT(make_wants_add_file(&wants, buf_str(&text), "r.txt", &err), -1);
    CHECK(strstr(err.text, "line 2001 of 'r.txt' is one package too many"));
}

TEST(make_refuses_lines_by_their_number)
{
    static const char *const lines[] = { "-r other.txt", "-e .", "--index-url x", "file:///a.whl",
                                         "a @ git+https://h/a", "a==1 --hash=sha256",
                                         "a==1 --hash=sha256:" HEX " --global-option=x" };
    for (size_t i = 0; i < array_len(lines); i++) {
        own_make_wants wants = { 0 };
        struct err err = ERR_INIT;
        own_buf text = BUF_INIT(4096);
        CHECK_INT(buf_printf(&text, "good\n\n%s\nlast\n", lines[i]), 0);
        if (make_wants_add_file(&wants, buf_str(&text), "r.txt", &err) == 0 ||
            !strstr(err.text, "line 3 of 'r.txt'"))
            check_failed(__FILE__, __LINE__, "'%s': %s", lines[i], err.text);
    }
}

static const char good_lock[] =
    "{\"schema\":1,\"base\":\"host\",\"python\":\"3.11\",\"platform\":\"x86_64-glibc\","
    "\"pip\":[{\"name\":\"B_c\",\"version\":\"1.0\",\"sha256\":\"" HEX "\"},"
    "{\"name\":\"a\",\"version\":\"1!2.0+x\",\"sha256\":\"" HEX "\"}],"
    "\"npm\":[{\"path\":\"node_modules/a/node_modules/@s/b\",\"version\":\"1.0.0\","
    "\"integrity\":\"sha512-" B64 "\",\"name\":\"c\"}],"
    "\"apt\":[{\"name\":\"libc6\",\"version\":\"1:2.0~a-1\",\"sha256\":\"" HEX "\"}]}";

TEST(make_locks_read_back_as_they_were_written)
{
    own_make_lock lock = { 0 }, again = { 0 };
    struct err err = ERR_INIT;
    CHECK_INT(make_lock_read(str_of(good_lock), &lock, &err), 0);
    CHECK_TEXT(lock.items[MAKE_PIP][0].name, "a"); /* sorted */
    CHECK_TEXT(lock.items[MAKE_PIP][1].name, "b-c");
    CHECK_TEXT(make_npm_name(lock.items[MAKE_NPM][0].name), "@s/b");
    CHECK_TEXT(lock.items[MAKE_NPM][0].alias, "c");
    own_json value = make_lock_to_json(&lock);
    CHECK_INT(make_lock_from_json(value, &again, &err), 0);
    own_json second = make_lock_to_json(&again);
    CHECK(json_equal(value, second));
}

TEST(make_refuses_locks_that_are_none)
{
    static const struct {
        const char *from, *to;
    } edits[] = {
        { "\"schema\":1", "\"schema\":2" },
        { "\"base\":\"host\"", "\"base\":\"/host\"" },
        { "\"base\":\"host\"", "\"other\":\"host\"" },
        { "\"name\":\"B_c\"", "\"name\":\"a\"" }, /* twice */
        { "\"name\":\"B_c\"", "\"name\":\"../c\"" },
        { "\"name\":\"B_c\"", "\"name\":\"b --index-url=x\"" },
        { "\"version\":\"1.0\"", "\"version\":\"1.0\\n-e .\"" },
        { "\"version\":\"1.0\"", "\"version\":\"*\"" },
        { "\"version\":\"1.0\"", "\"version\":1" },
        { "\"version\":\"1.0\",", "" },
        { "\"sha256\":\"0123", "\"sha256\":\"X123" },
        { "\"sha256\":\"0123", "\"sha256\":\"0" },
        { "node_modules/a/", "node_modules/../" },
        { "node_modules/a/", "/etc/" },
        { "node_modules/a/node_modules/@s/b", "node_modules/" },
        { "node_modules/a/node_modules/@s/b", "node_modules/a/b" },
        { "sha512-AAAA", "sha512-!AAA" },
        { "sha512-AAAA", "sha1-AAAA" },
        { "\"name\":\"c\"", "\"name\":\"file:x\"" },
        { "\"name\":\"libc6\"", "\"name\":\"-oX\"" },
    };
    for (size_t i = 0; i < array_len(edits); i++) {
        const char *at = strstr(good_lock, edits[i].from);
        own_buf text = BUF_INIT(8192);
        own_make_lock lock = { 0 };
        struct err err = ERR_INIT;
        CHECK(at != NULL);
        (void)!buf_add(&text, good_lock, (size_t)(at - good_lock));
        (void)!buf_printf(&text, "%s%s", edits[i].to, at + strlen(edits[i].from));
        if (make_lock_read(buf_str(&text), &lock, &err) == 0 || err.kind != ERR_INPUT)
            check_failed(__FILE__, __LINE__, "'%s' became '%s'", edits[i].from, edits[i].to);
    }
}

TEST(make_adds_only_what_the_configuration_allows)
{
    static const char *const some[] = { "pip:pol*", "npm:@s/*", "zod", NULL };
    static const struct {
        struct make_policy policy;
        enum make_kind kind;
        const char *text;
        bool good;
    } rows[] = {
        { { true, false, false, NULL }, MAKE_PIP, "a", true },
        { { false, false, false, NULL }, MAKE_PIP, "a", false },
        { { true, true, false, NULL }, MAKE_PIP, "a>=1", false },
        { { true, true, false, NULL }, MAKE_PIP, "a==1", true },
        { { true, true, false, NULL }, MAKE_NPM, "a@1", false },
        { { true, true, false, NULL }, MAKE_APT, "ab=1", true },
        { { true, false, true, NULL }, MAKE_PIP, "a==1", false },
        { { true, false, false, some }, MAKE_PIP, "POLars", true },
        { { true, false, false, some }, MAKE_NPM, "polars", false },
        { { true, false, false, some }, MAKE_NPM, "@s/a", true },
        { { true, false, false, some }, MAKE_APT, "zod", true },
        { { true, false, false, some }, MAKE_PIP, "pandas", false },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        own_make_wants wants = { 0 };
        struct err err = ERR_INIT;
        CHECK_INT(make_wants_add(&wants, rows[i].kind, str_of(rows[i].text), &err), 0);
        if ((make_policy_check(&rows[i].policy, &wants, NULL, &err) == 0) != rows[i].good)
            check_failed(__FILE__, __LINE__, "row %zu", i);
        if (!rows[i].good && !err.hint[0])
            check_failed(__FILE__, __LINE__, "row %zu has no hint", i);
    }
}

TEST(make_holds_a_lock_to_the_allowed_names)
{
    static const char *const some[] = { "pip:a", "npm:c", "apt:*", NULL };
    static const char *const all[] = { "pip:a", "pip:b-c", "npm:c", "apt:*", NULL };
    own_make_lock lock = { 0 };
    const struct make_wants none = { 0 };
    struct err err = ERR_INIT;
    CHECK_INT(make_lock_read(str_of(good_lock), &lock, &err), 0);
    CHECK_INT(make_policy_check(&(struct make_policy){ true, true, true, all }, &none, &lock, &err),
              0);
    CHECK_INT(make_policy_check(&(struct make_policy){ true, true, true, some }, &none, &lock,
                                &err), -1);
    CHECK(strstr(err.text, "b-c") && strstr(err.hint, "pip:a, npm:c"));
}

TEST(make_patterns_name_a_kind_and_packages)
{
    CHECK(make_policy_pattern_valid(STR("pip:pol*")) && make_policy_pattern_valid(STR("*")));
    CHECK(make_policy_pattern_valid(STR("npm:@s/a")));
    CHECK(!make_policy_pattern_valid(STR("gem:a")) && !make_policy_pattern_valid(STR("")));
    CHECK(!make_policy_pattern_valid(STR("pip:")) && !make_policy_pattern_valid(STR("a b")));
}

TEST(make_debian_takes_releases_and_mirrors_alone)
{
    static const char *const suites[] = { "bookworm", "stable-updates", "trixie2" };
    static const char *const no_suites[] = { "",   "-x",         "2x",     "a/b", "A",
                                             "a b", "bookworm;x", "a.b", "--x" };
    static const char *const mirrors[] = { "http://a/debian", "https://u:p@a:8/x?y" };
    static const char *const no_mirrors[] = { "", "http://", "file:///x", "deb http://a b main",
                                              "http://a b", "http://a\n", "-", "http://a'b",
                                              "http://[trusted=yes]", "http://\xc3\xa4" };
    for (size_t i = 0; i < array_len(suites); i++)
        CHECK(make_debian_suite_valid(str_of(suites[i])));
    for (size_t i = 0; i < array_len(no_suites); i++)
        CHECK(!make_debian_suite_valid(str_of(no_suites[i])));
    for (size_t i = 0; i < array_len(mirrors); i++)
        CHECK(make_debian_mirror_valid(str_of(mirrors[i])));
    for (size_t i = 0; i < array_len(no_mirrors); i++)
        CHECK(!make_debian_mirror_valid(str_of(no_mirrors[i])));
}

TEST(make_tells_why_a_tool_failed)
{
    char why[120];
    make_child_why(STR("Collecting x\nERROR: one\nnote\nERROR: two\n"), why, sizeof why);
    CHECK_TEXT(why, "ERROR: one; ERROR: two");
    make_child_why(STR("npm error code E404\nnpm error 404 Not Found - GET x\nnpm error 404\n"
                       "npm error 404 Note that you can also install from a\n"),
                   why, sizeof why);
    CHECK_TEXT(why, "npm error 404 Not Found - GET x");
    char longer[400], line[600] = "ERROR: none of these (from versions: ";
    for (int i = 0; i < 100; i++)
        snprintf(line + strlen(line), sizeof line - strlen(line), "%d, ", i);
    snprintf(line + strlen(line), sizeof line - strlen(line), "100)\nERROR: last\n");
    make_child_why(str_of(line), longer, sizeof longer);
    CHECK(strstr(longer, "ERROR: none of these (from versions: 0, 1"));
    CHECK(strstr(longer, " ... ") && strstr(longer, "99, 100); ERROR: last"));
    CHECK(strlen(longer) < 230);
    make_child_why(STR("first\nlast \x1b[31mred\n\n"), why, sizeof why);
    CHECK(strstr(why, "last") && !strchr(why, '\x1b'));
    make_child_why(STR(""), why, sizeof why);
    CHECK_TEXT(why, "it said nothing");
}

/* clang-format on */