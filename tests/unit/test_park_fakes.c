/* Copies whose calls are faked by a system call filter of the code's own, and what copies share:
 * nothing that a copy answers is believed, and open files are set back. */
#include "box/park/park.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "box/proto/proto.h"
#include "check.h"
#include "park_target.h"

#if INJECT_HERE

/* From now on these calls do nothing and answer 0. a0: of this first argument alone, -1: of any. */
static const char fakes[] =
    "import ctypes, struct\n"
    "def fake(nr, a0=-1):\n"
    "    rows = [(0x20, 0, 0, 0), (0x15, 0, 3 if a0 >= 0 else 1, nr)]\n"
    "    if a0 >= 0: rows += [(0x20, 0, 0, 16), (0x15, 0, 1, a0)]\n"
    "    rows += [(6, 0, 0, 0x50000), (6, 0, 0, 0x7fff0000)]\n"
    "    text = b''.join(struct.pack('HBBI', *row) for row in rows)\n"
    "    room = ctypes.create_string_buffer(text, len(text))\n"
    "    head = struct.pack('HxxxxxxQ', len(rows), ctypes.addressof(room))\n"
    "    return ctypes.CDLL(None).syscall(317, 1, 0, head)\n";

static void fake(const struct python *live, long nr, int a0)
{
    char text[64];
    CHECK_TEXT(ask(live->sock, fakes), "None");
    snprintf(text, sizeof text, "fake(%ld, %d)", nr, a0);
    CHECK_TEXT(ask(live->sock, text), "0");
}

TEST(park_a_copy_whose_calls_were_faked_is_not_kept)
{
    static const struct {
        long nr;
        int a0;
        bool two_uids;
    } cases[] = {
        { SYS_setresuid, -1, true }, { SYS_setsid, -1, false }, { SYS_close, REQUESTS, false },
        { SYS_close, -1, false },
    };
    if (!may_run())
        return;
    for (size_t i = 0; i < array_len(cases); i++) {
        if (cases[i].two_uids && session.own == session.holder)
            continue;
        struct python live = start(false);
        struct park made = PARK_NONE;
        fake(&live, cases[i].nr, cases[i].a0);
        CHECK_TEXT(inject_end_name(park_copy(&session, live.pid, &stay, &made)), "refused");
        CHECK_INT(errno, EPROTO);
        CHECK_INT(made.pid, 0);
        CHECK_TEXT(ask(live.sock, "x"), "1");
        stop(&live);
        check_nothing_left();
    }
}

TEST(park_a_copy_whose_calls_were_faked_is_not_woken)
{
    static const struct {
        long nr;
        int a0;
    } cases[] = { { SYS_dup3, -1 }, { SYS_setresuid, 61001 } };
    if (!may_run() || !two_uids())
        return;
    for (size_t i = 0; i < array_len(cases); i++) {
        struct python live = start(false), woken = { .pid = 0 };
        fake(&live, cases[i].nr, cases[i].a0);
        struct park parked = copy_of(&live);
        CHECK_TEXT(inject_end_name(park_wake(&session, &parked, (int[]){ live.sock, live.sock },
                                             &stay, &woken.pid, &woken_lost)),
                   "refused");
        CHECK_INT(errno, EPROTO);
        CHECK(woken.pid == 0 && parked.pid == 0);
        stop(&live);
        check_nothing_left();
    }
}

TEST(park_what_has_a_filter_of_its_own_is_not_kept)
{
    if (!may_run())
        return;
    struct python live = start(false);
    struct park made = PARK_NONE;
    session.filters = park_own_filters(session.proc) + 1; /* that of its box */
    struct park parked = copy_of(&live);
    park_drop(&parked);
    fake(&live, SYS_getppid, -1);
    CHECK_INT(park_copy(&session, live.pid, &stay, &made), INJECT_REFUSED);
    CHECK_INT(errno, EPROTOTYPE);
    session.filters = 0;
    parked = copy_of(&live); /* it fakes nothing that matters */
    park_drop(&parked);
    stop(&live);
    check_nothing_left();
}

TEST(park_what_could_not_be_woken_is_not_kept)
{
    static const struct {
        const char *code;
        int error;
    } cases[] = {
        { "resource.setrlimit(7, (9, 9))", EBADF },
        { "resource.setrlimit(7, (10, 10)) or [os.dup(0) for i in range(5)]", EMFILE },
        { "resource.setrlimit(9, (1 << 20, 1 << 20))", ENOMEM },
        { "resource.setrlimit(2, (1 << 20, 1 << 20))", ENOMEM },
        { "resource.setrlimit(6, (10, 10))", EAGAIN },
    };
    if (!may_run())
        return;
    session.copies = 11;
    for (size_t i = 0; i < array_len(cases); i++) {
        struct python live = start(false);
        struct park made = PARK_NONE;
        ask(live.sock, cases[i].code);
        CHECK_INT(park_copy(&session, live.pid, &stay, &made), INJECT_REFUSED);
        CHECK_INT(errno, cases[i].error);
        CHECK_TEXT(ask(live.sock, "x"), "1");
        stop(&live);
        check_nothing_left();
    }
    session.copies = 0;
}

/* --- open files --- */

/* What a python has that nothing was opened in: we may have inherited a pipe. */
static uint32_t lost_anyway(void)
{
    struct python live = start(false);
    struct park parked = copy_of(&live);
    stop(&live);
    live = wake(&parked, &stay);
    stop(&live);
    return woken_lost;
}

TEST(park_open_files_stand_where_they_stood)
{
    if (!may_run())
        return;
    const uint32_t anyway = lost_anyway();
    struct python live = start(false);
    CHECK_TEXT(ask(live.sock, "f = open('/usr/lib/os-release', 'rb', 0); a = f.read(7)"), "None");
    CHECK_TEXT(ask(live.sock, "g = os.dup(f.fileno()); d = os.open('/usr', os.O_RDONLY)"), "None");
    struct park parked = copy_of(&live), second = PARK_NONE;
    CHECK_TEXT(ask(live.sock, "f.read(20) and os.lseek(d, 99, 0) and os.set_blocking(g, False)"),
               "None");
    CHECK_INT(park_copy_parked(&session, &parked, &stay, &second), INJECT_OK);
    stop(&live);
    live = wake(&parked, &stay);
    CHECK_INT(woken_lost, anyway);
    CHECK_TEXT(ask(live.sock, "f.tell(), os.lseek(g, 0, 1), os.lseek(d, 0, 1), os.get_blocking(g)"),
               "(7, 7, 0, True)");
    CHECK_TEXT(ask(live.sock, "f.read(5) and None"), "None");
    stop(&live);
    live = wake(&second, &stay); /* a copy of a copy knows it, too */
    CHECK_TEXT(ask(live.sock, "f.tell()"), "7");
    stop(&live);
    check_nothing_left();
}

TEST(park_what_cannot_be_set_back_is_named)
{
    static const struct {
        const char *code;
        uint32_t lost;
    } cases[] = {
        { "p = os.pipe()", BOX_LOST_BIT(PIPES) },
        { "p = socket.socketpair()", BOX_LOST_BIT(SOCKETS) },
        { "import select; p = select.epoll()", BOX_LOST_BIT(EVENTS) },
        { "p = [open('/usr/lib/os-release') for i in range(200)]", BOX_LOST_BIT(POSITIONS) },
        { "p = open('/dev/null')", 0 },
    };
    if (!may_run())
        return;
    const uint32_t anyway = lost_anyway();
    for (size_t i = 0; i < array_len(cases); i++) {
        struct python live = start(false);
        CHECK_TEXT(ask(live.sock, cases[i].code), "None");
        struct park parked = copy_of(&live);
        stop(&live);
        live = wake(&parked, &stay);
        CHECK_INT(woken_lost, cases[i].lost | anyway);
        stop(&live);
        check_nothing_left();
    }
    struct python live = start(false);
    CHECK_TEXT(ask(live.sock, "f = open('/usr/lib/os-release', 'rb', 0)"), "None");
    fake(&live, SYS_lseek, -1); /* it answers that it did */
    struct park parked = copy_of(&live);
    CHECK_TEXT(ask(live.sock, "f.read(3) and None"), "None");
    stop(&live);
    live = wake(&parked, &stay);
    CHECK_INT(woken_lost, BOX_LOST_BIT(POSITIONS) | anyway);
    stop(&live);
    check_nothing_left();
}

#endif
