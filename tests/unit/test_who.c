/* Tokens at work: who gets in, and quotas that hold however requests are mixed. */
#include "check.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/own.h"
#include "serve/who/who_int.h"
#include "store/state_file.h"

#define NOON (INT64_C(20773) * USAGE_DAY_S + USAGE_DAY_S / 2)

static int64_t mono_ns, utc;

static int64_t fake_mono(void)
{
    return mono_ns;
}

static int64_t fake_utc(void)
{
    return utc;
}

/* A state folder with tokens, and the service that reads it. */
struct place {
    char path[64];
    int fd;
    struct loop loop;
    struct who *who;
    struct tokens tokens;
};

static void open_who(struct place *place)
{
    struct err err = ERR_INIT;
    place->who = who_open(&place->loop, place->fd, &err);
    if (!place->who)
        check_failed(__FILE__, __LINE__, "%s", err.text);
    place->who->now_ns = fake_mono;
    place->who->utc_s = fake_utc;
}

static void open_place(struct place *place)
{
    *place = (struct place){ .path = "/tmp/cupel-unit-who-XXXXXX", .loop = LOOP_INIT };
    CHECK(mkdtemp(place->path));
    place->fd = open(place->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(place->fd >= 0);
    CHECK_INT(loop_open(&place->loop), 0);
    mono_ns = 1000 * CLOCK_S;
    utc = NOON;
    open_who(place);
}

static void close_place(struct place *place)
{
    static const char *const names[] = { TOKENS_FILE, USAGE_FILE, "usage.lock", "usage.json.new" };
    who_close(place->who);
    loop_close(&place->loop);
    tokens_done(&place->tokens);
    for (size_t i = 0; i < array_len(names); i++)
        unlinkat(place->fd, names[i], 0);
    close(place->fd);
    CHECK_INT(rmdir(place->path), 0);
}

static void save(struct place *place)
{
    struct err err = ERR_INIT;
    CHECK_INT(tokens_write(place->fd, &place->tokens, &err), 0);
}

/* Adds a token whose quota is this JSON, and writes the file. */
static void add(struct place *place, const char *name, const char *quota, bool is_operator,
                char secret[TOKENS_SECRET_LEN + 1])
{
    struct err err = ERR_INIT;
    own_buf text = BUF_INIT(4096);
    struct tokens one = TOKENS_INIT;
    buf_printf(&text,
               "{\"schema\": 1, \"tokens\": [{\"id\": \"k_000000000000\", \"name\": \"x\", "
               "\"created_at\": \"2026-11-16T15:46:06Z\", \"sha256\": "
               "\"0000000000000000000000000000000000000000000000000000000000000000\", \"quota\": "
               "%s}]}",
               quota);
    if (tokens_parse(buf_str(&text), &one, &err) < 0)
        check_failed(__FILE__, __LINE__, "%s", err.text);
    CHECK_INT(tokens_add(&place->tokens, name, utc, TOKENS_NEVER, is_operator, &one.at[0].quota,
                         secret, &err),
              0);
    free(one.at);
    save(place);
}

static struct who_token *find(struct place *place, const char *secret)
{
    struct err err = ERR_INIT;
    struct who_token *token = who_find(place->who, str_of(secret), &err);
    if (!token)
        check_failed(__FILE__, __LINE__, "%s", err.text);
    return token;
}

static enum err_kind refused(struct place *place, const char *secret)
{
    struct err err = ERR_INIT;
    if (who_find(place->who, str_of(secret), &err))
        check_failed(__FILE__, __LINE__, "it was let in");
    CHECK(*err.text && *err.hint);
    return err.kind;
}

TEST(who_lets_in_by_secret_and_at_once_no_more_after_removal)
{
    struct place place;
    char a[TOKENS_SECRET_LEN + 1], b[TOKENS_SECRET_LEN + 1];
    open_place(&place);
    CHECK_INT(refused(&place, "cupel_0123456789012345678901234567890123456789012"), ERR_TOKEN);
    CHECK_INT(refused(&place, ""), ERR_TOKEN);
    add(&place, "a", "{}", false, a);
    add(&place, "b", "{}", true, b);
    struct who_token *token = find(&place, a), *other = find(&place, b);
    CHECK_TEXT(who_name(token), "a");
    CHECK_TEXT(who_id(token), place.tokens.at[0].id);
    CHECK(!who_is_operator(token) && who_is_operator(other));
    CHECK(who_may_see(token, who_id(token)) && !who_may_see(token, who_id(other)));
    CHECK(!who_may_see(token, "") && who_may_see(other, "") && who_may_see(other, who_id(token)));
    tokens_remove(&place.tokens, tokens_find(&place.tokens, "a"));
    save(&place);
    CHECK_INT(refused(&place, a), ERR_TOKEN);
    CHECK_TEXT(who_name(token), "a"); /* its run goes on */
    who_run_ends(token, 0, 5);
    who_unref(token);
    who_unref(find(&place, b));
    who_unref(other);
    CHECK_INT(place.who->count, 1);
    CHECK_INT(unlinkat(place.fd, TOKENS_FILE, 0), 0);
    CHECK_INT(refused(&place, b), ERR_TOKEN);
    close_place(&place);
}

TEST(who_refuses_an_expired_token_by_its_second)
{
    struct place place;
    char a[TOKENS_SECRET_LEN + 1];
    open_place(&place);
    add(&place, "a", "{}", false, a);
    place.tokens.at[0].expires_at = NOON + 10;
    save(&place);
    utc = NOON + 9;
    who_unref(find(&place, a));
    utc = NOON + 10;
    CHECK_INT(refused(&place, a), ERR_TOKEN);
    close_place(&place);
}

TEST(who_lets_nobody_in_by_a_broken_file_until_it_is_mended)
{
    struct place place;
    char a[TOKENS_SECRET_LEN + 1];
    struct err err = ERR_INIT;
    open_place(&place);
    add(&place, "a", "{}", false, a);
    who_unref(find(&place, a));
    CHECK_INT(state_file_write(place.fd, TOKENS_FILE, STR("{\"schema\": 1, \"tok"), false, &err),
              0);
    CHECK_INT(refused(&place, a), ERR_HOST);
    CHECK_INT(refused(&place, a), ERR_HOST);
    save(&place);
    who_unref(find(&place, a));
    CHECK_INT(fchmodat(place.fd, TOKENS_FILE, 0666, 0), 0);
    CHECK_INT(refused(&place, a), ERR_HOST);
    CHECK_INT(fchmodat(place.fd, TOKENS_FILE, 0600, 0), 0);
    who_unref(find(&place, a));
    close_place(&place);
}

TEST(who_counts_runs_at_once)
{
    struct place place;
    char a[TOKENS_SECRET_LEN + 1];
    struct err err = ERR_INIT;
    open_place(&place);
    add(&place, "a", "{\"runs_at_once\": 3}", false, a);
    struct who_token *token = find(&place, a);
    int let_in = 0;
    for (int i = 0; i < 50; i++)
        let_in += who_run_begins(token, 6000, &err) == 0;
    CHECK_INT(let_in, 3);
    CHECK_INT(err.kind, ERR_QUOTA);
    CHECK_TEXT(err.field, "quota.runs_at_once");
    CHECK_TEXT(err.value, "3");
    CHECK_TEXT(err.bound, "at most 3");
    CHECK(*err.hint && who_retry_s(token) > 0);
    who_run_ends(token, 6000, 10);
    CHECK_INT(who_run_begins(token, 6000, &err), 0);
    CHECK_INT(who_run_begins(token, 6000, &err), -1);
    place.tokens.at[0].quota.value[TOKENS_RUNS_AT_ONCE] = 4; /* a changed quota holds at once */
    save(&place);
    struct who_token *again = find(&place, a);
    CHECK(again == token);
    CHECK_INT(who_run_begins(token, 6000, &err), 0);
    for (int i = 0; i < 4; i++)
        who_run_ends(token, 6000, 1);
    CHECK_INT(token->reserved_ms, 0);
    who_unref(again);
    who_unref(token);
    close_place(&place);
}

TEST(who_counts_runs_of_any_sixty_seconds)
{
    struct place place;
    char a[TOKENS_SECRET_LEN + 1];
    struct err err = ERR_INIT;
    open_place(&place);
    add(&place, "a", "{\"runs_a_minute\": 30}", false, a);
    struct who_token *token = find(&place, a);
    int64_t begun[1000];
    int count = 0;
    for (int second = 0; second < 300; second++, mono_ns += CLOCK_S)
        for (int i = 0; i < 1 + second % 4; i++)
            if (who_run_begins(token, 0, &err) == 0) {
                begun[count++] = mono_ns;
                who_run_ends(token, 0, 0);
            }
    CHECK_INT(count, 150);
    for (int i = 30; i < count; i++)
        CHECK(begun[i] - begun[i - 30] >= 60 * CLOCK_S);
    mono_ns += CLOCK_S / 2;
    while (who_run_begins(token, 0, &err) == 0)
        CHECK(++count <= 180);
    CHECK_TEXT(err.field, "quota.runs_a_minute");
    int64_t wait = who_retry_s(token);
    CHECK(wait > 0 && wait <= 60);
    mono_ns += (wait - 1) * CLOCK_S;
    CHECK_INT(who_run_begins(token, 0, &err), -1);
    mono_ns += CLOCK_S;
    CHECK_INT(who_run_begins(token, 0, &err), 0);
    who_unref(token);
    close_place(&place);
}

TEST(who_sets_cpu_time_aside_so_that_runs_side_by_side_keep_the_bound)
{
    struct place place;
    char a[TOKENS_SECRET_LEN + 1];
    struct err err = ERR_INIT;
    open_place(&place);
    add(&place, "a", "{\"cpu_s_a_day\": 20}", false, a);
    struct who_token *token = find(&place, a);
    int let_in = 0;
    for (int i = 0; i < 50; i++)
        let_in += who_run_begins(token, 6000, &err) == 0;
    CHECK_INT(let_in, 3);
    CHECK_INT(err.kind, ERR_QUOTA);
    CHECK(strstr(err.hint, "under way"));
    for (int i = 0; i < 3; i++)
        who_run_ends(token, 6000, 5500);
    CHECK_INT(token->cpu_ms, 16500);
    CHECK_INT(who_run_begins(token, 6000, &err), -1);
    CHECK(strstr(err.hint, "limits.cpu_s to at most 3"));
    CHECK_INT(who_run_begins(token, 3000, &err), 0);
    who_run_ends(token, 3000, 3600); /* the kernel may count a little more */
    CHECK_INT(who_run_begins(token, 10, &err), -1);
    CHECK(strstr(err.hint, "midnight"));
    CHECK_INT(who_retry_s(token), USAGE_DAY_S / 2);
    utc += USAGE_DAY_S / 2 - 1;
    CHECK_INT(who_run_begins(token, 10, &err), -1);
    utc += 1;
    CHECK_INT(who_run_begins(token, 20000, &err), 0);
    who_unref(token);
    close_place(&place);
}

TEST(who_counts_sessions_and_stored_bytes)
{
    struct place place;
    char a[TOKENS_SECRET_LEN + 1];
    struct err err = ERR_INIT;
    open_place(&place);
    add(&place, "a", "{\"sessions\": 2, \"stored_bytes\": 100}", false, a);
    struct who_token *token = find(&place, a);
    CHECK_INT(who_session_begins(token, &err), 0);
    CHECK_INT(who_session_begins(token, &err), 0);
    CHECK_INT(who_session_begins(token, &err), -1);
    CHECK_TEXT(err.field, "quota.sessions");
    who_session_ends(token);
    CHECK_INT(who_session_begins(token, &err), 0);
    CHECK_INT(who_stores(token, 60, &err), 0);
    CHECK_INT(who_stores(token, 41, &err), -1);
    CHECK_INT(err.kind, ERR_QUOTA);
    CHECK_TEXT(err.field, "quota.stored_bytes");
    CHECK_INT(who_stores(token, 40, &err), 0);
    CHECK_INT(who_stores(token, INT64_MAX, &err), -1);
    CHECK_INT(who_stores(token, -1, &err), -1);
    who_unstores(token, 50);
    who_stored_by(place.who, who_id(token), 30); /* what was found at the start is not refused */
    CHECK_INT(token->stored_bytes, 80);
    who_stored_by(place.who, who_id(token), -80);
    CHECK_INT(token->stored_bytes, 0);
    who_stored_by(place.who, "k_ffffffffffff", 10);
    CHECK_INT(place.who->count, 2);
    who_stored_by(place.who, "k_ffffffffffff", -10);
    who_stored_by(place.who, "k_ffffffffffff", -10);
    who_stored_by(place.who, "", 10);
    CHECK_INT(place.who->count, 1);
    who_unref(token);
    close_place(&place);
}

TEST(who_remembers_the_cpu_time_of_the_day_across_a_restart)
{
    struct place place;
    char a[TOKENS_SECRET_LEN + 1];
    struct err err = ERR_INIT;
    open_place(&place);
    add(&place, "a", "{\"cpu_s_a_day\": 10}", false, a);
    struct who_token *token = find(&place, a);
    CHECK_INT(who_run_begins(token, 6000, &err), 0);
    who_run_ends(token, 6000, 4000);
    CHECK(place.who->write.set);
    who_close(place.who);
    who_unref(token); /* whoever held it may be later than the service */
    open_who(&place);
    token = find(&place, a);
    CHECK_INT(token->cpu_ms, 4000);
    CHECK_INT(who_run_begins(token, 6001, &err), -1);
    CHECK_INT(who_run_begins(token, 6000, &err), 0);
    who_run_ends(token, 6000, 0);
    who_unref(token);
    who_close(place.who);
    utc += USAGE_DAY_S;
    open_who(&place);
    token = find(&place, a);
    CHECK_INT(who_run_begins(token, 10000, &err), 0);
    who_unref(token);
    close_place(&place);
}

TEST(who_writes_what_was_used_from_a_timer_and_not_at_every_request)
{
    struct place place;
    char a[TOKENS_SECRET_LEN + 1];
    struct err err = ERR_INIT;
    own_usage usage = USAGE_INIT;
    open_place(&place);
    add(&place, "a", "{}", false, a);
    for (int i = 0; i < 100; i++, utc++)
        who_unref(find(&place, a));
    CHECK_INT(faccessat(place.fd, USAGE_FILE, F_OK, 0), -1);
    CHECK(place.who->write.set);
    place.who->write.due(&place.who->write);
    CHECK(!place.who->write.set);
    CHECK_INT(usage_read(place.fd, &usage, &err), 1);
    CHECK_INT(usage.count, 1);
    CHECK_INT(usage.at[0].used_at, utc - 1);
    close_place(&place);
}

TEST(who_works_without_a_usable_usage_file)
{
    struct place place;
    char a[TOKENS_SECRET_LEN + 1];
    struct err err = ERR_INIT;
    own_usage usage = USAGE_INIT;
    open_place(&place);
    add(&place, "a", "{}", false, a);
    who_close(place.who);
    CHECK_INT(state_file_write(place.fd, USAGE_FILE, STR("{\"sch"), false, &err), 0);
    open_who(&place); /* broken: counted anew, and written over */
    who_unref(find(&place, a));
    place.who->write.due(&place.who->write);
    CHECK_INT(usage_read(place.fd, &usage, &err), 1);
    CHECK_INT(unlinkat(place.fd, USAGE_FILE, 0), 0);
    CHECK_INT(mkdirat(place.fd, USAGE_FILE, 0700), 0); /* it cannot be replaced */
    utc++;
    who_unref(find(&place, a));
    place.who->write.due(&place.who->write);
    CHECK(place.who->write.set); /* tried again later */
    CHECK_INT(unlinkat(place.fd, USAGE_FILE, AT_REMOVEDIR), 0);
    place.who->write.due(&place.who->write);
    CHECK(!place.who->write.set);
    close_place(&place);
}

TEST(who_of_a_second_service_counts_on_once_the_first_has_gone)
{
    struct place place;
    char a[TOKENS_SECRET_LEN + 1];
    struct err err = ERR_INIT;
    open_place(&place);
    add(&place, "a", "{}", false, a);
    struct who *first = place.who;
    open_who(&place);
    CHECK(first->usage_lock >= 0 && place.who->usage_lock < 0);
    struct who_token *token = who_find(first, str_of(a), &err);
    who_run_ends(token, 0, 7000);
    who_unref(token);
    who_unref(find(&place, a));
    place.who->write.due(&place.who->write);
    CHECK(place.who->usage_lock < 0 && place.who->write.set);
    who_close(first);
    place.who->write.due(&place.who->write);
    CHECK(place.who->usage_lock >= 0);
    CHECK_INT(place.who->tokens[0]->cpu_ms, 7000);
    close_place(&place);
}

static int ask(const struct who_token *token, const char *text, struct err *err)
{
    static const struct request_ceilings ceilings = { .host_memory_bytes = INT64_C(1) << 34 };
    own_request request = REQUEST_INIT;
    if (request_parse(str_of(text), &ceilings, &request, err) < 0)
        check_failed(__FILE__, __LINE__, "%s: %s", text, err->text);
    return who_allows(token, &request, err);
}

TEST(who_allows_listed_profiles_images_tools_and_limits_up_to_the_bound)
{
    static const struct {
        const char *text, *field, *bound; /* field NULL: it may */
    } cases[] = {
        { "{\"code\": \"1\"}", NULL, NULL },
        { "{\"code\": \"1\", \"profile\": \"analysis\"}", "profile", "baseline" },
        { "{\"code\": \"1\", \"limits\": {\"timeout_s\": 8}}", NULL, NULL },
        { "{\"code\": \"1\", \"limits\": {\"timeout_s\": 8.01}}", "limits.timeout_s", "at most 8" },
        { "{\"code\": \"1\", \"limits\": {\"pids\": 65}}", "limits.pids", "at most 64" },
        { "{\"code\": \"1\", \"limits\": {\"cpus\": 4}}", NULL, NULL },
    };
    struct place place;
    char a[TOKENS_SECRET_LEN + 1], b[TOKENS_SECRET_LEN + 1];
    open_place(&place);
    add(&place, "a",
        "{\"profiles\": [\"baseline\"], \"images\": [\"host\"], \"tools\": [\"look\"], "
        "\"limits\": {\"timeout_s\": 8, \"pids\": 64}}",
        false, a);
    add(&place, "b", "{\"images\": [\"other\"], \"tools\": []}", false, b);
    struct who_token *token = find(&place, a), *other = find(&place, b);
    for (size_t i = 0; i < array_len(cases); i++) {
        struct err err = ERR_INIT;
        CHECK_INT(ask(token, cases[i].text, &err), cases[i].field ? -1 : 0);
        if (!cases[i].field)
            continue;
        CHECK_INT(err.kind, ERR_FORBIDDEN);
        CHECK_TEXT(err.field, cases[i].field);
        CHECK_TEXT(err.bound, cases[i].bound);
        CHECK(*err.value && *err.hint);
    }
    struct err err = ERR_INIT;
    CHECK_INT(ask(other, "{\"code\": \"1\"}", &err), -1);
    CHECK_TEXT(err.field, "image");
    CHECK_INT(who_allows_tool(token, "look", &err), 0);
    CHECK_INT(who_allows_tool(token, "write", &err), -1);
    CHECK_INT(who_allows_tool(other, "look", &err), -1);
    CHECK_TEXT(err.bound, "none");
    who_unref(token);
    who_unref(other);
    close_place(&place);
}

TEST(who_describes_what_each_token_has_used)
{
    struct place place;
    char a[TOKENS_SECRET_LEN + 1];
    struct err err = ERR_INIT;
    open_place(&place);
    add(&place, "a", "{\"runs_at_once\": 3, \"runs_a_minute\": 9}", false, a);
    struct who_token *token = find(&place, a);
    CHECK_INT(who_run_begins(token, 0, &err), 0);
    CHECK_INT(who_run_begins(token, 0, &err), 0);
    who_run_ends(token, 0, 1500);
    own_json list = who_describe(place.who);
    const json_t *row = json_array_get(list, 0);
    const json_t *used = json_object_get(row, "used");
    CHECK_TEXT(json_string_value(json_object_get(row, "name")), "a");
    CHECK_INT(json_integer_value(json_object_get(used, "runs_at_once")), 1);
    CHECK_INT(json_integer_value(json_object_get(used, "runs_a_minute")), 2);
    CHECK_INT(json_number_value(json_object_get(used, "cpu_s_a_day")) * 1000, 1500);
    CHECK_INT(json_integer_value(json_object_get(json_object_get(row, "quota"), "runs_at_once")),
              3);
    own_str text = json_write(list, JSON_COMPACT);
    CHECK(!strstr(text, place.tokens.at[0].sha256));
    who_unref(token);
    close_place(&place);
}
