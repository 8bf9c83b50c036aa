/* The error value. */
#include "check.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"

TEST(err_set_fills_and_returns_minus_one)
{
    struct err err = ERR_INIT;
    CHECK_INT(err_set(&err, ERR_LIMIT, "%s '%d'", "number", 5), -1);
    CHECK_INT(err.kind, ERR_LIMIT);
    CHECK_TEXT(err.text, "number '5'");
    CHECK_INT(err.sys, 0);
}

TEST(err_sys_keeps_errno_and_its_text)
{
    struct err err = ERR_INIT;
    errno = ENOENT;
    CHECK_INT(err_sys(&err, "open '%s'", "/x"), -1);
    CHECK_INT(err.kind, ERR_HOST);
    CHECK_INT(err.sys, ENOENT);
    CHECK_TEXT(err.text, "open '/x': No such file or directory");
}

TEST(err_wrap_puts_a_frame_in_front)
{
    struct err err = ERR_INIT;
    err_set(&err, ERR_ABSENT, "inner");
    err_hint(&err, "hint %d", 1);
    CHECK_INT(err_wrap(&err, "outer %d", 2), -1);
    CHECK_TEXT(err.text, "outer 2: inner");
    CHECK_TEXT(err.hint, "hint 1");
    CHECK_INT(err.kind, ERR_ABSENT);
}

TEST(err_input_tells_field_value_and_bound)
{
    struct err err = ERR_INIT;
    CHECK_INT(err_input(&err, "a.b", "5", "at most 4", "too much"), -1);
    CHECK_INT(err.kind, ERR_INPUT);
    CHECK_TEXT(err.field, "a.b");
    CHECK_TEXT(err.value, "5");
    CHECK_TEXT(err.bound, "at most 4");
    CHECK_TEXT(err.hint, "");
    err_input(&err, NULL, NULL, NULL, "x");
    CHECK_TEXT(err.field, "");
    CHECK_TEXT(err.value, "");
}

TEST(err_texts_are_cut_to_their_room)
{
    struct err err = ERR_INIT;
    char large[2000];
    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = 0;
    err_input(&err, large, large, large, "%s", large);
    err_hint(&err, "%s", large);
    CHECK_INT(strlen(err.text), sizeof err.text - 1);
    CHECK_INT(strlen(err.field), sizeof err.field - 1);
    CHECK_INT(strlen(err.hint), sizeof err.hint - 1);
    err_wrap(&err, "%s", large);
    CHECK_INT(strlen(err.text), sizeof err.text - 1);
    errno = EPERM;
    err_sys(&err, "%s", large);
    CHECK_INT(strlen(err.text), sizeof err.text - 1);
}

TEST(err_kinds_have_names_and_exit_codes)
{
    CHECK_TEXT(err_kind_name(ERR_INPUT), "input");
    CHECK_INT(err_exit_code(ERR_INPUT), 2);
    CHECK_INT(err_exit_code(ERR_USAGE), 2);
    CHECK_INT(err_exit_code(ERR_HOST), 125);
    CHECK_TEXT(err_kind_name(ERR_BUG), "internal");
    CHECK_INT(err_exit_code(ERR_NONE), 0);
}
