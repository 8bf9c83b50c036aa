/* The steps of a transplant; see the header. Runs in the keeper of a session: one thread, one
 * mapping, no heap, no stdio. It reads both processes first and changes the fresh one last. */
#include "box/fork/transplant.h"

#include <errno.h>

const char *transplant_reason(enum inject_end end, int error)
{
    static const struct {
        int error;
        const char *text;
    } reasons[] = {
#define X(number, text) { number, text },
        TRANSPLANT_REASONS(X)
#undef X
    };
    for (size_t i = 0; i < array_len(reasons); i++) {
        if (end != INJECT_DIED && reasons[i].error == error)
            return reasons[i].text;
    }
    return end == INJECT_DIED ? "the new interpreter died" : "the kernel refused it";
}

#if INJECT_HERE

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "box/fork/transplant_int.h"

#define SHARED_MAX (UINT64_C(256) << 20)

enum inject_end transplant_do(struct transplant *t, struct inject_order order, long *out)
{
    t->report.calls++;
    return park_call(&t->to.at, order, out);
}

enum inject_end transplant_try(struct transplant *t, struct inject_order order, long *out)
{
    enum inject_end end = transplant_do(t, order, out);
    if (end == INJECT_REFUSED && out)
        *out = -1;
    return end == INJECT_REFUSED ? INJECT_OK : end;
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

/* Every failure of the parked process is a refusal. */
static enum inject_end refuse_for_parked(enum inject_end end)
{
    if (end == INJECT_DIED || end == INJECT_LOST)
        errno = end == INJECT_DIED ? ESRCH : ETIMEDOUT;
    else if (end == INJECT_NOT_QUIET)
        errno = EBUSY;
    return end == INJECT_OK ? end : INJECT_REFUSED;
}

static enum inject_end read_parked(struct transplant *t, const struct park *parked)
{
    struct transplant_side *side = &t->from;
    enum inject_end end = refuse_for_parked(
        inject_hold(parked->pid, side->session->timeout_ms, &side->at));
    if (end != INJECT_OK)
        return end;
    end = refuse_for_parked(transplant_note_state(t));
    int saved = errno;
    enum inject_end settled = refuse_for_parked(inject_settle(&side->at));
    if (end != INJECT_OK || settled != INJECT_OK) {
        errno = end == INJECT_OK ? errno : saved;
        return INJECT_REFUSED;
    }
    if (transplant_note_files(t, &parked->files) < 0 || transplant_read_map(side) < 0 ||
        transplant_open_memory(side, O_RDONLY) < 0)
        return INJECT_REFUSED;
    errno = ETIMEDOUT;
    return clock_now_ns() < t->deadline_ns ? INJECT_OK : INJECT_REFUSED;
}

/* --- the fresh process --- */

/* The keeper may open /proc/PID/mem of a process that is not dumpable: the file then belongs to
 * the keeper's uid. */
static enum inject_end open_fresh(struct transplant *t)
{
    t->changed = true;
    enum inject_end end = park_set_dumpable(&t->to.at, 0);
    if (end == INJECT_OK && transplant_open_memory(&t->to, O_RDWR) < 0)
        end = INJECT_REFUSED;
    return end;
}

/* The fresh process continues where the parked one stopped, so its desk is removed by code that
 * the parked one had. If the parked process has died, the bytes that were read are not its own. */
static enum inject_end finish(struct transplant *t)
{
    struct inject *at = &t->to.at;
    struct user_regs_struct regs;
    errno = ESRCH;
    if (syscall(SYS_ptrace, (long)PTRACE_GETREGS, (long)t->from.at.pid, NULL, &regs) < 0)
        return INJECT_REFUSED;
    at->regs = t->from.at.regs;
    at->signals = t->from.at.signals;
    enum inject_end end = transplant_do(
        t, (struct inject_order){ SYS_munmap, { t->desk, TRANSPLANT_DESK_LEN } }, NULL);
    if (end == INJECT_OK)
        end = park_set_dumpable(at, 1);
    return end == INJECT_OK ? inject_let_go(at) : end;
}

static enum inject_end change(struct transplant *t)
{
    static enum inject_end (*const steps[])(struct transplant *) = {
        open_fresh,
        transplant_make_desk,
        transplant_stop_rseq,
        transplant_give_memory,
        transplant_give_files,
        transplant_give_state,
        finish,
    };
    enum inject_end end = INJECT_OK;
    for (size_t i = 0; end == INJECT_OK && i < array_len(steps); i++)
        end = steps[i](t);
    return end;
}

static enum inject_end change_fresh(struct transplant *t, pid_t pid, int timeout_ms)
{
    const struct park_session *session = t->to.session;
    const struct inject_target target = {
        .pid = pid, .proc = session->proc, .requests = session->channel[BOX_REQUESTS],
        .timeout_ms = timeout_ms, .settle_ms = session->settle_ms, .home = -1,
    };
    enum inject_end end = inject_attach(&target, &t->to.at);
    if (end != INJECT_OK)
        return end;
    t->to.at.deadline_ns = t->deadline_ns;
    transplant_compare_settings(t);
    end = transplant_read_side(&t->to) < 0 || transplant_read_map(&t->to) < 0 ? INJECT_REFUSED
                                                                              : change(t);
    if (end == INJECT_OK || end == INJECT_DIED || end == INJECT_LOST)
        return end;
    int saved = errno;
    if (t->changed)
        inject_kill(pid);
    enum inject_end gone = t->changed ? INJECT_LOST : inject_let_go(&t->to.at);
    errno = saved;
    return gone == INJECT_OK ? end : gone;
}

static void close_side(struct transplant_side *side)
{
    own_close_fd(&side->pagemap);
    own_close_fd(&side->mem);
}

enum inject_end transplant(const struct park_session *from, const struct park *parked,
                           const struct park_session *to, pid_t fresh, int timeout_ms,
                           struct transplant_report *out)
{
    errno = EINVAL; /* the interpreter has the numbers of its channel in its memory */
    if (memcmp(from->channel, to->channel, sizeof from->channel) != 0)
        return INJECT_REFUSED;
    struct transplant *t = mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (t == MAP_FAILED)
        return INJECT_REFUSED;
    t->from.session = from;
    t->to.session = to;
    t->from.pagemap = t->to.pagemap = t->from.mem = t->to.mem = -1;
    t->shared_left = SHARED_MAX;
    t->deadline_ns = clock_now_ns() + timeout_ms * CLOCK_MS;
    struct inject_work before;
    inject_begin_work(-1, &before);
    enum inject_end end = read_parked(t, parked);
    if (end == INJECT_OK)
        end = change_fresh(t, fresh, timeout_ms);
    inject_end_work(&before);
    int saved = errno;
    close_side(&t->from);
    close_side(&t->to);
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
