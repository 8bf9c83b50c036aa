/* Calls in a copy that must succeed, and descriptors for a copy; see box/park/park_int.h. Runs in
 * the keeper of a session: one thread, no heap, no stdio. */
#include "box/park/park_int.h"

#if INJECT_HERE

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"

#define PAGE 4096
#define ERESTARTNOINTR 513

/* The layout for the kernel; our libc may declare struct msghdr otherwise. */
struct letter {
    struct {
        uint64_t name;
        uint32_t name_len, pad;
        uint64_t parts, parts_len, control, control_len;
        uint32_t flags, end;
    } head;
    struct {
        uint64_t base, len;
    } part;
    struct {
        uint64_t len;
        int32_t level, type, fd[PARK_GIFTS_MAX];
    } control;
    int32_t pair[2]; /* of sockets */
    char text[8];    /* "0": moves the writer to a control group */
};
static const char here[] = "0";

enum inject_end park_call(struct inject *at, struct inject_order order, long *out)
{
    long result = 0;
    enum inject_end end = inject_call(at, &order, &result);
    if (end != INJECT_OK)
        return end;
    if (result == -ERESTARTNOINTR) /* a signal interrupted a clone */
        return INJECT_NOT_QUIET;
    if (result < 0) {
        errno = (int)-result;
        return INJECT_REFUSED;
    }
    if (out)
        *out = result;
    return INJECT_OK;
}

enum inject_end park_call_all(struct inject *at, const struct inject_order *orders, size_t count)
{
    enum inject_end end = INJECT_OK;
    for (size_t i = 0; end == INJECT_OK && i < count; i++)
        end = park_call(at, orders[i], NULL);
    return end;
}

static enum inject_end take_letter(struct inject *copy, int sock, size_t count,
                                   struct park_gifts *out)
{
    const uint64_t page = out->page;
    struct letter letter = {
        .head = { .parts = page + offsetof(struct letter, part), .parts_len = 1,
                  .control = page + offsetof(struct letter, control),
                  .control_len = sizeof letter.control },
        .part = { page + offsetof(struct letter, text), sizeof here - 1 },
    };
    if (inject_write(copy, page, &letter, sizeof letter) < 0)
        return INJECT_REFUSED;
    const uint64_t flags = MSG_DONTWAIT | MSG_CMSG_CLOEXEC;
    const struct inject_order receive = { SYS_recvmsg, { (uint64_t)sock, page, flags } };
    enum inject_end end = park_call(copy, receive, NULL);
    if (end != INJECT_OK)
        return end;
    if (inject_read(copy, page, &letter, sizeof letter) < 0)
        return INJECT_REFUSED;
    errno = EMFILE; /* fewer descriptors arrive if its table is full */
    if (letter.control.len != offsetof(struct letter, control.fd) -
                                  offsetof(struct letter, control) + count * sizeof(int32_t) ||
        (letter.head.flags & MSG_CTRUNC))
        return INJECT_REFUSED;
    for (size_t i = 0; i < count; i++)
        out->fd[i] = letter.control.fd[i];
    out->count = count;
    return INJECT_OK;
}

enum inject_end park_hand_over(struct inject *copy, int pidfd, const int *fds, size_t count,
                               struct park_gifts *out)
{
    long page = 0;
    int32_t pair[2];
    const struct inject_order map = {
        SYS_mmap, { 0, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, ~UINT64_C(0), 0 },
    };
    enum inject_end end = park_call(copy, map, &page);
    if (end != INJECT_OK)
        return end;
    out->page = (uint64_t)page;
    const uint64_t room = out->page + offsetof(struct letter, pair);
    const struct inject_order connect = {
        SYS_socketpair, { AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, room },
    };
    end = park_call(copy, connect, NULL);
    if (end != INJECT_OK)
        return end;
    if (inject_read(copy, room, pair, sizeof pair) < 0)
        return INJECT_REFUSED;
    own_fd mine = (int)syscall(SYS_pidfd_getfd, pidfd, pair[1], 0);
    if (mine < 0 || io_send(mine, here, sizeof here - 1, fds, count) < 0)
        return INJECT_REFUSED;
    end = take_letter(copy, pair[0], count, out);
    const struct inject_order hang_up[] = {
        { SYS_close, { (uint64_t)pair[0] } },
        { SYS_close, { (uint64_t)pair[1] } },
    };
    return end == INJECT_OK ? park_call_all(copy, hang_up, array_len(hang_up)) : end;
}

enum inject_end park_enter_groups(struct inject *copy, const struct park_gifts *gifts, size_t first)
{
    const uint64_t text = gifts->page + offsetof(struct letter, text);
    enum inject_end end = INJECT_OK;
    for (size_t i = first; end == INJECT_OK && i < gifts->count; i++) {
        const struct inject_order enter[] = {
            { SYS_write, { (uint64_t)gifts->fd[i], text, sizeof here - 1 } },
            { SYS_close, { (uint64_t)gifts->fd[i] } },
        };
        end = park_call_all(copy, enter, array_len(enter));
    }
    return end;
}

enum inject_end park_forget_page(struct inject *copy, const struct park_gifts *gifts)
{
    return park_call(copy, (struct inject_order){ SYS_munmap, { gifts->page, PAGE } }, NULL);
}

#endif
