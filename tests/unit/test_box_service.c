/* The service's filter, by its table and in a real kernel: a child confines itself, then tries.
 * Each probe has its control, the same in a child that is not confined. */
#include "box/wall/confine.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/attr.h"
#include "box/wall/filter.h"
#include "bpf_sim.h"
#include "check.h"

#ifndef __SANITIZE_ADDRESS__ /* that build does not raise the filter */

static uint32_t verdict(const char *name, const uint64_t args[3])
{
    struct seccomp_data data = { .nr = -1, .arch = OWN_ARCH };
    uint32_t action = 0;
    for (size_t i = 0; i < array_len(box_filter_names); i++)
        if (check_same_text(box_filter_names[i].name, name))
            data.nr = box_filter_names[i].nr;
    if (data.nr < 0) /* only x86_64 has it */
        return 0;
    memcpy(data.args, args, 3 * sizeof *args);
    CHECK_INT(bpf_sim_run(box_filter_service, BOX_FILTER_SERVICE_LEN, &data, &action), 0);
    return action;
}

static void check_names(const char *const *names, uint32_t want)
{
    static const uint64_t fills[][3] = { { 0 }, { 0x5a5a5a5a, 0x5a5a5a5a, 0x5a5a5a5a } };
    for (; *names; names++)
        for (size_t i = 0; i < array_len(fills); i++) {
            uint32_t got = verdict(*names, fills[i]);
            if (got && got != want)
                check_failed(__FILE__, __LINE__, "%s is 0x%08x, not 0x%08x", *names, got, want);
        }
}

#define ALLOW SECCOMP_RET_ALLOW
#define QUIET(error) (SECCOMP_RET_ERRNO | (error))

TEST(box_service_filter_starts_no_process_and_takes_no_power)
{
    static const char *const killed[] = {
        "execve", "execveat", "ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd",
        "mount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "fsopen", "fsmount",
        "mount_setattr", "unshare", "setns", "setuid", "setresuid", "setgroups", "capset", "bpf",
        "perf_event_open", "userfaultfd", "keyctl", "init_module", "finit_module", "kexec_load",
        "open_by_handle_at", NULL,
    };
    static const char *const refused[] = { "fork", "vfork", "clone", "kill", "tgkill", "tkill",
                                           "pidfd_send_signal", NULL };
    static const char *const absent[] = { "io_uring_setup", "listen", "seccomp",
                                          "personality", "mknodat", "symlinkat", "splice", NULL };
    static const char *const works[] = { "read", "sendmsg", "recvmsg", "accept4", "epoll_wait",
                                         "openat", "futex", "connect", "munmap", NULL };
    check_names(killed, SECCOMP_RET_KILL_PROCESS);
    check_names(refused, QUIET(EPERM));
    check_names(absent, QUIET(ENOSYS));
    check_names(works, ALLOW);
}

TEST(box_service_filter_decides_by_arguments)
{
    static const struct {
        const char *call;
        uint64_t args[3];
        uint32_t want;
    } rows[] = {
        { "clone", { 0x003d0f00 /* a thread */, 0, 0 }, ALLOW },
        { "clone", { 0x01200011 /* a child */, 0, 0 }, QUIET(EPERM) },
        { "clone", { 0x003d0f00 | CLONE_NEWUSER, 0, 0 }, QUIET(EPERM) },
        { "socket", { AF_INET6, SOCK_STREAM, 0 }, ALLOW },
        { "socket", { 17 /* AF_PACKET */, SOCK_RAW, 0 }, QUIET(EAFNOSUPPORT) },
        { "prctl", { PR_SET_NAME, 0, 0 }, ALLOW },
        { "prctl", { PR_SET_DUMPABLE, 1, 0 }, QUIET(EPERM) },
        { "tgkill", { 1, 1, 6 /* SIGABRT */ }, ALLOW },
        { "tgkill", { 1, 1, 9 }, QUIET(EPERM) },
        { "mmap", { 0, 4096, PROT_READ | PROT_EXEC }, ALLOW },
        { "mmap", { 0, 4096, PROT_WRITE | PROT_EXEC }, QUIET(EPERM) },
        { "mprotect", { 0, 4096, PROT_READ | PROT_EXEC }, QUIET(EPERM) },
        { "ioctl", { 0, 0x5412 /* TIOCSTI */, 0 }, QUIET(EPERM) },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        uint32_t got = verdict(rows[i].call, rows[i].args);
        if (got != rows[i].want)
            check_failed(__FILE__, __LINE__, "row %zu, %s: 0x%08x", i, rows[i].call, got);
    }
}

#define WORKS 0
#define KILLED 1000 /* by the filter; other outcomes are numbers of errors */
#define ANY (-1) /* of a control that needs powers: anything but killed */

static int of(long rc)
{
    return rc < 0 ? errno : WORKS;
}

static int try_exec(void)
{
    char *const argv[] = { (char *)(uintptr_t)"true", NULL };
    return of(execve("/bin/true", argv, argv + 1));
}

static int try_exec_at(void)
{
    char *const argv[] = { (char *)(uintptr_t)"true", NULL };
    return of(syscall(SYS_execveat, AT_FDCWD, "/bin/true", argv, argv + 1, 0));
}

static int try_fork(void)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    return of(pid);
}

static int try_clone3(void)
{
    uint64_t args[8] = { [4] = SIGCHLD };
    long pid = syscall(SYS_clone3, args, sizeof args);
    if (pid == 0)
        _exit(0);
    return of(pid);
}

static int try_trace(void)
{
    return of(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
}

static int try_read_memory(void)
{
    char from = 'x', to = 0;
    struct iovec local = { &to, 1 }, remote = { &from, 1 };
    return of(process_vm_readv(getpid(), &local, 1, &remote, 1, 0));
}

static int try_unshare(void)
{
    return of(unshare(CLONE_FILES));
}

static int try_setns(void)
{
    int fd = open("/proc/self/ns/uts", O_RDONLY | O_CLOEXEC);
    return of(syscall(SYS_setns, fd, 0));
}

static int try_mount(void)
{
    return of(syscall(SYS_mount, "none", "/nowhere", "tmpfs", 0, NULL));
}

static int try_bpf(void)
{
    return of(syscall(SYS_bpf, 0, NULL, 0));
}

static int try_setuid(void)
{
    return of(syscall(SYS_setresuid, geteuid(), geteuid(), geteuid()));
}

static int try_keys(void)
{
    return of(syscall(SYS_keyctl, 0, -3, 0, 0, 0));
}

static int try_ring(void)
{
    return of(syscall(SYS_io_uring_setup, 0, NULL));
}

static int try_packets(void)
{
    return of(socket(AF_PACKET, SOCK_DGRAM, 0));
}

static int try_internet(void)
{
    return of(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

static int try_unix(void)
{
    int ends[2];
    return of(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
}

static int try_listen(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return fd < 0 ? errno : of(listen(fd, 1));
}

static int try_signal(void)
{
    return of(kill(getppid(), 0));
}

static int try_dumpable(void)
{
    return of(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
}

static int try_written_code(void)
{
    void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                    0);
    return at == MAP_FAILED ? errno : WORKS;
}

static int try_changed_code(void)
{
    void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? -1 : of(mprotect(at, 4096, PROT_READ | PROT_EXEC));
}

static int try_limits_of_others(void)
{
    struct rlimit limit;
    return of(syscall(SYS_prlimit64, getppid(), RLIMIT_NOFILE, NULL, &limit));
}

static void *add_one(void *count)
{
    atomic_fetch_add((atomic_int *)count, 1);
    return NULL;
}

static int try_thread(void)
{
    atomic_int count = 0;
    pthread_t thread;
    if (pthread_create(&thread, NULL, add_one, &count) != 0 || pthread_join(thread, NULL) != 0)
        return EAGAIN;
    return count == 1 ? WORKS : EINVAL;
}

static int try_library(void)
{
    return dlopen("libresolv.so.2", RTLD_NOW) ? WORKS : ENOENT;
}

static int try_abort(void)
{
    signal(SIGABRT, SIG_DFL);
    abort();
}

static const struct probe {
    const char *name;
    int (*run)(void);
    int confined, control;
} probes[] = {
    { "execve", try_exec, KILLED, WORKS },
    { "execveat", try_exec_at, KILLED, WORKS },
    { "fork", try_fork, EPERM, WORKS },
    { "clone3", try_clone3, ENOSYS, WORKS },
    { "ptrace", try_trace, KILLED, ANY },
    { "process_vm_readv", try_read_memory, KILLED, ANY },
    { "unshare", try_unshare, KILLED, WORKS },
    { "setns", try_setns, KILLED, ANY },
    { "mount", try_mount, KILLED, ANY },
    { "bpf", try_bpf, KILLED, ANY },
    { "setresuid", try_setuid, KILLED, WORKS },
    { "keyctl", try_keys, KILLED, ANY },
    { "io_uring", try_ring, ENOSYS, ANY },
    { "packets", try_packets, EAFNOSUPPORT, ANY },
    { "internet", try_internet, WORKS, WORKS },
    { "unix", try_unix, WORKS, WORKS },
    { "listen", try_listen, ENOSYS, WORKS },
    { "kill", try_signal, EPERM, WORKS },
    { "dumpable", try_dumpable, EPERM, WORKS },
    { "written code", try_written_code, EPERM, WORKS },
    { "changed code", try_changed_code, EPERM, WORKS },
    { "limits of others", try_limits_of_others, EPERM, WORKS },
    { "thread", try_thread, WORKS, WORKS },
    { "library", try_library, WORKS, WORKS },
    { "abort", try_abort, SIGABRT, SIGABRT },
};

static int outcome_of(int (*run)(void), bool confined)
{
    int status = 0;
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        if (confined && box_confine_service() < 0)
            _exit(255);
        _exit(run());
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    return WTERMSIG(status) == SIGSYS ? KILLED : WTERMSIG(status);
}

TEST(box_service_can_do_its_work_and_nothing_else)
{
    for (size_t i = 0; i < array_len(probes); i++) {
        const struct probe *probe = &probes[i];
        int control = outcome_of(probe->run, /* confined= */ false);
        if (probe->control == ANY ? control == KILLED : control != probe->control)
            check_failed(__FILE__, __LINE__, "%s outside: %d", probe->name, control);
        int confined = outcome_of(probe->run, /* confined= */ true);
        if (confined != probe->confined)
            check_failed(__FILE__, __LINE__, "%s: %d, not %d", probe->name, confined,
                         probe->confined);
    }
}

/* ---- a thread that was there before ---- */

struct earlier {
    atomic_int go;
    int said;
};

static void *fork_when_told(void *user)
{
    struct earlier *earlier = user;
    while (!atomic_load(&earlier->go))
        sched_yield();
    earlier->said = try_fork();
    return NULL;
}

static int try_earlier_thread(bool confined)
{
    struct earlier earlier = { .said = -1 };
    pthread_t thread;
    if (pthread_create(&thread, NULL, fork_when_told, &earlier) != 0)
        return EAGAIN;
    int rc = confined ? box_confine_service() : 0;
    atomic_store(&earlier.go, 1);
    pthread_join(thread, NULL);
    return rc < 0 ? errno : earlier.said;
}

static int earlier_thread_confined(void)
{
    return try_earlier_thread(true);
}

static int earlier_thread_free(void)
{
    return try_earlier_thread(false);
}

TEST(box_service_confines_threads_that_are_there)
{
    CHECK_INT(outcome_of(earlier_thread_free, /* confined= */ false), WORKS);
    CHECK_INT(outcome_of(earlier_thread_confined, /* confined= */ false), EPERM);
}

#endif
