/* The target of the parking tests: see the header. */
#include "park_target.h"

#if INJECT_HERE

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"
#include "check.h"

struct park_session session = { .channel = { WORDS, REQUESTS }, .own = 61001, .holder = 61002,
                                .warden = -1,
                                .seen_own = 61001, .seen_holder = 61002,
                                .timeout_ms = 20000, .settle_ms = 20000 };
const struct park_tasks stay = { .count = 0 };
uint32_t woken_lost;

static const char script[] =
    "import os, resource, signal, socket, subprocess, sys, threading, time\n"
    "own, holder, requests = map(int, sys.argv[1:])\n"
    "os.setresgid(own, own, own); os.setresuid(own, own, holder)\n"
    "box, names = socket.socket(fileno=requests), globals()\n"
    "def answer(text):\n"
    "    try: return eval(text, names)\n"
    "    except SyntaxError: return exec(text, names)\n"
    "while True:\n"
    "    try:\n"
    "        text = os.read(requests, 65536).decode()\n"
    "        if not text: os._exit(0)\n"
    "        said = answer(text)\n"
    "    except KeyboardInterrupt: said = 'interrupted'\n"
    "    except Exception as e: said = repr(e)\n"
    "    box.send(str(said).encode())\n";

static void write_file(const char *path, const char *text)
{
    own_fd fd = open(path, O_WRONLY | O_CLOEXEC);
    CHECK(fd >= 0 && io_write_all(fd, text, strlen(text)) == 0);
}

bool may_run(void)
{
    const uid_t uid = getuid();
    const gid_t gid = getgid();
    if (geteuid() != 0) {
        char map[64];
        if (unshare(CLONE_NEWUSER) < 0) {
            printf("# skipped: neither root nor user namespaces\n");
            return false;
        }
        write_file("/proc/self/setgroups", "deny");
        snprintf(map, sizeof map, "0 %u 1", uid);
        write_file("/proc/self/uid_map", map);
        snprintf(map, sizeof map, "0 %u 1", gid);
        write_file("/proc/self/gid_map", map);
        session.own = session.holder = session.seen_own = session.seen_holder = 0;
    }
    session.proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    CHECK(session.proc >= 0);
    return true;
}

bool two_uids(void)
{
    if (session.own == session.holder)
        printf("# skipped: needs root, for two uids\n");
    return session.own != session.holder;
}

/* What the box will have: other uids only at the tracer's word. */
static int install_filter(void)
{
    const uint32_t arg = offsetof(struct seccomp_data, args);
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_setns, 7, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_setresuid, 0, 7),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, arg),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, session.own, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, arg + 8),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, session.own, 0, 2),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, arg + 16),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, session.holder, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = { array_len(code), code };
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -1;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0);
}

const char *ask(int sock, const char *text)
{
    static char said[512];
    struct pollfd ready = { .fd = sock, .events = POLLIN };
    if (*text)
        CHECK_INT(send(sock, text, strlen(text), MSG_NOSIGNAL), strlen(text));
    int got = poll(&ready, 1, 20000);
    if (got != 1)
        printf("# no answer to '%s'\n", text);
    CHECK_INT(got, 1);
    ssize_t n = recv(sock, said, sizeof said - 1, 0);
    CHECK(n >= 0);
    said[n] = 0;
    return said;
}

struct python start(bool user_ns)
{
    int pair[2], go[2];
    char own[16], holder[16], path[64];
    snprintf(own, sizeof own, "%u", session.own);
    snprintf(holder, sizeof holder, "%u", session.holder);
    CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    CHECK_INT(pipe2(go, O_CLOEXEC), 0);
    struct python made = { .pid = fork(), .sock = pair[0] };
    if (made.pid == 0) {
        char word;
        if ((user_ns && unshare(CLONE_NEWUSER) < 0) || io_write_all(pair[1], "u", 1) < 0 ||
            read(go[0], &word, 1) != 1 || dup2(pair[1], REQUESTS) < 0 || dup2(pair[1], WORDS) < 0 ||
            install_filter() < 0)
            _exit(70);
        execl("/usr/bin/python3", "python3", "-I", "-c", script, own, holder, "9", (char *)NULL);
        _exit(71);
    }
    CHECK(made.pid > 0);
    close(pair[1]);
    CHECK_TEXT(ask(made.sock, ""), "u");
    if (user_ns) {
        snprintf(path, sizeof path, "/proc/%d/uid_map", made.pid);
        write_file(path, "0 0 1\n61001 61001 2\n");
        snprintf(path, sizeof path, "/proc/%d/gid_map", made.pid);
        write_file(path, "0 0 1\n61001 61001 2\n");
    }
    CHECK(write(go[1], "g", 1) == 1 && close(go[0]) == 0 && close(go[1]) == 0);
    CHECK_TEXT(ask(made.sock, "x = 1"), "None");
    return made;
}

const char *list_fds(int sock, char out[64])
{
    snprintf(out, 64, "%s", ask(sock, "os.listdir('/proc/self/fd')"));
    return out;
}

void stop(struct python *python)
{
    close(python->sock);
    CHECK_INT(waitpid(python->pid, NULL, 0), python->pid);
}

void check_nothing_left(void)
{
    int status = 0;
    pid_t found = 0;
    /* On a busy machine a child that was killed takes its time to die. */
    for (int i = 0; i < 2000 && (found == 0 || WTERMSIG(status) == SIGKILL); i++) {
        poll(NULL, 0, i ? 10 : 0);
        status = 0;
        found = waitpid(-1, &status, WNOHANG | __WALL);
    }
    CHECK_INT(found, -1);
    CHECK_INT(errno, ECHILD);
}

struct park copy_of(const struct python *python)
{
    struct park made = PARK_NONE;
    CHECK_TEXT(inject_end_name(park_copy(&session, python->pid, &stay, &made)), "ok");
    return made;
}

struct python wake(struct park *parked, const struct park_tasks *tasks)
{
    int pair[2];
    struct python made = { .pid = 0 };
    CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    const int channel[BOX_CHANNEL] = { pair[1], pair[1] };
    enum inject_end end = park_wake(&session, parked, channel, tasks, &made.pid, &woken_lost);
    CHECK_TEXT(inject_end_name(end), "ok");
    CHECK(parked->pid == 0 && parked->pidfd == -1);
    close(pair[1]);
    made.sock = pair[0];
    return made;
}

#endif
