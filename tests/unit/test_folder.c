/* Rules of hidden files, sets of changes, and the difference of texts. */
#include "folder/changes.h"
#include "folder/ignore.h"
#include "folder/linediff.h"
#include "folder/walk.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/own.h"
#include "check.h"

static bool hides(const char *rules, const char *path)
{
    struct err err = ERR_INIT;
    struct ignore ignore;
    size_t len = strlen(path);
    bool is_dir = path[len - 1] == '/';
    ignore_init(&ignore);
    CHECK(ignore_add(&ignore, str_of(rules), &err) == 0);
    bool hidden = ignore_hides_within(&ignore, (struct str){ path, len - is_dir }, is_dir);
    ignore_done(&ignore);
    return hidden;
}

TEST(folder_files_that_hold_secrets_are_hidden_by_default)
{
    static const char *const hidden[] = {
        ".env", "a/b/.env", ".env.local", "id_ed25519", "x/server.key", "a.pem", ".ssh/", ".ssh/x",
        "home/.aws/credentials", ".docker/config.json", "x/.docker/config.json", ".npmrc",
        "credentials.json", "client_secret_12.json", "prod.tfvars", ".env.example.local",
    };
    static const char *const shown[] = {
        ".env.example", "a/.env.sample", "env", "main.py", "key", "config.json",
        "docker/config.json",
        "venv/lib/certifi/cacert.pem", "id_rsa.pub", ".environment", "credentials.json.md",
    };
    for (size_t i = 0; i < array_len(hidden); i++)
        CHECK(hides("", hidden[i]));
    for (size_t i = 0; i < array_len(shown); i++)
        CHECK(!hides("", shown[i]));
}

TEST(folder_rules_of_cupelignore_follow_gitignore)
{
    static const struct {
        const char *rules, *path;
        bool hidden;
    } cases[] = {
        { "secret", "secret", true },          { "secret", "a/secret", true },
        { "secret", "a/secret/b", true },      { "secret", "secrets", false },
        { "/secret", "secret", true },         { "/secret", "a/secret", false },
        { "build/", "build", false },          { "build/", "build/", true },
        { "build/", "x/build/y", true },       { "a/b", "a/b", true },
        { "a/b", "c/a/b", false },             { "*.csv", "x/y.csv", true },
        { "*.csv", "y.csvx", false },          { "d*a.csv", "data.csv", true },
        { "a*b*c", "aXbYbc", true },           { "a*b*c", "aXbYb", false },
        { "x/*.txt", "x/1.txt", true },        { "x/*.txt", "x/y/1.txt", false },
        { "x/**/z", "x/z", true },             { "x/**/z", "x/1/2/z", true },
        { "x/**/z", "x/1/2/zz", false },       { "**/q/r", "q/r", true },
        { "**/q/r", "1/2/q/r", true },         { "x/**", "x/1", true },
        { "x/**", "x", false },                { "?.md", "a.md", true },
        { "?.md", "ab.md", false },            { "!.env", ".env", false },
        { "!.env\n.env", ".env", true },       { "# .x\n\n", ".x", false },
        { "\\#x", "#x", true },                { "\\!x", "!x", true },
        { "a\\*", "a*", true },                { "a\\*", "ab", false },
        { "!*.pem\n", "a.pem", false },        { "  x  \r\n", "x", true },
        { "a/**/b/**/c", "a/b/b/x/c", true },  { "a/**/b/**/c", "a/c/b", false },
    };
    for (size_t i = 0; i < array_len(cases); i++)
        if (hides(cases[i].rules, cases[i].path) != cases[i].hidden)
            check_failed(__FILE__, __LINE__, "'%s' and '%s'", cases[i].rules, cases[i].path);
}

TEST(folder_a_rule_that_is_not_understood_is_refused_with_its_line)
{
    static const char *const bad[] = { "ok\n[ab]", "x\n!", "x\n//", "x\na//b", "x\n../y", "x\ny\\",
                                       "x\n/", "x\na/./b" };
    for (size_t i = 0; i < array_len(bad); i++) {
        struct err err = ERR_INIT;
        struct ignore ignore;
        ignore_init(&ignore);
        if (ignore_add(&ignore, str_of(bad[i]), &err) == 0)
            check_failed(__FILE__, __LINE__, "'%s' was taken", bad[i]);
        CHECK_INT(err.kind, ERR_INPUT);
        CHECK(strstr(err.field, "line 2"));
        ignore_done(&ignore);
    }
}

TEST(folder_version_control_and_its_own_rules_cannot_be_changed)
{
    CHECK(ignore_is_kept_within(STR(".git/hooks/pre-commit")));
    CHECK(ignore_is_kept_within(STR("sub/.git")));
    CHECK(ignore_is_kept_within(STR(".cupelignore")));
    CHECK(!ignore_is_kept_within(STR("src/.gitignore")));
    CHECK(!ignore_is_kept_within(STR("git/x")));
}

static void make(int dir, const char *path)
{
    int fd = openat(dir, path, O_WRONLY | O_CREAT | O_EXCL, 0644);
    CHECK(fd >= 0);
    close(fd);
}

TEST(folder_the_walk_finds_each_entry_to_hide_and_enters_no_hidden_folder)
{
    char place[] = "/tmp/cupel-walk-XXXXXX", seen[500] = "";
    struct err err = ERR_INIT;
    struct walk_facts facts;
    struct ignore ignore;
    own_buf masks = BUF_INIT(WALK_MASKS_BYTES);
    CHECK(mkdtemp(place));
    own_fd dir = open(place, O_RDONLY | O_DIRECTORY);
    CHECK(mkdirat(dir, "a", 0755) == 0 && mkdirat(dir, "a/.ssh", 0755) == 0);
    CHECK(mkdirat(dir, ".git", 0755) == 0);
    make(dir, "a/.env");
    make(dir, "a/.ssh/.env");
    make(dir, "a/plain");
    CHECK(symlinkat("/etc/passwd", dir, "server.key") == 0);
    CHECK(linkat(dir, "a/.env", dir, "other", 0) == 0);
    ignore_init(&ignore);
    CHECK(walk_masks(dir, &ignore, &masks, &facts, &err) == 0);
    struct str list = buf_str(&masks), path;
    for (int kind; (kind = walk_next(&list, &path));)
        snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "%c%.*s ", kind, (int)path.len,
                 path.at);
    CHECK(strstr(seen, "ha/.env ") && strstr(seen, "ha/.ssh ") && strstr(seen, "r.git "));
    CHECK(strstr(seen, "hserver.key "));
    CHECK_INT(facts.hidden, 3);
    CHECK_INT(facts.linked, 1);
    CHECK_INT(facts.kept, 1);
    ignore_done(&ignore);
    static const char *const made[] = { "a/.ssh/.env", "a/.env", "a/plain", "other", "server.key" };
    for (size_t i = 0; i < array_len(made); i++)
        CHECK(unlinkat(dir, made[i], 0) == 0);
    CHECK(unlinkat(dir, "a/.ssh", AT_REMOVEDIR) == 0 && unlinkat(dir, "a", AT_REMOVEDIR) == 0 &&
          unlinkat(dir, ".git", AT_REMOVEDIR) == 0 && rmdir(place) == 0);
}

/* --- sets of changes --- */

TEST(folder_a_set_of_changes_is_read_as_it_was_written)
{
    struct err err = ERR_INIT;
    struct changes set = CHANGES_INIT, back = CHANGES_INIT;
    set.folder = buf_strdup(STR("/x/\xff"));
    snprintf(set.run, sizeof set.run, "r_1");
    struct change *change = changes_add(&set, STR("b\xfe\n"));
    change->is = (struct change_entry){ .kind = CHANGE_FILE, .mode = 0755, .size = 3 };
    hash_hex(STR("abc"), change->is.sum);
    change->number = 0;
    change = changes_add(&set, STR("a/link"));
    change->is = (struct change_entry){ .kind = CHANGE_LINK, .target = buf_strdup(STR("../b")) };
    change->was = (struct change_entry){ .kind = CHANGE_FILE, .size = 1, .mode = 0644 };
    changes_skip(&set, STR("fifo"), "not a regular file");
    changes_sort(&set);
    own_json json = changes_to_json(&set);
    own_str text = json_write(json, 0);
    CHECK(changes_read(str_of(text), &back, &err) == 0);
    CHECK_INT(back.count, 2);
    CHECK_TEXT(back.at[0].path, "a/link");
    CHECK_TEXT(back.at[0].is.target, "../b");
    CHECK_INT(back.at[0].was.kind, CHANGE_FILE);
    CHECK(change_entry_same(&back.at[1].is, &set.at[1].is));
    CHECK_TEXT(back.folder, "/x/\xff");
    CHECK_INT(back.skipped_count, 1);
    CHECK(changes_find(&back, STR("b\xfe\n")) == &back.at[1]);
    CHECK(!changes_find(&back, STR("c")));
    changes_done(&set);
    changes_done(&back);
}

TEST(folder_a_damaged_set_of_changes_is_refused)
{
#define HEAD                                                                                       \
    "{\"schema\":1,\"run\":\"r\",\"folder\":\"/x\",\"began_ns\":1,\"skipped\":[],\"changes\":["
#define ROW(path) "{\"path\":\"" path "\",\"was\":null,\"is\":null}"
    static const char *const bad[] = {
        "", "[]", "{}", HEAD ROW("../x") "]}", HEAD ROW("/x") "]}", HEAD ROW("a//b") "]}",
        HEAD ROW("") "]}", HEAD ROW("a/.") "]}", HEAD ROW("a\\u0000b") "]}",
        HEAD ROW("b") "," ROW("a") "]}", HEAD ROW("a") "," ROW("a") "]}",
        HEAD "{\"path\":\"a\",\"was\":null,\"is\":{\"kind\":\"file\",\"mode\":420}}]}",
        HEAD "{\"path\":\"a\",\"was\":null,\"is\":{\"kind\":\"other\"}}]}",
        HEAD "{\"path\":\"a\",\"was\":null,\"is\":{\"kind\":\"link\"}}]}",
    };
    struct changes out;
    struct err err = ERR_INIT;
    CHECK(changes_read(STR(HEAD ROW("a") "]}"), &out, &err) == 0);
    changes_done(&out);
    for (size_t i = 0; i < array_len(bad); i++)
        if (changes_read(str_of(bad[i]), &out, &err) == 0)
            check_failed(__FILE__, __LINE__, "'%s' was read", bad[i]);
}

TEST(folder_a_link_that_leads_out_is_known)
{
    CHECK(changes_leads_out(STR("a"), STR("/etc/passwd")));
    CHECK(changes_leads_out(STR("a"), STR("..")));
    CHECK(changes_leads_out(STR("d/a"), STR("../../x")));
    CHECK(changes_leads_out(STR("d/a"), STR("x/../../../y/z")));
    CHECK(!changes_leads_out(STR("d/a"), STR("../x")));
    CHECK(!changes_leads_out(STR("a"), STR("./b//c")));
}

/* --- differences --- */

static void check_diff(const char *was, const char *is, const char *want)
{
    own_buf out = BUF_INIT(1 << 20);
    struct linediff_count count;
    CHECK(linediff_write(str_of(was), str_of(is), &out, &count) == 0);
    CHECK_TEXT(buf_str(&out).at, want);
}

TEST(folder_a_difference_is_a_unified_diff)
{
    check_diff("", "", "");
    check_diff("a\n", "a\n", "");
    check_diff("", "a\n", "@@ -0,0 +1,1 @@\n+a\n");
    check_diff("a\n", "", "@@ -1,1 +0,0 @@\n-a\n");
    check_diff("a\nb\nc\n", "a\nX\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+X\n c\n");
    check_diff("a", "a\n", "@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+a\n");
    check_diff("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\n5\n6\n7\n8\nX\n",
               "@@ -6,4 +6,4 @@\n 6\n 7\n 8\n-9\n+X\n");
    check_diff("A\n2\n3\n4\n5\n6\n7\nB\n9\n", "2\n3\n4\n5\n6\n7\n9\n",
               "@@ -1,9 +1,7 @@\n-A\n 2\n 3\n 4\n 5\n 6\n 7\n-B\n 9\n");
    check_diff("A\n2\n3\n4\n5\n6\n7\n8\nB\n", "2\n3\n4\n5\n6\n7\n8\n",
               "@@ -1,4 +1,3 @@\n-A\n 2\n 3\n 4\n@@ -6,4 +5,3 @@\n 6\n 7\n 8\n-B\n");
}

/* Takes one line off. */
static struct str next_line(struct str *text)
{
    const char *end = memchr(text->at, '\n', text->len);
    struct str line = { text->at, end ? (size_t)(end - text->at) + 1 : text->len };
    *text = (struct str){ text->at + line.len, text->len - line.len };
    return line;
}

/* What patch(1) does, for texts whose lines all end in a newline. */
static void apply(struct str was, struct str diff, struct buf *out)
{
    size_t at = 1;
    while (diff.len > 0) {
        struct str line = next_line(&diff);
        size_t from, count;
        if (line.at[0] == '@') {
            CHECK(sscanf(line.at, "@@ -%zu,%zu", &from, &count) == 2);
            for (from += count == 0; at < from; at++)
                buf_add_str(out, next_line(&was));
            continue;
        }
        struct str rest = { line.at + 1, line.len - 1 };
        if (line.at[0] != '+') {
            struct str old = next_line(&was);
            at++;
            CHECK(str_eq(old, rest));
        }
        if (line.at[0] != '-')
            buf_add_str(out, rest);
    }
    buf_add_str(out, was);
}

TEST(folder_a_difference_makes_one_text_from_the_other)
{
    unsigned seed = 7;
    for (int round = 0; round < 300; round++) {
        own_buf was = BUF_INIT(1 << 20), is = BUF_INIT(1 << 20), out = BUF_INIT(1 << 20);
        own_buf made = BUF_INIT(1 << 20);
        struct linediff_count count;
        for (int i = 0; i < round; i++) {
            int line = rand_r(&seed) % 12, what = rand_r(&seed) % 20;
            if (what != 0)
                buf_printf(&was, "%d\n", line);
            if (what != 1)
                buf_printf(&is, "%d\n", what == 2 ? line + 20 : line);
        }
        CHECK(linediff_write(buf_str(&was), buf_str(&is), &out, &count) == 0);
        apply(buf_str(&was), buf_str(&out), &made);
        CHECK(str_eq(buf_str(&made), buf_str(&is)));
        CHECK(count.added <= (size_t)round / 3 + 5);
    }
}

TEST(folder_texts_that_differ_everywhere_are_compared_in_bounded_work)
{
    own_buf was = BUF_INIT(8 << 20), is = BUF_INIT(8 << 20), out = BUF_INIT(64 << 20);
    struct linediff_count count;
    for (int i = 0; i < 50000; i++) {
        buf_printf(&was, "a%d\n", i);
        buf_printf(&is, "b%d\n", i);
    }
    CHECK(linediff_write(buf_str(&was), buf_str(&is), &out, &count) == 0);
    CHECK_INT(count.added, 50000);
    CHECK_INT(count.removed, 50000);
}
