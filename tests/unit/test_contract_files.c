/* The files of a request: paths, base64, sizes, clashes, and raw files. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "contract/request.h"

static const struct request_ceilings ceilings = { .host_memory_bytes = (int64_t)64 << 30 };

static int parse(const char *files, const char *more, struct request *out, struct err *err)
{
    own_buf text = BUF_INIT(4u << 20);
    *out = REQUEST_INIT;
    *err = ERR_INIT;
    buf_printf(&text, "{\"code\":\"1\",\"files\":[%s]%s}", files, more);
    return request_parse(buf_str(&text), &ceilings, out, err);
}

static struct err refused(const char *files)
{
    struct request request;
    struct err err;
    if (parse(files, "", &request, &err) == 0)
        check_failed(__FILE__, __LINE__, "%s was accepted", files);
    CHECK_INT(err.kind, ERR_INPUT);
    return err;
}

TEST(files_good_paths_pass)
{
    static const char *const paths[] = { "a", "a/b/c.txt", ".hidden", "..a", "a..", "...", "a b",
                                         "日本/語.csv", "a\nb", ".cupelx", "a/.cupel/b", "~",
                                         "C:\\x" };
    for (size_t i = 0; i < array_len(paths); i++) {
        struct err err = ERR_INIT;
        if (request_check_path(str_of(paths[i]), "f", &err) < 0)
            check_failed(__FILE__, __LINE__, "'%s': %s", paths[i], err.text);
    }
}

TEST(files_bad_paths_are_refused)
{
    static const struct {
        struct str path;
        const char *why;
    } rows[] = {
        { STR(""), "an empty path" },
        { STR("/etc/passwd"), "an absolute path" },
        { STR("/"), "an absolute path" },
        { STR(".."), "'.' or '..'" },
        { STR("."), "'.' or '..'" },
        { STR("a/../b"), "'.' or '..'" },
        { STR("a/.."), "'.' or '..'" },
        { STR("./a"), "'.' or '..'" },
        { STR("a//b"), "empty component" },
        { STR("a/"), "empty component" },
        { STR("a\0b"), "NUL" },
        { STR(".cupel"), "reserved" },
        { STR(".cupel/stdout"), "reserved" },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        struct err err = ERR_INIT;
        CHECK_INT(request_check_path(rows[i].path, "files[3].path", &err), -1);
        CHECK_INT(err.kind, ERR_INPUT);
        CHECK_TEXT(err.field, "files[3].path");
        CHECK(*err.value && *err.bound);
        if (!strstr(err.text, rows[i].why))
            check_failed(__FILE__, __LINE__, "'%s' for '%s'", err.text, rows[i].path.at);
    }
}

TEST(files_path_lengths_are_bounded)
{
    char path[REQUEST_PATH_MAX + 2];
    struct err err = ERR_INIT;
    memset(path, 'a', sizeof path);
    CHECK_INT(request_check_path((struct str){ path, 255 }, "f", &err), 0);
    CHECK_INT(request_check_path((struct str){ path, 256 }, "f", &err), -1);
    CHECK(strstr(err.text, "255"));
    for (size_t i = 200; i < sizeof path; i += 201)
        path[i] = '/';
    CHECK_INT(request_check_path((struct str){ path, REQUEST_PATH_MAX }, "f", &err), 0);
    CHECK_INT(request_check_path((struct str){ path, REQUEST_PATH_MAX + 1 }, "f", &err), -1);
    CHECK_TEXT(err.bound, "at most 1024 bytes");
    CHECK_TEXT(err.value, "1025");
}

TEST(files_a_path_that_is_no_utf8_is_told_as_text)
{
    struct err err = ERR_INIT;
    CHECK_INT(request_check_path(STR("/\xff"), "f", &err), -1);
    CHECK_TEXT(err.value, "\"/\xef\xbf\xbd\"");
    CHECK_INT(request_check_path(STR("\xff"), "f", &err), 0);
}

TEST(files_paths_clash)
{
    struct err err = refused("{\"path\":\"a\",\"text\":\"\"},{\"path\":\"b\",\"text\":\"\"},"
                             "{\"path\":\"a\",\"text\":\"\"}");
    CHECK_TEXT(err.field, "files[2].path");
    CHECK_TEXT(err.value, "\"a\"");
    CHECK_TEXT(err.text, "field 'files[2].path' is 'a', the same as files[0].path");
    err = refused("{\"path\":\"a/b/c\",\"text\":\"\"},{\"path\":\"a/b\",\"text\":\"\"}");
    CHECK_TEXT(err.field, "files[1].path");
    err = refused("{\"path\":\"a\",\"text\":\"\"},{\"path\":\"a.b\",\"text\":\"\"},"
                  "{\"path\":\"a-b\",\"text\":\"\"},{\"path\":\"a/b\",\"text\":\"\"}");
    CHECK_TEXT(err.field, "files[3].path");
    CHECK(strstr(err.text, "files[0].path"));
    struct request request;
    CHECK_INT(parse("{\"path\":\"a/b\",\"text\":\"\"},{\"path\":\"a/c\",\"text\":\"\"},"
                    "{\"path\":\"ab\",\"text\":\"\"},{\"path\":\"a.b\",\"text\":\"\"}",
                    "", &request, &err),
              0);
    request_done(&request);
}

TEST(files_base64_is_strict)
{
    static const struct {
        const char *text;
        struct str want;
    } good[] = {
        { "", STR("") },          { "TQ==", STR("M") },        { "TWE=", STR("Ma") },
        { "TWFu", STR("Man") },   { "AAAA", STR("\0\0\0") },   { "+/+/", STR("\xfb\xff\xbf") },
        { "aGVsbG8gd29ybGQ=", STR("hello world") },
    };
    static const char *const bad[] = { "T", "TQ", "TQ=", "TQ===", "====", "A===", "TR==", "TWF=",
                                       "TW=u", "TQ==TQ==", "TWFu\\n", " TWFu", "TWF-", "TWF_",
                                       "TW\\u0000u", "TWFé" };
    char file[128];
    for (size_t i = 0; i < array_len(good); i++) {
        struct request request;
        struct err err;
        snprintf(file, sizeof file, "{\"path\":\"a\",\"base64\":\"%s\"}", good[i].text);
        CHECK_INT(parse(file, "", &request, &err), 0);
        CHECK(str_eq(request.files[0].data, good[i].want));
        request_done(&request);
    }
    for (size_t i = 0; i < array_len(bad); i++) {
        snprintf(file, sizeof file, "{\"path\":\"a\",\"base64\":\"%s\"}", bad[i]);
        CHECK_TEXT(refused(file).field, "files[0].base64");
    }
}

TEST(files_and_stdin_share_input_bytes)
{
    struct request request;
    struct err err;
    const char *limit = ",\"stdin\":\"123\",\"limits\":{\"input_bytes\":10}";
    CHECK_INT(parse("{\"path\":\"a\",\"text\":\"1234\"},{\"path\":\"b\",\"base64\":\"TWFu\"}",
                    limit, &request, &err),
              0);
    request_done(&request);
    CHECK_INT(parse("{\"path\":\"a\",\"text\":\"12345\"},{\"path\":\"b\",\"base64\":\"TWFu\"}",
                    limit, &request, &err),
              -1);
    CHECK_TEXT(err.field, "files");
    CHECK_TEXT(err.value, "11");
    CHECK(strstr(err.bound, "at most 10 bytes"));
    CHECK(strstr(err.hint, "limits.input_bytes"));
    CHECK_INT(
        parse("", ",\"stdin\":\"12345678901\",\"limits\":{\"input_bytes\":10}", &request, &err),
        -1);
    CHECK_TEXT(err.field, "stdin");
    CHECK_INT(
        parse("{\"path\":\"b\",\"base64\":\"AAAAAAAAAAAAAAAAAAAAAAAA\"}", limit, &request, &err),
        -1);
    CHECK_TEXT(err.field, "files[0].base64");
    CHECK_INT(parse("", ",\"stdin\":\"\",\"limits\":{\"input_bytes\":0}", &request, &err), 0);
    request_done(&request);
}

TEST(files_are_at_most_4096)
{
    own_buf text = BUF_INIT(4u << 20);
    for (int i = 0; i < REQUEST_FILES_MAX; i++)
        buf_printf(&text, "%s{\"path\":\"d/%d\",\"text\":\"\"}", i ? "," : "", i);
    struct request request;
    struct err err;
    CHECK_INT(parse(text.at, "", &request, &err), 0);
    CHECK_INT(request_add_file(&request, "one", buf_strdup(STR("x")), 1, false, &err), -1);
    CHECK_TEXT(err.field, "files");
    request_done(&request);
    buf_add_text(&text, ",{\"path\":\"e\",\"text\":\"\"}");
    err = refused(text.at);
    CHECK_TEXT(err.field, "files");
    CHECK_TEXT(err.bound, "at most 4096 files");
}

TEST(files_raw_ones_are_added_under_the_same_rules)
{
    struct request request;
    struct err err;
    CHECK_INT(parse("{\"path\":\"d/a\",\"text\":\"\"}", ",\"limits\":{\"input_bytes\":8}", &request,
                    &err),
              0);
    CHECK_INT(request_add_file(&request, "raw", buf_strdup(STR("\xff\0x")), 3, true, &err), 0);
    CHECK_INT(request.file_count, 2);
    CHECK(request.files[1].readonly && request.files[1].data.len == 3);
    CHECK_INT(request_add_file(&request, "raw", buf_strdup(STR("x")), 1, true, &err), -1);
    CHECK_TEXT(err.field, "files[2].path");
    CHECK_INT(request_add_file(&request, "d", buf_strdup(STR("x")), 1, true, &err), -1);
    CHECK_INT(request_add_file(&request, "../x", buf_strdup(STR("x")), 1, true, &err), -1);
    CHECK_INT(request_add_file(&request, "big", buf_strdup(STR("123456")), 6, true, &err), -1);
    CHECK_TEXT(err.field, "files");
    CHECK_INT(request.file_count, 2);
    for (int i = 0; i < 5; i++) {
        char path[16];
        snprintf(path, sizeof path, "n%d", i);
        CHECK_INT(request_add_file(&request, path, buf_strdup(STR("1")), 1, false, &err), 0);
    }
    CHECK_INT(request.file_count, 7);
    CHECK_TEXT(request.files[0].path, "d/a");
    request_done(&request);
}
