/* Sessions to transplant: see the header. */
#include "transplant_target.h"

#if INJECT_HERE

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "check.h"

#define TIMEOUT_MS 20000

struct park_session cells_session;

static void run_cells(int channel)
{
    static const char *const env[] = { "PATH=/usr/bin:/bin", "LANG=C.UTF-8", "PYTHONHASHSEED=0",
                                       "PYTHONDONTWRITEBYTECODE=1", "OPENBLAS_NUM_THREADS=1",
                                       NULL };
    char file[4096];
    int null = open("/dev/null", O_RDWR);
    if (!realpath("drivers/cells.py", file) || null < 0 || dup2(channel, 3) < 0 ||
        dup2(channel, 4) < 0)
        _exit(70);
    for (int fd = 0; fd < 3; fd++)
        dup2(null, fd);
    io_close_between(5, 1023);
    if (chdir("/tmp") < 0)
        _exit(71);
    execle("/usr/bin/python3", "python3", "-S", "-s", file, (char *)NULL,
           (char *const *)(uintptr_t)env);
    _exit(72);
}

/* One line without its end. */
static void read_line(int sock, char *out, size_t room)
{
    struct pollfd ready = { .fd = sock, .events = POLLIN };
    size_t len = 0;
    for (;;) {
        CHECK_INT(poll(&ready, 1, TIMEOUT_MS), 1);
        ssize_t n = recv(sock, out + len, 1, 0);
        if (n != 1)
            check_failed(__FILE__, __LINE__, "the session ended");
        if (out[len] == '\n' && len == 0)
            continue; /* a line begins with one */
        if (out[len] == '\n')
            break;
        len += len + 1 < room;
    }
    out[len] = 0;
}

struct cells cells_start(void)
{
    char line[256], drop[128];
    int pair[2];
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    struct cells made = { .pid = fork(), .sock = pair[0] };
    if (made.pid == 0)
        run_cells(pair[1]);
    CHECK(made.pid > 0);
    close(pair[1]);
    read_line(made.sock, line, sizeof line);
    CHECK_TEXT(line, "{\"op\":\"ready\"}");
    cells_session = session;
    cells_session.channel[BOX_WORDS] = CELLS_WORDS;
    cells_session.channel[BOX_REQUESTS] = CELLS_REQUESTS;
    snprintf(drop, sizeof drop, "import os; os.setresgid(%u, %u, %u); os.setresuid(%u, %u, %u)",
             session.own, session.own, session.own, session.own, session.own, session.holder);
    CHECK_TEXT(cell(&made, drop), "");
    return made;
}

static void send_cell(struct cells *at, const char *code)
{
    static char line[1 << 16];
    size_t len = (size_t)snprintf(line, sizeof line, "{\"op\":\"cell\",\"cell\":%u,\"code\":\"",
                                  ++at->count);
    for (; *code; code++) {
        CHECK(len < sizeof line - 16);
        if (*code == '\n' || *code == '"' || *code == '\\')
            line[len++] = '\\';
        line[len++] = *code == '\n' ? 'n' : *code;
    }
    len += (size_t)snprintf(line + len, sizeof line - len, "\"}\n");
    CHECK_INT(io_write_all(at->sock, line, len), 0);
}

/* The text of a member, with its escapes. */
static void take_member(const char *line, const char *label, char *out, size_t room)
{
    const char *at = strstr(line, label);
    size_t len = strlen(out);
    for (at = at ? at + strlen(label) : ""; *at && *at != '"' && len + 1 < room; at++) {
        if (*at == '\\' && at[1])
            at++;
        out[len++] = *at;
    }
    out[len] = 0;
}

const char *cell(struct cells *at, const char *code)
{
    static char said[2048], line[1 << 16];
    said[0] = 0;
    send_cell(at, code);
    for (;;) {
        read_line(at->sock, line, sizeof line);
        if (strstr(line, "\"op\":\"done\""))
            return said;
        if (strstr(line, "\"op\":\"error\"")) {
            take_member(line, "\"name\":\"", said, sizeof said - 2);
            memcpy(said + strlen(said), ": ", 3);
            take_member(line, "\"message\":\"", said, sizeof said);
        }
        take_member(line, "\"text/plain\":\"", said, sizeof said);
    }
}

void cells_end(struct cells *at)
{
    kill(at->pid, SIGKILL);
    CHECK_INT(waitpid(at->pid, NULL, 0), at->pid);
    close(at->sock);
}

struct park cells_park(const struct cells *at)
{
    struct park made = PARK_NONE;
    CHECK_TEXT(inject_end_name(park_copy(&cells_session, at->pid, &stay, &made)), "ok");
    return made;
}

struct cells cells_fork(const struct cells *at)
{
    struct park parked = cells_park(at);
    struct cells made = { .count = 0 };
    int pair[2];
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    enum inject_end end = park_wake(&cells_session, &parked, (int[]){ pair[1], pair[1] }, &stay,
                                    &made.pid, &woken_lost);
    CHECK_TEXT(inject_end_name(end), "ok");
    close(pair[1]);
    made.sock = pair[0];
    return made;
}

void cells_renew(const struct cells *at)
{
    char line[64];
    CHECK_INT(io_write_all(at->sock, "{\"op\":\"renew\"}\n", 15), 0);
    read_line(at->sock, line, sizeof line);
    CHECK_TEXT(line, "{\"op\":\"renewed\"}");
}

struct transplant_report cells_put(const struct park *parked, const struct cells *fresh)
{
    struct transplant_report report = { .calls = 0 };
    errno = 0;
    enum inject_end end = transplant(&cells_session, parked, &cells_session, fresh->pid, TIMEOUT_MS,
                                     &report);
    if (end != INJECT_OK)
        check_failed(__FILE__, __LINE__, "transplant: %s, %s", inject_end_name(end),
                     strerror(errno));
    cells_renew(fresh);
    return report;
}

int open_files(void)
{
    int count = 0;
    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

#endif
