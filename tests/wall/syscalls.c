/* Makes system calls by number, each in a child of its own, and says what came of it. Reads
 * lines of "NR A0 A1 A2 A3 A4 A5" (hexadecimal arguments) and prints for each line one of
 *   ok · errno N · signal N · exit N (the call itself ended the child) · stuck */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_MS = 300, EXITED = 77 };

struct call {
    long number;
    unsigned long arg[6];
};

/* In the child: nothing but the call and its report, as the call may have changed anything. */
static void make(const struct call *call, int out)
{
    errno = 0;
    long value = syscall(call->number, call->arg[0], call->arg[1], call->arg[2], call->arg[3],
                         call->arg[4], call->arg[5]);
    int error = value == -1 ? errno : 0;
    if (write(out, &error, sizeof error) != sizeof error)
        _exit(EXITED + 1);
    _exit(EXITED);
}

static void describe(int out, pid_t child)
{
    struct pollfd wait = { .fd = out, .events = POLLIN };
    int error = 0, status = 0;
    int stuck = poll(&wait, 1, PATIENCE_MS) == 0;
    if (stuck)
        kill(child, SIGKILL);
    ssize_t got = read(out, &error, sizeof error);
    if (waitpid(child, &status, 0) != child)
        puts("lost");
    else if (stuck)
        puts("stuck");
    else if (got == sizeof error && error)
        printf("errno %d\n", error);
    else if (got == sizeof error)
        puts("ok");
    else if (WIFSIGNALED(status))
        printf("signal %d\n", WTERMSIG(status));
    else
        printf("exit %d\n", WEXITSTATUS(status));
}

int main(void)
{
    struct call call;
    unsigned long *a = call.arg;
    while (scanf("%ld %lx %lx %lx %lx %lx %lx", &call.number, &a[0], &a[1], &a[2], &a[3], &a[4],
                 &a[5]) == 7) {
        int pair[2];
        if (pipe(pair) < 0)
            return 1;
        fflush(stdout);
        pid_t child = fork();
        if (child < 0)
            return 1;
        if (child == 0)
            make(&call, pair[1]);
        close(pair[1]);
        describe(pair[0], child);
        close(pair[0]);
    }
    return 0;
}
