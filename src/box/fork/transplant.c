/* The order of a transplant; see the header. Runs in the keeper of a session: one thread,
 * one mapping, no heap, no stdio. First everything is read of both processes, then the
 * fresh one is changed: what can be refused is refused before that. */
#include "box/fork/transplant.h"

#include <errno.h>

#if INJECT_HERE

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "box/fork/transplant_int.h"

#define SHARED_MAX (UINT64_C(256) << 20)
#define NUMBER_MAX 12 /* of a decimal number's characters */

enum inject_end transplant_call(struct inject *at, struct inject_order order, long *out)
{
    long result = 0;
    enum inject_end end = inject_call(at, &order, &result);
    if (end != INJECT_OK)
        return end;
    if (result < 0 && result > -4096) {
        errno = (int)-result;
        return INJECT_REFUSED;
    }
    if (out)
        *out = result;
    return INJECT_OK;
}

enum inject_end transplant_do(struct transplant *t, struct inject_order order, long *out)
{
    t->report.calls++;
    return transplant_call(&t->to.at, order, out);
}

static size_t write_number(char *out, uint32_t number)
{
    char digits[NUMBER_MAX];
    size_t count = 0, len = 0;
    for (; number || !count; number /= 10)
        digits[count++] = (char)('0' + number % 10);
    while (count)
        out[len++] = digits[--count];
    return len;
}

int transplant_open_proc(const struct transplant_side *side, const char *name)
{
    char path[64];
    size_t at = write_number(path, (uint32_t)side->at.pid), len = strlen(name);
    path[at++] = '/';
    memcpy(path + at, name, len + 1);
    return openat(side->proc, path, O_RDONLY | O_CLOEXEC);
}

void transplant_lose(struct transplant *t, uint32_t what, int fd, const char *name, size_t len)
{
    t->report.lost_bits |= what;
    if (t->report.lost_files++ >= TRANSPLANT_LOST_MAX)
        return;
    char *out = t->report.lost[t->report.lost_files - 1];
    size_t at = 0;
    if (fd >= 0) {
        at = write_number(out, (uint32_t)fd);
        out[at++] = ' ';
    }
    for (size_t i = 0; i < len && at < TRANSPLANT_NAME_MAX - 1; i++)
        out[at++] = name[i] >= ' ' && name[i] <= '~' ? name[i] : '?';
    out[at] = 0;
}

bool transplant_begins(const char *name, size_t len, const char *const *heads)
{
    for (; **heads; heads++) {
        size_t head = strlen(*heads);
        if (len >= head && memcmp(name, *heads, head) == 0)
            return true;
    }
    return false;
}

const char *transplant_name(const struct transplant_side *side, const struct transplant_vma *vma)
{
    return side->map.text + vma->name;
}

/* --- the parked process --- */

/* Of the parked one whatever goes wrong is a refusal. */
static enum inject_end said_of_parked(enum inject_end end)
{
    if (end == INJECT_DIED || end == INJECT_LOST)
        errno = end == INJECT_DIED ? ESRCH : ETIMEDOUT;
    else if (end == INJECT_NOT_QUIET)
        errno = EBUSY;
    return end == INJECT_OK ? end : INJECT_REFUSED;
}

/* It answers into pages of its own, which are gone afterwards. */
static enum inject_end ask(struct transplant *t)
{
    struct inject *at = &t->from.at;
    const uint64_t len = 4 * TRANSPLANT_PAGE;
    const uint64_t anonymous = MAP_PRIVATE | MAP_ANONYMOUS;
    long room = 0, brk = 0;
    enum inject_end end = transplant_call(
        at, (struct inject_order){ SYS_mmap, { 0, len, PROT_READ | PROT_WRITE, anonymous,
                                               ~UINT64_C(0), 0 } }, &room);
    if (end != INJECT_OK)
        return end;
    end = transplant_note_state(t, (uint64_t)room);
    if (end == INJECT_OK)
        end = transplant_note_files(t, (uint64_t)room);
    if (end == INJECT_OK)
        end = transplant_call(at, (struct inject_order){ SYS_brk, { 0 } }, &brk);
    t->from.brk = (uint64_t)brk;
    int saved = errno;
    enum inject_end gone =
        transplant_call(at, (struct inject_order){ SYS_munmap, { (uint64_t)room, len } }, NULL);
    errno = end == INJECT_OK ? errno : saved;
    return end == INJECT_OK ? gone : end;
}

static enum inject_end read_parked(struct transplant *t, const struct park_session *session,
                                   const struct park *parked)
{
    t->from.proc = session->proc;
    t->from.channel = session->channel;
    t->noted = &parked->files;
    enum inject_end end = inject_hold(parked->pid, session->timeout_ms, &t->from.at);
    if (end != INJECT_OK)
        return said_of_parked(end);
    end = said_of_parked(ask(t));
    int saved = errno;
    enum inject_end settled = said_of_parked(inject_settle(&t->from.at));
    if (end != INJECT_OK || settled != INJECT_OK) {
        errno = end == INJECT_OK ? errno : saved;
        return INJECT_REFUSED;
    }
    if (transplant_read_map(&t->from) < 0)
        return INJECT_REFUSED;
    t->from.pagemap = transplant_open_proc(&t->from, "pagemap");
    t->from.mem = transplant_open_proc(&t->from, "mem");
    errno = ETIMEDOUT;
    return clock_now_ns() < t->deadline_ns ? INJECT_OK : INJECT_REFUSED;
}

/* --- the fresh process --- */

/* A file of its own in /proc that only its owner may open: it does, and we take that from
 * it. -1: we do without. */
static enum inject_end ask_proc(struct transplant *t, const char *path, int *out)
{
    const uint64_t name = t->desk + TRANSPLANT_DESK_DATA;
    *out = transplant_open_proc(&t->to, path + sizeof "/proc/self");
    if (*out >= 0)
        return INJECT_OK;
    if (inject_write(&t->to.at, name, path, strlen(path) + 1) < 0)
        return INJECT_REFUSED;
    long fd = 0;
    struct inject_order open = { SYS_openat, { (uint64_t)AT_FDCWD, name, O_RDONLY | O_CLOEXEC } };
    enum inject_end end = transplant_do(t, open, &fd);
    if (end != INJECT_OK)
        return end == INJECT_REFUSED ? INJECT_OK : end;
    own_fd pidfd = (int)syscall(SYS_pidfd_open, t->to.at.pid, 0);
    *out = pidfd < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, pidfd, (int)fd, 0);
    return transplant_do(t, (struct inject_order){ SYS_close, { (uint64_t)fd } }, NULL);
}

static enum inject_end ask_memory(struct transplant *t)
{
    enum inject_end end = ask_proc(t, "/proc/self/pagemap", &t->to.pagemap);
    return end == INJECT_OK ? ask_proc(t, "/proc/self/mem", &t->to.mem) : end;
}

/* It goes on as the other did: the desk is cleared from there. If the other has died
 * meanwhile, what was read of it since is not its memory. */
static enum inject_end finish(struct transplant *t)
{
    struct inject *at = &t->to.at;
    struct user_regs_struct regs;
    if (syscall(SYS_ptrace, (long)PTRACE_GETREGS, (long)t->from.at.pid, NULL, &regs) < 0)
        return INJECT_REFUSED;
    const struct inject_order clear = { SYS_munmap, { t->desk, TRANSPLANT_DESK_LEN } };
    at->regs = t->from.at.regs;
    at->signals = t->from.at.signals;
    enum inject_end end = transplant_do(t, clear, NULL);
    return end == INJECT_OK ? inject_let_go(at) : end;
}

static enum inject_end change(struct transplant *t)
{
    static enum inject_end (*const steps[])(struct transplant *) = {
        transplant_set_heap,   transplant_set_desk,   transplant_quiet_rseq,
        ask_memory,            transplant_give_memory, transplant_tell_heap,
        transplant_give_files, transplant_give_state, finish,
    };
    enum inject_end end = INJECT_OK;
    for (size_t i = 0; end == INJECT_OK && i < array_len(steps); i++)
        end = steps[i](t);
    return end;
}

static enum inject_end into_fresh(struct transplant *t, const struct park_session *session,
                                  pid_t pid, int timeout_ms)
{
    const struct inject_target target = {
        .pid = pid, .proc = session->proc, .requests = session->channel[BOX_REQUESTS],
        .timeout_ms = timeout_ms, .settle_ms = session->settle_ms, .home = -1,
    };
    enum inject_end end = inject_attach(&target, &t->to.at);
    if (end != INJECT_OK)
        return end;
    t->to.proc = session->proc;
    t->to.channel = session->channel;
    t->to.at.deadline_ns = t->deadline_ns;
    transplant_compare_settings(t);
    end = transplant_read_side(&t->to) < 0 ? INJECT_REFUSED : change(t);
    if (end == INJECT_OK || end == INJECT_DIED || end == INJECT_LOST)
        return end;
    int saved = errno;
    if (t->changed)
        inject_kill(pid);
    enum inject_end gone = t->changed ? INJECT_LOST : inject_let_go(&t->to.at);
    errno = saved;
    return gone == INJECT_OK ? end : gone;
}

static enum inject_end work(struct transplant *t, const struct park_session *from,
                            const struct park *parked, const struct park_session *to, pid_t fresh,
                            int timeout_ms)
{
    struct inject_work before;
    inject_begin_work(-1, &before);
    enum inject_end end = read_parked(t, from, parked);
    if (end == INJECT_OK)
        end = into_fresh(t, to, fresh, timeout_ms);
    inject_end_work(&before);
    return end;
}

enum inject_end transplant(const struct park_session *from, const struct park *parked,
                           const struct park_session *to, pid_t fresh, int timeout_ms,
                           struct transplant_report *out)
{
    errno = EINVAL; /* the interpreter knows its channel by number */
    if (memcmp(from->channel, to->channel, sizeof from->channel) != 0)
        return INJECT_REFUSED;
    struct transplant *t = mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (t == MAP_FAILED)
        return INJECT_REFUSED;
    t->from.pagemap = t->to.pagemap = t->from.mem = t->to.mem = -1;
    t->shared_left = SHARED_MAX;
    t->deadline_ns = clock_now_ns() + timeout_ms * CLOCK_MS;
    enum inject_end end = work(t, from, parked, to, fresh, timeout_ms);
    int saved = errno;
    own_close_fd(&t->from.pagemap);
    own_close_fd(&t->to.pagemap);
    own_close_fd(&t->from.mem);
    own_close_fd(&t->to.mem);
    if (end == INJECT_OK)
        *out = t->report;
    munmap(t, sizeof *t);
    errno = saved;
    return end;
}

#else

enum inject_end transplant(const struct park_session *from attr_unused,
                           const struct park *parked attr_unused,
                           const struct park_session *to attr_unused, pid_t fresh attr_unused,
                           int timeout_ms attr_unused, struct transplant_report *out attr_unused)
{
    errno = ENOTSUP;
    return INJECT_UNSUPPORTED;
}

#endif
