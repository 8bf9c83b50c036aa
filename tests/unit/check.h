/* The unit harness: TEST(name) { ... } registers itself and runs in a process of
 * its own; CHECK* end it at the first failure. One line a test: "ok NAME" or
 * "not ok NAME"; the exit code is the number of failures (at most 100). */
#ifndef TESTS_UNIT_CHECK_H
#define TESTS_UNIT_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct check_test {
    const char *name;
    void (*run)(void);
    struct check_test *next;
};

void check_register(struct check_test *test);
/* Called when a check fails, for what the test would leave behind; NULL: nothing. */
extern void (*check_clean)(void);
void check_failed(const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4), noreturn));
bool check_same_text(const char *a, const char *b);

#define TEST(id)                                                                                   \
    static void test_##id(void);                                                                   \
    __attribute__((constructor)) static void register_##id(void)                                   \
    {                                                                                              \
        static struct check_test test = { #id, test_##id, NULL };                                  \
        check_register(&test);                                                                     \
    }                                                                                              \
    static void test_##id(void)

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            check_failed(__FILE__, __LINE__, "%s", #condition);                                    \
    } while (0)

#define CHECK_INT(got, want)                                                                       \
    do {                                                                                           \
        long long check_got = (long long)(got), check_want = (long long)(want);                    \
        if (check_got != check_want)                                                               \
            check_failed(__FILE__, __LINE__, "%s is %lld, not %lld", #got, check_got, check_want); \
    } while (0)

#define CHECK_TEXT(got, want)                                                                      \
    do {                                                                                           \
        const char *check_got = (got), *check_want = (want);                                       \
        if (!check_same_text(check_got, check_want))                                               \
            check_failed(__FILE__, __LINE__, "%s is \"%s\", not \"%s\"", #got,                     \
                         check_got ? check_got : "(null)", check_want ? check_want : "(null)");    \
    } while (0)

#endif
