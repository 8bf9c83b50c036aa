/* Commands: what a command line becomes, and what of it is refused. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "contract/request.h"

static const struct request_ceilings ceilings = { .host_memory_bytes = (int64_t)64 << 30 };
static const struct request_command plain;

static struct request session(void)
{
    struct request request = REQUEST_INIT;
    struct err err = ERR_INIT;
    own_json object = json_pack("{s:s, s:{s:s}}", "profile", "analysis", "env", "A", "b");
    CHECK_INT(request_from_session_json(object, &ceilings, &request, &err), 0);
    return request;
}

TEST(command_bytes_are_kept_and_time_has_no_end_but_a_year)
{
    char *const words[] = { "printf", "\xff\x01", "", NULL };
    own_request request = session();
    struct err err = ERR_INIT;
    CHECK_INT(request_set_command(&request, words, 3, &plain, 0, &err), 0);
    CHECK_INT(request.arg_count, 3);
    CHECK(str_is(request.args[1], "\xff\x01") && request.args[2].len == 0);
    CHECK(request.command == &plain);
    CHECK(request.limits.value[LIMITS_TIMEOUT] == REQUEST_COMMAND_MS);
    CHECK(request.limits.value[LIMITS_CPU] > REQUEST_COMMAND_MS); /* two processors */
    CHECK_INT(request.limits.value[LIMITS_PIDS], 256);
}

TEST(command_time_limit_that_is_named_counts)
{
    char *const words[] = { "true", NULL };
    own_request request = session();
    struct err err = ERR_INIT;
    CHECK_INT(request_set_command(&request, words, 1, &plain, 90000 * 1000, &err), 0);
    CHECK_INT(request.limits.value[LIMITS_TIMEOUT], 90000 * 1000);
}

TEST(command_no_json_names_one)
{
    static const char *const names[] = { "command", "terminal", "argv" };
    for (size_t i = 0; i < array_len(names); i++) {
        own_request request = REQUEST_INIT;
        struct err err = ERR_INIT;
        own_json object = json_pack("{s:s, s:[s]}", "code", "1", names[i], "ls");
        CHECK_INT(request_from_json(object, &ceilings, &request, &err), -1);
        CHECK_INT(err.kind, ERR_INPUT);
    }
}

TEST(command_lines_are_bounded)
{
    char *const empty[] = { "", NULL };
    char *long_word = malloc(REQUEST_ARG_MAX + 2);
    memset(long_word, 'x', REQUEST_ARG_MAX + 1);
    long_word[REQUEST_ARG_MAX + 1] = 0;
    char *const one[] = { long_word, NULL };
    char **many = calloc(REQUEST_ARGS_MAX + 1, sizeof *many);
    for (size_t i = 0; i <= REQUEST_ARGS_MAX; i++)
        many[i] = long_word + 2; /* one less than may be in a word */
    const struct {
        char *const *words;
        size_t count;
    } rows[] = {
        { empty, 0 }, { empty, 1 }, { one, 1 }, { many, REQUEST_ARGS_MAX + 1 }, { many, 6 },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        own_request request = session();
        struct err err = ERR_INIT;
        CHECK_INT(request_set_command(&request, rows[i].words, rows[i].count, &plain, 0, &err), -1);
        CHECK_INT(err.kind, ERR_INPUT);
        CHECK(strncmp(err.field, "command", 7) == 0 && !request.command && !request.args);
    }
    own_request request = session();
    struct err err = ERR_INIT;
    CHECK_INT(request_set_command(&request, many, 5, &plain, 0, &err), 0);
    free(many);
    request_done(&request); /* before the words that it looks at */
    free(long_word);
}
