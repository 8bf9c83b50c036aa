/* What user code might try against parked copies, whose pids it can guess. Each is
 * followed by the question whether the state is as it was. */
#include "keep_session.h"

#if INJECT_HERE

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/attr.h"
#include "check.h"

static const char *const attacks[] = {
    "refused(os.kill, -1, 9); os._exit(0)",
    "[refused(os.kill, p, s) for p in others() for s in (9, 19, 6, 18)]; os._exit(0)",
    "[refused(os.killpg, p, 9) for p in others()]; os._exit(0)",
    "[refused(signal.pidfd_send_signal, os.pidfd_open(p), 9) for p in others() "
    "if not refused(os.pidfd_open, p)]; os._exit(0)",
    "f = os.pipe(); fcntl.fcntl(f[0], 10, 9); fcntl.fcntl(f[0], fcntl.F_SETFL, os.O_ASYNC)\n"
    "for p in others():\n"
    "    refused(fcntl.fcntl, f[0], 8, p); os.write(f[1], b'x')\n"
    "os._exit(0)",
    "import struct; f = socket.socketpair(); fcntl.fcntl(f[0], 10, 9)\n"
    "for p in others():\n"
    "    for q in (p, -p):\n"
    "        refused(fcntl.fcntl, f[0], 8, q); refused(fcntl.fcntl, f[0], 8, q - (1 << 32))\n"
    "        refused(fcntl.fcntl, f[0], 15, struct.pack('ii', 1 if q > 0 else 2, p))\n"
    "        [refused(fcntl.ioctl, f[0], c, struct.pack('i', q)) for c in (0x8901, 0x8902)]\n"
    "        fcntl.fcntl(f[0], fcntl.F_SETFL, os.O_ASYNC); f[1].send(b'x')\n"
    "os._exit(0)",
    "[refused(ctypes.CDLL(None).syscall, n, *a) for p in others() for n, *a in ((200, p, 9), "
    "(234, p, p, 9), (234, -1, p, 9), (62, p + (1 << 32), 9), (62, -p, 9), (129, p, 9, 0))]; "
    "os._exit(0)",
    "libc = ctypes.CDLL(None); [libc.ptrace(16, p, 0, 0) for p in others()]; os._exit(0)",
    "[refused(os.setpriority, 0, p, 19) for p in others()]; "
    "[refused(os.setpriority, 2, u, 19) for u in (0, 1000, 1001)]; os._exit(0)",
    "[refused(os.setpriority, 1, p, 19) for p in others()]; refused(os.setpriority, 1, 0, 19); "
    "os._exit(0)",
    "[refused(os.sched_setscheduler, p, 5, os.sched_param(0)) for p in others()]; os._exit(0)",
    "[refused(os.sched_setaffinity, p, [0]) for p in others()]; os._exit(0)",
    "import resource; [refused(resource.prlimit, p, resource.RLIMIT_CPU, (0, 0)) "
    "for p in others()]; os._exit(0)",
    "[refused(call, 1001) for call in (os.setuid, os.seteuid)]; refused(os.setreuid, 1001, 1001); "
    "refused(os.setresuid, 1001, 1001, 1001); refused(os.setresuid, -1, 1001, -1); "
    "ctypes.CDLL(None).setfsuid(1001); os.kill(-1, 9)",
    "[refused(os.open, f'/proc/{p}/{n}', os.O_RDWR) for p in others() "
    "for n in ('mem', 'oom_score_adj', 'timerslack_ns', 'clear_refs')]; os._exit(0)",
    "[signal.pidfd_send_signal(os.open(f'/proc/{p}', 0), 9) for p in others() "
    "if not refused(os.open, f'/proc/{p}', 0)]; os._exit(0)",
    "os.closerange(0, 512)",
    "while True:\n    refused(os.fork)",
    "ctypes.string_at(0)",
};

void keep_survive_attacks(void)
{
    static const char ids[] = "os.getresuid(), os.nice(0), os.sched_getscheduler(0), "
                              "sorted(os.sched_getaffinity(0)), "
                              "open('/proc/self/oom_score_adj').read()";
    char before[256];
    snprintf(before, sizeof before, "%s", keep_ask(ids));
    keep_must_park(0);
    /* It is among those that are tried, and there: EPERM, not ESRCH. */
    CHECK_TEXT(keep_ask("sorted({refused(os.kill, p, 0) for p in others()})"), "[1, 3]");
    for (size_t i = 0; i < array_len(attacks); i++) {
        CHECK_TEXT(keep_ask("x = 'lost'"), "None");
        keep_must_park(1); /* a second, of another state */
        keep_tell(attacks[i]);
        struct pollfd gone = { .fd = keep_live.words, .events = POLLIN };
        poll(&gone, 1, 300);
        keep_go_back(0);
        if (!check_same_text(keep_ask("x"), "1") || !check_same_text(keep_ask(ids), before))
            check_failed(__FILE__, __LINE__, "attack %zu has changed it: %s", i, keep_ask(ids));
        keep_order_place(BOX_OP_DROP, 1);
    }
    CHECK(!keep_heard(BOX_NEWS_KEEPER_GONE));
    keep_end();
}

#endif
