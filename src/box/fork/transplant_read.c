/* What the kernel tells a tracer of the two processes, in /proc and by ptrace. The lines
 * are the kernel's, but the names in them are an attacker's, and how many there are. */
#include "box/fork/transplant_int.h"

#if INJECT_HERE

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/own.h"

#define GET_RSEQ 0x420f
#define STAT_START_BRK 44 /* words after the one that follows the name */
#define USER_END (UINT64_C(1) << 47)

struct cursor {
    const char *at, *end;
};

static uint64_t take_number(struct cursor *c, unsigned base)
{
    uint64_t number = 0;
    for (; c->at < c->end; c->at++) {
        const char letter = *c->at;
        unsigned digit = letter >= '0' && letter <= '9'   ? (unsigned)(letter - '0')
                         : letter >= 'a' && letter <= 'f' ? (unsigned)(letter - 'a') + 10
                                                          : 99;
        if (digit >= base)
            break;
        number = number * base + digit;
    }
    return number;
}

/* The byte at the cursor, which is then past it. */
static char take(struct cursor *c)
{
    return c->at < c->end ? *c->at++ : 0;
}

/* A whole file of /proc; its length, or -1. E2BIG if it is longer than there is room. */
static ssize_t read_file(const struct transplant_side *side, const char *name, char *out,
                         size_t room)
{
    own_fd fd = transplant_open_proc(side, name);
    size_t len = 0;
    while (fd >= 0 && len < room) {
        ssize_t n = read(fd, out + len, room - len);
        if (n < 0 && errno != EINTR)
            return -1;
        if (n == 0)
            return (ssize_t)len;
        len += n > 0 ? (size_t)n : 0;
    }
    if (fd >= 0)
        errno = E2BIG;
    return -1;
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

/* "START-END rwxp OFFSET MAJOR:MINOR INODE   NAME"; the cursor ends with the line. */
static int parse_line(struct cursor *c, const char *text, struct transplant_vma *out)
{
    *out = (struct transplant_vma){ .start = take_number(c, 16) };
    bool plain = take(c) == '-';
    out->end = take_number(c, 16);
    plain = plain && take(c) == ' ';
    out->prot = (uint8_t)(take(c) == 'r' ? PROT_READ : 0);
    out->prot |= (uint8_t)(take(c) == 'w' ? PROT_WRITE : 0);
    out->prot |= (uint8_t)(take(c) == 'x' ? PROT_EXEC : 0);
    out->shared = take(c) == 's';
    plain = plain && take(c) == ' ';
    out->offset = take_number(c, 16);
    plain = plain && take(c) == ' ';
    out->device[0] = (uint32_t)take_number(c, 16);
    plain = plain && take(c) == ':';
    out->device[1] = (uint32_t)take_number(c, 16);
    plain = plain && take(c) == ' ';
    out->inode = take_number(c, 10);
    while (c->at < c->end && *c->at == ' ')
        c->at++;
    out->name = (uint32_t)(c->at - text);
    out->name_len = (uint32_t)(c->end - c->at);
    out->kind = (uint8_t)kind_of(out, c->at);
    errno = EPROTO;
    return plain && out->start < out->end && !((out->start | out->end) % TRANSPLANT_PAGE) ? 0 : -1;
}

int transplant_read_map(struct transplant_side *side)
{
    struct transplant_map *map = &side->map;
    ssize_t len = read_file(side, "maps", map->text, sizeof map->text - 1);
    if (len < 0)
        return -1;
    map->text[len] = 0;
    map->count = 0;
    uint64_t last = 0;
    for (const char *line = map->text, *end; line < map->text + len; line = end + 1) {
        end = memchr(line, '\n', (size_t)(map->text + len - line));
        errno = E2BIG;
        if (!end || map->count == TRANSPLANT_VMAS_MAX)
            return -1;
        struct transplant_vma *vma = &map->vma[map->count];
        struct cursor c = { line, end };
        if (parse_line(&c, map->text, vma) < 0 || vma->start < last)
            return -1;
        last = vma->end;
        /* After a transplant the kernel knows no longer which one is the stack. */
        const uint64_t top = side->at.regs.rsp;
        if (vma->kind == TRANSPLANT_ANON && top >= vma->start && top < vma->end)
            vma->kind = TRANSPLANT_STACK;
        if (vma->end <= USER_END) /* above it is what all processes have */
            map->count++;
    }
    return 0;
}

/* --- the rest --- */

static int read_start_brk(struct transplant_side *side)
{
    char text[2048];
    ssize_t len = read_file(side, "stat", text, sizeof text);
    const char *name_end = len > 0 ? memrchr(text, ')', (size_t)len) : NULL;
    if (!name_end)
        return -1;
    struct cursor c = { name_end + 1, text + len };
    for (int i = 0; i <= STAT_START_BRK; i++) {
        while (take(&c) != ' ') {
            if (c.at == c.end)
                return -1;
        }
    }
    side->start_brk = take_number(&c, 10);
    return 0;
}

static int read_figure(const char *text, size_t len, const char *label, unsigned base,
                       uint64_t *out)
{
    const char *found = memmem(text, len, label, strlen(label));
    errno = EPROTO;
    if (!found)
        return -1;
    struct cursor c = { found + strlen(label), text + len };
    *out = take_number(&c, base);
    return 0;
}

int transplant_read_side(struct transplant_side *side)
{
    char text[8192];
    ssize_t len = read_file(side, "status", text, sizeof text);
    uint64_t fd_size = 0;
    if (len < 0 || read_figure(text, (size_t)len, "\nSigIgn:\t", 16, &side->ignored) < 0 ||
        read_figure(text, (size_t)len, "\nSigCgt:\t", 16, &side->caught) < 0 ||
        read_figure(text, (size_t)len, "\nFDSize:\t", 10, &fd_size) < 0)
        return -1;
    side->fd_size = (uint32_t)fd_size;
    if (syscall(SYS_ptrace, (long)GET_RSEQ, (long)side->at.pid, sizeof side->rseq,
                &side->rseq) < 0)
        return -1;
    return read_start_brk(side);
}

static bool has_same_limits(const struct transplant *t)
{
    char text[2][4096];
    ssize_t one = read_file(&t->from, "limits", text[0], sizeof text[0]);
    ssize_t other = read_file(&t->to, "limits", text[1], sizeof text[1]);
    return one > 0 && one == other && memcmp(text[0], text[1], (size_t)one) == 0;
}

void transplant_compare_settings(struct transplant *t)
{
    static const char what[] = "limits or priority";
    int one = (int)syscall(SYS_getpriority, 0, t->from.at.pid);
    int other = (int)syscall(SYS_getpriority, 0, t->to.at.pid);
    if (one != other || !has_same_limits(t))
        transplant_lose(t, BOX_LOST_BIT(SETTINGS), -1, what, sizeof what - 1);
}

/* The other way pins each page, and a pinned page is copied first if it is shared with
 * another process, as nearly all of a parked one are. */
int transplant_read(const struct transplant_side *side, uint64_t from, void *bytes, size_t len)
{
    if (side->mem < 0)
        return inject_read(&side->at, from, bytes, len);
    ssize_t got = pread(side->mem, bytes, len, (off_t)from);
    if (got >= 0 && (size_t)got != len)
        errno = EFAULT;
    return got == (ssize_t)len ? 0 : -1;
}

#endif
