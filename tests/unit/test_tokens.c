/* The tokens file: what is kept, what is refused, and that two writers do not mix. */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/own.h"
#include "store/tokens.h"
#include "store/usage.h"

#define ROW                                                                                     \
    "\"id\": \"k_0123456789ab\", \"name\": \"ci\", \"created_at\": \"2026-11-16T15:46:06Z\", " \
    "\"sha256\": \"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\""
#define FILE_OF(members) "{\"schema\": 1, \"tokens\": [{" members "}]}"

static char folder[] = "/tmp/cupel-unit-tokens-XXXXXX";

static int open_folder(void)
{
    CHECK(mkdtemp(folder));
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(fd >= 0);
    return fd;
}

static void remove_folder(int fd)
{
    static const char *const names[] = { TOKENS_FILE, "tokens.lock", "tokens.json.new", USAGE_FILE,
                                         "usage.lock", "target" };
    for (size_t i = 0; i < array_len(names); i++)
        unlinkat(fd, names[i], 0);
    close(fd);
    CHECK_INT(rmdir(folder), 0);
}

static void add(struct tokens *tokens, const char *name, char *secret)
{
    struct tokens_quota quota;
    struct err err = ERR_INIT;
    tokens_quota_init(&quota);
    if (tokens_add(tokens, name, 1000, TOKENS_NEVER, false, &quota, secret, &err) < 0)
        check_failed(__FILE__, __LINE__, "%s: %s", name, err.text);
}

TEST(tokens_keep_a_hash_and_never_the_secret)
{
    own_tokens tokens = TOKENS_INIT;
    char secret[TOKENS_SECRET_LEN + 1], hash[HASH_HEX_ROOM];
    add(&tokens, "ci", secret);
    CHECK_INT(strlen(secret), 49);
    CHECK(strncmp(secret, "cupel_", 6) == 0);
    CHECK_INT(
        strspn(secret + 6, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"), 43);
    hash_hex(str_of(secret), hash);
    CHECK_TEXT(tokens.at[0].sha256, hash);
    own_json value = tokens_to_json(&tokens);
    own_str text = json_write(value, JSON_COMPACT);
    CHECK(!strstr(text, secret + 6));
    CHECK(strstr(text, hash));
}

TEST(tokens_have_secrets_that_differ_in_every_place)
{
    own_tokens tokens = TOKENS_INIT;
    char first[TOKENS_SECRET_LEN + 1], next[TOKENS_SECRET_LEN + 1], name[16];
    bool differs[TOKENS_SECRET_LEN] = { false };
    add(&tokens, "first", first);
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "n%d", i);
        add(&tokens, name, next);
        for (size_t at = 6; at < TOKENS_SECRET_LEN; at++)
            differs[at] |= first[at] != next[at];
    }
    for (size_t at = 6; at < TOKENS_SECRET_LEN; at++)
        CHECK(differs[at]);
}

TEST(tokens_are_found_by_the_whole_secret_alone)
{
    own_tokens tokens = TOKENS_INIT;
    char a[TOKENS_SECRET_LEN + 1], b[TOKENS_SECRET_LEN + 1], longer[TOKENS_SECRET_LEN + 2];
    add(&tokens, "a", a);
    add(&tokens, "b", b);
    CHECK(tokens_find_secret(&tokens, str_of(a)) == &tokens.at[0]);
    CHECK(tokens_find_secret(&tokens, str_of(b)) == &tokens.at[1]);
    snprintf(longer, sizeof longer, "%sx", b);
    CHECK(!tokens_find_secret(&tokens, str_of(longer)));
    CHECK(!tokens_find_secret(&tokens, (struct str){ a, TOKENS_SECRET_LEN - 1 }));
    CHECK(!tokens_find_secret(&tokens, STR_NONE));
    CHECK(!tokens_find_secret(&tokens, str_of(tokens.at[0].sha256)));
    a[20] = a[20] == 'x' ? 'y' : 'x';
    CHECK(!tokens_find_secret(&tokens, str_of(a)));
    own_tokens none = TOKENS_INIT;
    CHECK(!tokens_find_secret(&none, str_of(b)));
}

TEST(tokens_read_back_as_they_were_written)
{
    int fd = open_folder();
    struct err err = ERR_INIT;
    struct stat st;
    char secret[TOKENS_SECRET_LEN + 1];
    own_tokens tokens = TOKENS_INIT;
    own_tokens again = TOKENS_INIT;
    CHECK_INT(tokens_read(fd, &again, &st, &err), 0);
    static const char text[] = FILE_OF(
        ROW ", \"expires_at\": \"2027-01-31T00:00:00Z\", \"operator\": true, \"quota\": {"
            "\"runs_at_once\": 2, \"runs_a_minute\": 60, \"cpu_s_a_day\": 5, \"sessions\": "
            "0, \"stored_bytes\": 1073741824, \"limits\": {\"timeout_s\": 1.5, "
            "\"memory_bytes\": 268435456}, \"profiles\": [\"baseline\"], \"images\": "
            "[\"host\"], \"tools\": []}");
    CHECK_INT(tokens_parse(str_of(text), &tokens, &err), 0);
    CHECK(tokens.at[0].is_operator);
    CHECK_INT(tokens.at[0].quota.limits[LIMITS_TIMEOUT], 1500);
    CHECK_INT(tokens.at[0].quota.limits[LIMITS_PIDS], TOKENS_NO_BOUND);
    CHECK_INT(tokens.at[0].quota.value[TOKENS_SESSIONS], 0);
    add(&tokens, "second", secret);
    CHECK_INT(tokens_write(fd, &tokens, &err), 0);
    CHECK_INT(fstatat(fd, TOKENS_FILE, &st, 0), 0);
    CHECK_INT(st.st_mode & 07777, 0600);
    CHECK_INT(tokens_read(fd, &again, &st, &err), 1);
    own_json one = tokens_to_json(&tokens);
    own_json two = tokens_to_json(&again);
    CHECK(json_equal(one, two));
    CHECK_INT(json_array_size(json_object_get(two, "tokens")), 2);
    remove_folder(fd);
}

TEST(tokens_that_are_not_understood_are_refused_with_the_key)
{
    static const struct {
        const char *text, *field;
    } bad[] = {
        { "{}", "schema" },
        { "{\"schema\": 2, \"tokens\": []}", "schema" },
        { "{\"schema\": 1}", "tokens" },
        { "{\"schema\": 1, \"tokens\": [], \"more\": 1}", "tokens" },
        { "{\"schema\": 1, \"tokens\": [1]}", "token" },
        { "{\"schema\": 1, \"tokens\": [{}]}", "id" },
        { FILE_OF(ROW ", \"expires\": null"), "expires" },
        { FILE_OF(ROW ", \"expires_at\": 7"), "expires_at" },
        { FILE_OF(ROW ", \"expires_at\": \"2026-02-31T00:00:00Z\""), "expires_at" },
        { FILE_OF(ROW ", \"operator\": 1"), "operator" },
        { FILE_OF(ROW ", \"quota\": []"), "quota" },
        { FILE_OF(ROW ", \"quota\": {\"runs\": 1}"), "quota.runs" },
        { FILE_OF(ROW ", \"quota\": {\"runs_at_once\": -1}"), "quota.runs_at_once" },
        { FILE_OF(ROW ", \"quota\": {\"runs_at_once\": 1.5}"), "quota.runs_at_once" },
        { FILE_OF(ROW ", \"quota\": {\"runs_at_once\": null}"), "quota.runs_at_once" },
        { FILE_OF(ROW ", \"quota\": {\"limits\": {\"timeout\": 1}}"), "quota.limits.timeout" },
        { FILE_OF(ROW ", \"quota\": {\"limits\": {\"timeout_s\": 0}}"), "quota.limits.timeout_s" },
        { FILE_OF(ROW ", \"quota\": {\"profiles\": \"baseline\"}"), "quota.profiles" },
        { FILE_OF(ROW ", \"quota\": {\"profiles\": [\"none\"]}"), "quota.profiles" },
        { FILE_OF(ROW ", \"quota\": {\"images\": [\"a b\"]}"), "quota.images" },
        { "{\"schema\": 1, \"tokens\": [{" ROW "}, {" ROW "}]}", "name" },
        { FILE_OF("\"id\": \"k_1\""), "id" },
    };
    for (size_t i = 0; i < array_len(bad); i++) {
        struct err err = ERR_INIT;
        own_tokens tokens = TOKENS_INIT;
        if (tokens_parse(str_of(bad[i].text), &tokens, &err) == 0)
            check_failed(__FILE__, __LINE__, "accepted: %s", bad[i].text);
        CHECK_INT(err.kind, ERR_INPUT);
        CHECK_TEXT(err.field, bad[i].field);
        CHECK(tokens.at == NULL);
    }
}

TEST(tokens_have_names_of_their_own)
{
    static const char long_name[] = "0123456789012345678901234567890123456789"
                                    "0123456789012345678901234";
    static const char *const bad[] = { "",     "a b",           "a/b", "\xc3\xa9",
                                       "k_0123456789ab", "a\n", long_name };
    static const char *const good[] = { "a", "A.b_c-9", "k_0123456789abc", "-x" };
    for (size_t i = 0; i < array_len(bad); i++)
        CHECK(!tokens_is_name(str_of(bad[i])));
    for (size_t i = 0; i < array_len(good); i++)
        CHECK(tokens_is_name(str_of(good[i])));
    own_tokens tokens = TOKENS_INIT;
    char secret[TOKENS_SECRET_LEN + 1];
    struct err err = ERR_INIT;
    struct tokens_quota quota;
    tokens_quota_init(&quota);
    add(&tokens, "a", secret);
    CHECK_INT(tokens_add(&tokens, "a", 1, TOKENS_NEVER, false, &quota, secret, &err), -1);
    CHECK_INT(err.kind, ERR_CONFLICT);
    CHECK(tokens_find(&tokens, tokens.at[0].id) == tokens_find(&tokens, "a"));
    tokens_remove(&tokens, tokens_find(&tokens, "a"));
    CHECK(!tokens_find(&tokens, "a"));
}

TEST(tokens_of_another_user_or_a_link_are_refused)
{
    int fd = open_folder();
    struct err err = ERR_INIT;
    struct stat st;
    own_tokens tokens = TOKENS_INIT;
    CHECK_INT(tokens_write(fd, &tokens, &err), 0);
    CHECK_INT(fchmodat(fd, TOKENS_FILE, 0622, 0), 0);
    CHECK_INT(tokens_read(fd, &tokens, &st, &err), -1);
    CHECK_INT(err.kind, ERR_HOST);
    CHECK_INT(fchmodat(fd, TOKENS_FILE, 0600, 0), 0);
    CHECK_INT(tokens_read(fd, &tokens, &st, &err), 1);
    CHECK_INT(renameat(fd, TOKENS_FILE, fd, "target"), 0);
    CHECK_INT(symlinkat("target", fd, TOKENS_FILE), 0);
    CHECK_INT(tokens_read(fd, &tokens, &st, &err), -1);
    CHECK_INT(err.sys, ELOOP);
    CHECK_INT(unlinkat(fd, TOKENS_FILE, 0), 0);
    CHECK_INT(mkfifoat(fd, TOKENS_FILE, 0600), 0);
    CHECK_INT(tokens_read(fd, &tokens, &st, &err), -1);
    remove_folder(fd);
}

static void add_to_file(int fd, const char *name)
{
    own_tokens tokens = TOKENS_INIT;
    char secret[TOKENS_SECRET_LEN + 1];
    struct err err = ERR_INIT;
    struct stat st;
    own_fd lock = tokens_lock(fd, &err);
    CHECK(lock >= 0);
    CHECK(tokens_read(fd, &tokens, &st, &err) >= 0);
    add(&tokens, name, secret);
    CHECK_INT(tokens_write(fd, &tokens, &err), 0);
}

TEST(tokens_of_writers_side_by_side_are_all_kept)
{
    enum { WRITERS = 8, EACH = 10 };
    int fd = open_folder();
    for (int writer = 0; writer < WRITERS; writer++)
        if (fork() == 0) {
            for (int i = 0; i < EACH; i++) {
                char name[32];
                snprintf(name, sizeof name, "w%d-%d", writer, i);
                add_to_file(fd, name);
            }
            _exit(0);
        }
    for (int writer = 0; writer < WRITERS; writer++) {
        int status = 1;
        CHECK(wait(&status) > 0);
        CHECK_INT(status, 0);
    }
    own_tokens tokens = TOKENS_INIT;
    struct err err = ERR_INIT;
    struct stat st;
    CHECK_INT(tokens_read(fd, &tokens, &st, &err), 1);
    CHECK_INT(tokens.count, WRITERS * EACH);
    remove_folder(fd);
}

TEST(tokens_times_read_back_exactly)
{
    int64_t at;
    char text[TOKENS_TIME_ROOM];
    CHECK(tokens_read_time(STR("2026-11-16T15:46:06Z"), &at));
    tokens_write_time(at, text);
    CHECK_TEXT(text, "2026-11-16T15:46:06Z");
    static const char *const bad[] = { "",
                                       "2026-11-16",
                                       "2026-11-16T15:46:06+00",
                                       "2026-13-16T15:46:06Z",
                                       " 026-11-16T15:46:06Z",
                                       "2026-11-16T15:46:6Z " };
    for (size_t i = 0; i < array_len(bad); i++)
        CHECK(!tokens_read_time(str_of(bad[i]), &at));
}

TEST(usage_reads_back_and_refuses_the_rest)
{
    int fd = open_folder();
    struct err err = ERR_INIT;
    own_usage usage = USAGE_INIT;
    own_usage again = USAGE_INIT;
    CHECK_INT(usage_read(fd, &again, &err), 0);
    usage_add(&usage, &(struct usage_row){ "k_0123456789ab", 1000, 20773, 1500 });
    CHECK_INT(usage_write(fd, &usage, &err), 0);
    CHECK_INT(usage_read(fd, &again, &err), 1);
    const struct usage_row *row = usage_find(&again, "k_0123456789ab");
    CHECK(row && row->used_at == 1000 && row->day == 20773 && row->cpu_ms == 1500);
    static const char *const bad[] = { "", "[]", "{}", "{\"schema\":1,\"tokens\":{\"x\":{}}}",
                                       "{\"schema\":1,\"tokens\":{\"k_0123456789ab\":1}}",
                                       "{\"schema\":1,\"tokens\":{},\"a\":1}" };
    for (size_t i = 0; i < array_len(bad); i++) {
        own_usage none = USAGE_INIT;
        CHECK_INT(usage_parse(str_of(bad[i]), &none, &err), -1);
    }
    remove_folder(fd);
}
