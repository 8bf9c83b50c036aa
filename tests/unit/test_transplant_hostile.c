/* Transplants that are refused, that end half way, and of states made to mislead. The
 * tracer must come out of each as it went in. */
#include "transplant_target.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "check.h"

#if INJECT_HERE

static int count_mappings(void)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    int lines = 0;
    CHECK(maps);
    for (int c; (c = getc(maps)) != EOF;)
        lines += c == '\n';
    fclose(maps);
    return lines;
}

static enum inject_end try_put(const struct park *parked, pid_t fresh, int timeout_ms,
                               struct transplant_report *out)
{
    return transplant(&cells_session, parked, &cells_session, fresh, timeout_ms, out);
}

TEST(transplant_100_in_a_row_leave_nothing)
{
    if (!may_run())
        return;
    struct cells a = cells_start();
    CHECK_TEXT(cell(&a, "n = 0"), "");
    const int files = open_files(), mappings = count_mappings();
    for (int i = 1; i <= 100; i++) {
        struct cells b = i % 10 ? cells_fork(&a) : cells_start();
        struct park parked = cells_park(&a);
        cells_put(&parked, &b);
        park_drop(&parked);
        cells_end(&a);
        a = b; /* each is the source of the next */
        char want[16];
        snprintf(want, sizeof want, "%d", i);
        CHECK_TEXT(cell(&a, "n += 1; big = bytearray(300000); n"), want);
        CHECK_INT(open_files(), files);
    }
    CHECK(count_mappings() <= mappings + 1);
    CHECK_TEXT(cell(&a, "import json; json.loads(json.dumps([n] * 3))"), "[100, 100, 100]");
    CHECK_TEXT(cell(&a, "def nest(n): return n and next(map(nest, [n - 1])) + 1\n"
                        "import sys; sys.setrecursionlimit(20000); nest(4000)"),
               "4000");
    CHECK_TEXT(cell(&a, "sum(map(len, [bytearray(n) for n in range(1, 60000, 7)]))"), "257155714");
    cells_end(&a);
    check_nothing_left();
}

TEST(transplant_refuses_what_is_not_quiet_and_changes_nothing)
{
    if (!may_run())
        return;
    struct cells a = cells_start(), b = cells_start();
    struct transplant_report report = { .calls = 7 };
    struct park parked = cells_park(&a);
    pid_t other_program = fork();
    if (other_program == 0)
        for (;;)
            pause();
    cells_session.settle_ms = 0;
    CHECK_TEXT(inject_end_name(try_put(&parked, other_program, 5000, &report)), "not quiet");
    cells_session.settle_ms = session.settle_ms;
    kill(other_program, SIGKILL);
    CHECK_INT(waitpid(other_program, NULL, 0), other_program);
    CHECK_TEXT(cell(&b, "x = 'mine'; import threading; e = threading.Event(); "
                        "t = threading.Thread(target=e.wait); t.start()"),
               "");
    CHECK_TEXT(inject_end_name(try_put(&parked, b.pid, 5000, &report)), "has threads");
    CHECK_TEXT(cell(&b, "e.set(); t.join(); x"), "'mine'");
    struct park_session other = cells_session;
    other.channel[BOX_REQUESTS] = 5;
    CHECK_INT(transplant(&cells_session, &parked, &other, b.pid, 5000, &report), INJECT_REFUSED);
    CHECK_INT(errno, EINVAL);
    kill(parked.pid, SIGKILL);
    siginfo_t info;
    CHECK_INT(waitid(P_PID, (id_t)parked.pid, &info, WEXITED | WNOWAIT), 0);
    CHECK_INT(try_put(&parked, b.pid, 5000, &report), INJECT_REFUSED);
    CHECK_INT(errno, ESRCH);
    park_drop(&parked);
    CHECK_TEXT(cell(&b, "x"), "'mine'");
    parked = cells_park(&a);
    kill(b.pid, SIGKILL);
    CHECK_INT(waitid(P_PID, (id_t)b.pid, &info, WEXITED | WNOWAIT), 0);
    CHECK_INT(try_put(&parked, b.pid, 5000, &report), INJECT_DIED);
    CHECK_INT(report.calls, 7);
    park_drop(&parked);
    cells_end(&a);
    cells_end(&b);
    check_nothing_left();
}

TEST(transplant_of_one_that_dies_meanwhile_is_never_ok)
{
    if (!may_run())
        return;
    struct cells a = cells_start();
    CHECK_TEXT(cell(&a, "x = 5; data = bytearray(b'1') * (30 << 20)"), "");
    struct transplant_report report;
    int whole = 0;
    for (int i = 0; i < 12; i++) {
        struct cells b = cells_fork(&a);
        struct park parked = cells_park(&a);
        pid_t killer = fork();
        if (killer == 0) {
            usleep((useconds_t)(500 + i * 2500));
            kill(parked.pid, SIGKILL);
            _exit(0);
        }
        enum inject_end end = try_put(&parked, b.pid, 5000, &report);
        CHECK(end == INJECT_OK || end == INJECT_LOST || end == INJECT_REFUSED);
        CHECK_INT(waitpid(killer, NULL, 0), killer);
        if (end == INJECT_OK) {
            cells_renew(&b);
            CHECK_TEXT(cell(&b, "x, data.count(b'1') >> 20"), "(5, 30)");
            whole++;
        } else if (end == INJECT_REFUSED) {
            cells_renew(&b); /* of the fork that it is */
            CHECK_TEXT(cell(&b, "x"), "5");
        }
        park_drop(&parked);
        kill(b.pid, SIGKILL);
        waitpid(b.pid, NULL, 0);
        close(b.sock);
    }
    printf("# of 12: %d whole\n", whole);
    cells_end(&a);
    check_nothing_left();
}

/* Time runs out somewhere, or somebody kills it: it is dead then, or as it was, and the
 * parked one serves the next. */
TEST(transplant_that_ends_half_way_harms_nobody_else)
{
    if (!may_run())
        return;
    struct cells a = cells_start();
    CHECK_TEXT(cell(&a, "x = 5; data = bytearray(b'1') * (30 << 20)"), "");
    struct park parked = cells_park(&a);
    struct transplant_report report;
    int whole = 0, dead = 0;
    for (int i = 0; i < 30; i++) {
        struct cells b = cells_fork(&a);
        pid_t killer = i % 2 ? fork() : -1;
        if (killer == 0) {
            usleep((useconds_t)(500 + i * 4000));
            kill(b.pid, SIGKILL);
            _exit(0);
        }
        enum inject_end end = try_put(&parked, b.pid, i % 2 ? 5000 : 1 + i * 6, &report);
        CHECK(end == INJECT_OK || end == INJECT_LOST || end == INJECT_DIED ||
              end == INJECT_REFUSED);
        whole += end == INJECT_OK;
        dead += end == INJECT_LOST || end == INJECT_DIED;
        if (killer > 0)
            CHECK_INT(waitpid(killer, NULL, 0), killer);
        kill(b.pid, SIGKILL);
        waitpid(b.pid, NULL, 0); /* the tracer may have taken its end: the same process here */
        close(b.sock);
    }
    printf("# of 30: %d whole, %d dead\n", whole, dead);
    struct cells b = cells_start();
    cells_put(&parked, &b);
    CHECK_TEXT(cell(&b, "x, data.count(b'1') >> 20"), "(5, 30)");
    CHECK_TEXT(cell(&a, "x, data.count(b'1') >> 20"), "(5, 30)");
    park_drop(&parked);
    cells_end(&a);
    cells_end(&b);
    check_nothing_left();
}

/* What the code can make of a map and of its descriptors. */
TEST(transplant_of_misleading_states)
{
    static const char *const states[] = {
        /* names with newlines, that look like other lines, or like the kernel's names */
        "import mmap, os, tempfile; d = tempfile.mkdtemp(dir='/tmp')\n"
        "for name in ('a\\n00400000-00401000 rwxp 00000000 00:00 0 [vdso]', '[heap]', "
        "'x (deleted)', 'libc.so.6', 'y\\\\012z'):\n"
        "    f = open(d + '/' + name, 'w+b'); f.write(b'q' * 8192); f.flush()\n"
        "    m = globals().setdefault('maps', []); m.append((f, mmap.mmap(f.fileno(), 8192, "
        "access=mmap.ACCESS_COPY), mmap.mmap(f.fileno(), 8192)))\n"
        "    os.unlink(f.name) if len(m) == 2 else None",
        /* a shared library that is none, found before the real one */
        "import shutil; fake = '/tmp/libc.so.6.%d' % os.getpid()\n"
        "open(fake, 'wb').write(b'\\x7fELF' + os.urandom(8188))\n"
        "g = open(fake, 'rb'); os.unlink(fake); n = mmap.mmap(g.fileno(), 0, "
        "access=mmap.ACCESS_READ)",
        /* more room than there is memory, of which one page is used */
        "huge = mmap.mmap(-1, 1 << 36, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000); "
        "huge[1 << 35] = 7",
        /* descriptors of every kind */
        "import socket, select, ctypes; keep = [socket.socketpair(), os.pipe(), select.epoll(), "
        "os.memfd_create('x'), os.open('/', os.O_RDONLY), os.open('/dev/zero', os.O_RDONLY), "
        "os.open('/proc/self/status', os.O_RDONLY), os.open('/tmp', os.O_PATH)]; "
        "h = open('/usr/bin/env', 'rb'); h.seek(9); n = os.dup2(h.fileno(), 900)",
        /* a folder that is gone */
        "where = tempfile.mkdtemp(dir='/tmp'); os.chdir(where); os.rmdir(where)",
    };
    if (!may_run())
        return;
    struct cells a = cells_start();
    for (size_t i = 0; i < array_len(states); i++) {
        CHECK_TEXT(cell(&a, states[i]), "");
        struct cells b = cells_start();
        struct park parked = cells_park(&a);
        struct transplant_report report = cells_put(&parked, &b);
        printf("# state %zu: lost %#x\n", i, report.lost_bits);
        CHECK_TEXT(cell(&b, "[c[:2] == s[:2] == b'qq' for _, c, s in maps]"),
                   "[True, True, True, True, True]");
        if (i == 3)
            CHECK_TEXT(cell(&b, "os.lseek(900, 0, 1), os.readlink('/proc/self/fd/900'), h.tell()"),
                       "(9, '/usr/bin/env', 9)");
        park_drop(&parked);
        cells_end(&b);
    }
    CHECK_TEXT(cell(&a, "os.chdir('/'); shutil.rmtree(d)"), "");
    cells_end(&a);
    check_nothing_left();
}

TEST(transplant_of_too_many_mappings_is_refused)
{
    if (!may_run())
        return;
    struct cells a = cells_start(), b = cells_start();
    struct transplant_report report;
    CHECK_TEXT(cell(&a, "import mmap\nmaps = [mmap.mmap(-1, 4096, prot=1 + i % 2 * 2, "
                        "flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) for i in range(25000)]"),
               "");
    struct park parked = cells_park(&a);
    CHECK_INT(try_put(&parked, b.pid, 20000, &report), INJECT_REFUSED);
    CHECK_INT(errno, E2BIG);
    CHECK_TEXT(cell(&b, "1 + 1"), "2");
    park_drop(&parked);
    CHECK_TEXT(cell(&a, "del maps[15000:]"), "");
    parked = cells_park(&a);
    cells_put(&parked, &b);
    CHECK_TEXT(cell(&b, "len(maps), maps[1][0]"), "(15000, 0)");
    park_drop(&parked);
    cells_end(&a);
    cells_end(&b);
    check_nothing_left();
}

#endif
