/* What keeps parked copies safe, and the keeper small. */
#include "box/park/park.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"
#include "check.h"
#include "park_target.h"

#if INJECT_HERE

/* What a process of uid S can do to another, as bits. */
static int reach(pid_t pid)
{
    int done = 0, status = -1;
    pid_t attacker = fork();
    if (attacker == 0) {
        char path[64];
        snprintf(path, sizeof path, "/proc/%d/mem", pid);
        if (setresgid(session.own, session.own, session.own) < 0 ||
            setresuid(session.own, session.own, session.own) < 0)
            _exit(128);
        done |= kill(pid, SIGSTOP) == 0 ? 1 : 0;
        done |= kill(pid, SIGCONT) == 0 ? 2 : 0;
        done |= open(path, O_RDWR) >= 0 ? 4 : 0;
        done |= syscall(SYS_ptrace, 0x4206L, (long)pid, 0L, 0L) == 0 ? 8 : 0;
        done |= kill(pid, SIGKILL) == 0 ? 16 : 0;
        _exit(done);
    }
    CHECK(waitpid(attacker, &status, 0) == attacker && WIFEXITED(status));
    return WEXITSTATUS(status);
}

TEST(park_a_parked_copy_is_out_of_reach)
{
    if (!may_run() || !two_uids())
        return;
    int ready[2];
    char end;
    CHECK_INT(pipe2(ready, O_CLOEXEC), 0);
    pid_t plain = fork(); /* that the attacks work is shown on this one */
    if (plain == 0) {
        if (setresgid(session.own, session.own, session.own) < 0 ||
            setresuid(session.own, session.own, session.own) < 0 ||
            prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
            _exit(1);
        close(ready[1]);
        for (;;)
            pause();
    }
    CHECK(close(ready[1]) == 0 && read(ready[0], &end, 1) == 0);
    CHECK_INT(reach(plain), 31);
    CHECK_INT(waitpid(plain, NULL, 0), plain);
    struct python live = start(false);
    struct park parked = copy_of(&live);
    CHECK_INT(reach(parked.pid), 0);
    char text[128];
    snprintf(text, sizeof text, "os.kill(%d, 9)", parked.pid);
    CHECK_TEXT(ask(live.sock, text), "PermissionError(1, 'Operation not permitted')");
    CHECK_TEXT(ask(live.sock, "os.setresuid(holder, own, holder)"),
               "OSError(38, 'Function not implemented')");
    struct python woken = wake(&parked, &stay);
    CHECK_TEXT(ask(woken.sock, "os.setresuid(holder, own, holder)"),
               "OSError(38, 'Function not implemented')");
    stop(&live);
    stop(&woken);
    check_nothing_left();
}

TEST(park_copies_die_with_their_keeper)
{
    if (!may_run())
        return;
    struct python live = start(false);
    int news[2];
    CHECK_INT(pipe2(news, O_CLOEXEC), 0);
    pid_t keeper = fork();
    if (keeper == 0) {
        struct park copies[3] = { copy_of(&live), copy_of(&live), PARK_NONE };
        CHECK_INT(park_copy_parked(&session, &copies[0], &stay, &copies[2]), INJECT_OK);
        for (int i = 0; i < 3; i++)
            CHECK_INT(write(news[1], &copies[i].pid, sizeof(pid_t)), sizeof(pid_t));
        for (;;)
            pause();
    }
    pid_t copies[3];
    CHECK_INT(io_read_all(news[0], copies, sizeof copies), 0);
    kill(keeper, SIGKILL);
    CHECK_INT(waitpid(keeper, NULL, 0), keeper);
    for (int i = 0; i < 3; i++) {
        int status = 0;
        CHECK_INT(waitpid(copies[i], &status, 0), copies[i]);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
    CHECK_TEXT(ask(live.sock, "x"), "1");
    stop(&live);
    check_nothing_left();
}

static void keep_with_one_capability(const struct python *live)
{
    const uint32_t bit = 1u << CAP_SYS_PTRACE;
    struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct one[2] = { { bit, bit, 0 } };
    CHECK_INT(syscall(SYS_capset, &head, one), 0);
    struct park parked = copy_of(live), other = PARK_NONE, dropped = PARK_NONE;
    CHECK_TEXT(ask(live->sock, "x = 2"), "None");
    CHECK_INT(park_copy_parked(&session, &parked, &stay, &other), INJECT_OK);
    CHECK_INT(park_copy_parked(&session, &parked, &stay, &dropped), INJECT_OK);
    struct python woken = wake(&parked, &stay);
    CHECK_TEXT(ask(woken.sock, "x, os.getresuid(), os.getppid()"), "(1, (61001, 61001, 61002), 0)");
    CHECK_TEXT(ask(woken.sock, "os.getpid() == threading.get_native_id() < 9"), "True");
    park_drop(&dropped);
    _exit(0); /* with a parked copy, which must not keep the pid namespace from ending */
}

/* As it will be: the target in a user and a pid namespace below, with an init; the
 * keeper is not its parent, and its uid has no power. */
TEST(park_needs_one_capability)
{
    if (!may_run() || !two_uids())
        return;
    own_fd pid_ns = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
    CHECK_INT(unshare(CLONE_NEWPID), 0);
    pid_t init = fork();
    while (init == 0)
        pause();
    struct python live = start(true);
    CHECK_INT(setns(pid_ns, CLONE_NEWPID), 0);
    pid_t keeper = fork();
    if (keeper == 0)
        keep_with_one_capability(&live);
    int status = -1;
    CHECK_INT(waitpid(keeper, &status, 0), keeper);
    CHECK_INT(status, 0);
    CHECK_TEXT(ask(live.sock, "x"), "2");
    stop(&live);
    kill(init, SIGKILL);
    for (int i = 0; i < 4; i++) /* and what was woken, dropped, and parked at the end */
        CHECK(waitpid(-1, NULL, 0) > 0);
    check_nothing_left();
}

/* A target that waits by a system call instruction which others can overwrite. */
TEST(park_what_was_no_system_call_is_seen)
{
    static const unsigned char call[] = { 0x0f, 0x05, 0xc3 }, no_call[] = { 0x31, 0xc0 };
    if (!may_run())
        return;
    unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int pair[2], status = 0;
    CHECK(code != MAP_FAILED && socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
    memcpy(code, call, sizeof call);
    pid_t pid = fork();
    if (pid == 0) {
        char byte;
        long got = SYS_read;
        close(pair[0]);
        __asm__ volatile("call *%1"
                         : "+a"(got)
                         : "r"(code), "D"((long)pair[1]), "S"(&byte), "d"(1L)
                         : "rcx", "r11", "memory");
        _exit(got == 1 ? byte : 1);
    }
    const struct inject_target target = { .pid = pid, .proc = session.proc, .requests = pair[1],
                                          .timeout_ms = 5000, .settle_ms = 2000 };
    const struct inject_order order = { SYS_getppid, { 0 } };
    struct inject at;
    long result = -1;
    CHECK_INT(inject_attach(&target, &at), INJECT_OK);
    memcpy(code, no_call, sizeof no_call); /* would leave 0, as a success does */
    CHECK_INT(inject_call(&at, &order, &result), INJECT_NOT_QUIET);
    memcpy(code, call, sizeof call);
    CHECK_INT(inject_call(&at, &order, &result), INJECT_OK);
    CHECK_INT(result, getpid());
    CHECK_INT(inject_let_go(&at), INJECT_OK);
    CHECK_INT(send(pair[0], "\x07", 1, 0), 1);
    CHECK_INT(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    check_nothing_left();
}

/* --- control groups --- */

static const char *word_in(int memory)
{
    static char text[8];
    ssize_t n = pread(memory, text, sizeof text - 1, 0);
    text[n < 0 ? 0 : n] = 0;
    return text;
}

TEST(park_tasks_are_written_and_closed)
{
    if (!may_run())
        return;
    struct python live = start(false);
    char before[64], after[64];
    list_fds(live.sock, before);
    struct park_tasks tasks = { .count = PARK_TASKS_MAX };
    for (int i = 0; i < PARK_TASKS_MAX; i++)
        tasks.fd[i] = memfd_create("tasks", MFD_CLOEXEC); /* show what was written */
    struct park parked = PARK_NONE, other = PARK_NONE;
    CHECK_INT(park_copy(&session, live.pid, &tasks, &parked), INJECT_OK);
    for (int i = 0; i < PARK_TASKS_MAX; i++)
        CHECK_TEXT(word_in(tasks.fd[i]), "0");
    CHECK_INT(park_copy_parked(&session, &parked, &stay, &other), INJECT_OK);
    struct python woken = wake(&parked, &tasks);
    CHECK_TEXT(word_in(tasks.fd[0]), "00");
    CHECK_TEXT(list_fds(woken.sock, after), before);
    tasks.fd[3] = session.proc; /* cannot be written: then there is no copy, and no harm */
    struct park none = PARK_NONE;
    CHECK_INT(park_copy(&session, live.pid, &tasks, &none), INJECT_REFUSED);
    CHECK_INT(errno, EBADF);
    CHECK_INT(park_wake(&session, &other, (int[]){ live.sock, live.sock }, &tasks, &live.pid,
                        &woken_lost),
              INJECT_REFUSED);
    CHECK(none.pid == 0 && other.pid == 0);
    /* Room for the pair and some of them, not for all. */
    CHECK_TEXT(ask(live.sock, "resource.setrlimit(7, (10, 10))"), "None");
    CHECK_INT(park_copy(&session, live.pid, &tasks, &none), INJECT_REFUSED);
    CHECK_INT(errno, EMFILE);
    CHECK_TEXT(ask(live.sock, "x"), "1");
    stop(&live);
    stop(&woken);
    check_nothing_left();
}

static int group_tasks(const char *group, uid_t opener)
{
    char path[128];
    snprintf(path, sizeof path, "%s/tasks", group);
    CHECK_INT(chown(path, opener, (gid_t)-1), 0);
    CHECK_INT(seteuid(opener), 0);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    CHECK(seteuid(0) == 0 && fd >= 0);
    return fd;
}

static bool is_in_group(pid_t pid, const char *name)
{
    char path[64], text[2048];
    snprintf(path, sizeof path, "/proc/%d/cgroup", pid);
    own_fd fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    CHECK(n > 0);
    text[n] = 0;
    return strstr(text, name) != NULL;
}

TEST(park_copies_live_in_a_control_group_of_their_own)
{
    char parked_group[64], live_group[64];
    if (!may_run() || !two_uids())
        return;
    snprintf(parked_group, sizeof parked_group, "/sys/fs/cgroup/pids/cupel-park-%d", getpid());
    snprintf(live_group, sizeof live_group, "/sys/fs/cgroup/pids/cupel-live-%d", getpid());
    if (mkdir(parked_group, 0755) < 0 || mkdir(live_group, 0755) < 0) {
        printf("# skipped: no pids hierarchy of cgroup v1\n");
        return;
    }
    struct park_tasks to_parked = { .count = 1, .fd = { group_tasks(parked_group, session.holder) },
                                    .name = strrchr(parked_group, '/') + 1,
                                    .controller = { "pids" } };
    struct park_tasks to_live = { .count = 1, .fd = { group_tasks(live_group, session.holder) },
                                  .name = strrchr(live_group, '/') + 1, .controller = { "pids" } };
    struct park_tasks of_own = { .count = 1, .fd = { group_tasks(live_group, session.own) } };
    struct park_tasks elsewhere = to_live; /* it moves, and not where it should */
    elsewhere.name = to_parked.name;
    struct python live = start(false);
    struct park parked = PARK_NONE, other = PARK_NONE;
    enum inject_end copied = park_copy(&session, live.pid, &to_parked, &parked);
    enum inject_end again = park_copy_parked(&session, &parked, &to_parked, &other);
    bool apart = !is_in_group(live.pid, "cupel-park") && is_in_group(parked.pid, "cupel-park") &&
                 is_in_group(other.pid, "cupel-park");
    /* What S has opened does not move what is H's. */
    struct park dragged = PARK_NONE;
    enum inject_end drag = park_copy_parked(&session, &other, &of_own, &dragged);
    enum inject_end astray = park_copy_parked(&session, &other, &elsewhere, &dragged);
    int why = errno;
    struct python woken = wake(&parked, &to_live);
    bool back = is_in_group(woken.pid, "cupel-live");
    park_drop(&other);
    stop(&live);
    stop(&woken);
    CHECK(rmdir(parked_group) == 0 && rmdir(live_group) == 0);
    CHECK(copied == INJECT_OK && again == INJECT_OK && apart && back);
    CHECK(drag == INJECT_REFUSED && dragged.pid == 0);
    CHECK(astray == INJECT_REFUSED && why == EPROTO);
    check_nothing_left();
}

#endif
