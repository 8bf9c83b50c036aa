/* Reads a process in /proc and by ptrace. The kernel writes the lines, but the attacker chooses
 * their number and the names in them. */
#include "box/fork/transplant_int.h"

#if INJECT_HERE

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define GET_RSEQ 0x420f
#define USER_END (UINT64_C(1) << 47)
#define STATUS_MAX 16384 /* it lists the groups of an ordinary user */
#define STAT_STATE 3     /* the first field after the name, as proc(5) counts them */

static uint64_t take_number(const char **at, unsigned base)
{
    uint64_t number = 0;
    for (;; ++*at) {
        const char letter = **at;
        unsigned digit = letter >= '0' && letter <= '9'   ? (unsigned)(letter - '0')
                         : letter >= 'a' && letter <= 'f' ? (unsigned)(letter - 'a') + 10
                                                          : 99;
        if (digit >= base)
            return number;
        number = number * base + digit;
    }
}

/* Go past the next byte if it is this one. */
static bool take(const char **at, char want)
{
    const bool right = **at == want;
    *at += right;
    return right;
}

/* --- the map --- */

static enum transplant_kind kind_of(const struct transplant_vma *vma, const char *name)
{
    static const char *const plain[] = { "[heap]", "[stack]", "[anon:", "" };
    if (vma->shared)
        return TRANSPLANT_FILE;
    if (vma->name_len == 0 || transplant_begins(name, vma->name_len, plain))
        return TRANSPLANT_ANON;
    return *name == '[' ? TRANSPLANT_SPECIAL : TRANSPLANT_FILE;
}

/* One letter of "rwxp", or '-'. */
static bool take_letter(const char **at, char want)
{
    return *(*at)++ == want;
}

/* "START-END rwxp OFFSET MAJOR:MINOR INODE   NAME". A NUL ends the line. */
static int parse_line(const char *at, const char *text, struct transplant_vma *out)
{
    *out = (struct transplant_vma){ .start = take_number(&at, 16) };
    bool plain = take(&at, '-');
    out->end = take_number(&at, 16);
    errno = ENOTSUP;
    if (!take(&at, ' ') || strlen(at) < 5)
        return -1;
    out->prot = (uint8_t)(take_letter(&at, 'r') ? PROT_READ : 0);
    out->prot |= (uint8_t)(take_letter(&at, 'w') ? PROT_WRITE : 0);
    out->prot |= (uint8_t)(take_letter(&at, 'x') ? PROT_EXEC : 0);
    out->shared = take_letter(&at, 's');
    plain = plain && take(&at, ' ');
    out->offset = take_number(&at, 16);
    plain = plain && take(&at, ' ');
    out->device[0] = (uint32_t)take_number(&at, 16);
    plain = plain && take(&at, ':');
    out->device[1] = (uint32_t)take_number(&at, 16);
    plain = plain && take(&at, ' ');
    out->inode = take_number(&at, 10);
    at += strspn(at, " ");
    out->name = (uint32_t)(at - text);
    out->name_len = (uint32_t)strlen(at);
    out->kind = (uint8_t)kind_of(out, at);
    return plain && out->start < out->end && !((out->start | out->end) % TRANSPLANT_PAGE) ? 0 : -1;
}

/* The version gate knows these mappings of the kernel. */
static bool is_known(const struct transplant_side *side, const struct transplant_vma *vma)
{
    static const char *const known[] = { "[vdso]", "[vvar]", "[vvar_vclock]", "" };
    return vma->kind != TRANSPLANT_SPECIAL ||
           transplant_begins(transplant_name(side, vma), vma->name_len, known);
}

int transplant_read_map(struct transplant_side *side)
{
    struct transplant_map *map = &side->map;
    const uint64_t top = side->at.regs.rsp;
    uint64_t last = 0;
    map->count = 0;
    if (park_read_proc(side->session->proc, side->at.pid, "maps", map->text, sizeof map->text) < 0)
        return -1;
    for (char *line = map->text, *end; *line; line = end + 1) {
        struct transplant_vma *vma = &map->vma[map->count];
        end = strchr(line, '\n');
        errno = E2BIG;
        if (!end || map->count == TRANSPLANT_VMAS_MAX)
            return -1;
        *end = 0;
        if (parse_line(line, map->text, vma) < 0 || vma->start < last)
            return -1;
        last = vma->end;
        if (vma->kind == TRANSPLANT_ANON && top >= vma->start && top < vma->end)
            vma->kind = TRANSPLANT_STACK;
        if (vma->end > USER_END) /* all processes have the same mappings above */
            continue;
        errno = ENOTSUP;
        if (!is_known(side, vma))
            return -1;
        map->count++;
    }
    return 0;
}

/* --- the rest --- */

static int read_limits(struct transplant_side *side)
{
    static const struct {
        int field;
        size_t at;
    } wanted[] = {
        { 26, offsetof(struct transplant_limits, start_code) },
        { 27, offsetof(struct transplant_limits, end_code) },
        { 28, offsetof(struct transplant_limits, start_stack) },
        { 45, offsetof(struct transplant_limits, start_data) },
        { 46, offsetof(struct transplant_limits, end_data) },
        { 47, offsetof(struct transplant_limits, start_brk) },
        { 48, offsetof(struct transplant_limits, arg_start) },
        { 49, offsetof(struct transplant_limits, arg_end) },
        { 50, offsetof(struct transplant_limits, env_start) },
        { 51, offsetof(struct transplant_limits, env_end) },
    };
    char text[2048];
    size_t next = 0;
    if (park_read_proc(side->session->proc, side->at.pid, "stat", text, sizeof text) < 0)
        return -1;
    const char *at = strrchr(text, ')');
    at = at && at[1] ? at + 2 : "";
    for (int field = STAT_STATE; *at && next < array_len(wanted); field++) {
        if (field == wanted[next].field)
            *(uint64_t *)(void *)((char *)&side->limits + wanted[next++].at) = take_number(&at, 10);
        at += strcspn(at, " ");
        at += *at == ' ';
    }
    side->limits.exe_fd = UINT32_MAX; /* unchanged */
    errno = ENOTSUP;
    return next == array_len(wanted) ? 0 : -1;
}

static int read_figure(const char *text, const char *label, unsigned base, uint64_t *out)
{
    const char *at = strstr(text, label);
    errno = ENOTSUP;
    if (!at)
        return -1;
    at += strlen(label);
    *out = take_number(&at, base);
    return 0;
}

/* A shadow stack (CET) is a second stack that only the kernel may write. */
static bool has_shadow_stack(const char *status)
{
    static const char label[] = "\nx86_Thread_features:\t";
    const char *at = strstr(status, label);
    return at && at[sizeof label - 1] != '\n';
}

int transplant_read_side(struct transplant_side *side)
{
    static char text[STATUS_MAX];
    const int proc = side->session->proc;
    if (park_read_proc(proc, side->at.pid, "status", text, sizeof text) < 0 ||
        read_figure(text, "\nSigIgn:\t", 16, &side->ignored) < 0 ||
        read_figure(text, "\nSigCgt:\t", 16, &side->caught) < 0 ||
        read_figure(text, "\nUmask:\t", 8, &side->umask) < 0)
        return -1;
    errno = ENOTSUP;
    if (has_shadow_stack(text))
        return -1;
    if (syscall(SYS_ptrace, (long)GET_RSEQ, (long)side->at.pid, sizeof side->rseq, &side->rseq) <
        0) {
        errno = errno == ESRCH ? ESRCH : ENOSYS;
        return -1;
    }
    return read_limits(side);
}

static int open_file(const struct transplant_side *side, const char *name, int mode)
{
    char path[INJECT_PROC_PATH];
    inject_proc_path(path, side->at.pid, name);
    return openat(side->session->proc, path, mode | O_CLOEXEC);
}

int transplant_open_memory(struct transplant_side *side, int mode)
{
    side->mem = open_file(side, "mem", mode);
    if (side->mem < 0)
        return -1;
    side->pagemap = open_file(side, "pagemap", O_RDONLY);
    if (side->pagemap < 0 && errno == ENOENT)
        errno = ENOSYS;
    return side->pagemap < 0 ? -1 : 0;
}

static bool has_same_limits(const struct transplant *t)
{
    char from[4096], to[4096];
    const struct transplant_side *a = &t->from, *b = &t->to;
    return park_read_proc(a->session->proc, a->at.pid, "limits", from, sizeof from) == 0 &&
           park_read_proc(b->session->proc, b->at.pid, "limits", to, sizeof to) == 0 &&
           strcmp(from, to) == 0;
}

void transplant_compare_settings(struct transplant *t)
{
    int one = (int)syscall(SYS_getpriority, 0, t->from.at.pid);
    int other = (int)syscall(SYS_getpriority, 0, t->to.at.pid);
    if (one != other || !has_same_limits(t))
        t->report.lost_bits |= BOX_LOST_BIT(SETTINGS);
}

#endif
