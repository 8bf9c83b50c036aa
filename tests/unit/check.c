/* Runs the registered unit tests, each in a child process, in name order. With arguments: only
 * the tests whose names contain one of them, or are it, for "=NAME". --list prints the names. */
#include "check.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static struct check_test *tests;

void check_register(struct check_test *test)
{
    struct check_test **at = &tests;
    while (*at && strcmp((*at)->name, test->name) < 0)
        at = &(*at)->next;
    test->next = *at;
    *at = test;
}

void (*check_clean)(void);

void check_failed(const char *file, int line, const char *fmt, ...)
{
    va_list ap;
    printf("# %s:%d: ", file, line);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n");
    fflush(stdout);
    if (check_clean)
        check_clean();
    _exit(1);
}

bool check_same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool wanted(const char *name, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] == '=' ? strcmp(name, argv[i] + 1) == 0 : strstr(name, argv[i]) != NULL)
            return true;
    }
    return argc < 2;
}

/* A test that failed half way leaves children, which would hold our stdout open. */
static void kill_orphans(void)
{
    char path[64];
    int pid;
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    for (int i = 0; i < 1000; i++) {
        FILE *list = fopen(path, "re");
        bool found = list && fscanf(list, "%d", &pid) == 1;
        if (list)
            fclose(list);
        if (!found)
            return;
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
}

static bool run_alone(const struct check_test *test)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(180);
        test->run();
        fflush(stdout);
        exit(0); /* not _exit: the leak checker reports at exit */
    }
    int status = -1;
    while (waitpid(-1, &status, 0) != pid) /* orphans of the test come here */
        ;
    bool ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!ok)
        kill_orphans();
    printf("%s %s\n", ok ? "ok" : "not ok", test->name);
    return ok;
}

int main(int argc, char **argv)
{
    int failures = 0, count = 0;
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (struct check_test *test = tests; test; test = test->next)
            printf("%s\n", test->name);
        return 0;
    }
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    for (struct check_test *test = tests; test; test = test->next) {
        if (!wanted(test->name, argc, argv))
            continue;
        count++;
        failures += !run_alone(test);
    }
    printf("unit: %d passed, %d failed\n", count - failures, failures);
    return failures > 100 ? 100 : failures + (count == 0);
}
