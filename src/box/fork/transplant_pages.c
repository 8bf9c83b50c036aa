/* Copies the content of pages from the parked process to the fresh one. The page map of a process
 * tells which of its pages are private. The keeper reads through /proc/PID/mem: process_vm_readv
 * would pin each page, and the kernel copies a pinned page that another process shares. */
#include "box/fork/transplant_int.h"

#if INJECT_HERE

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"

#define PAGE TRANSPLANT_PAGE
/* /proc/PID/pagemap: present or swapped out; a page of a file. */
#define PAGEMAP_USED (UINT64_C(3) << 62)
#define PAGEMAP_FILE (UINT64_C(1) << 61)

static bool is_private(uint64_t entry)
{
    return (entry & PAGEMAP_USED) && !(entry & PAGEMAP_FILE);
}

/* The entries from one page on, at most `pages`; *out_count is their number, NULL with errno. */
static const uint64_t *entries_of(struct transplant_side *side, uint64_t at, size_t pages,
                                  size_t *out_count)
{
    uint64_t into = (at - side->window) / PAGE;
    const bool here = at >= side->window && into < side->entry_count;
    if (!here || side->entry_count - (size_t)into < pages) {
        ssize_t got = pread(side->pagemap, side->entry, sizeof side->entry,
                            (off_t)(at / PAGE * sizeof side->entry[0]));
        errno = got < 0 ? errno : EIO;
        side->window = at;
        side->entry_count = got > 0 ? (size_t)got / sizeof side->entry[0] : 0;
        into = 0;
    }
    const size_t left = side->entry_count - (size_t)into;
    *out_count = left < pages ? left : pages;
    return left ? side->entry + into : NULL;
}

/* --- reading and writing --- */

/* A page that cannot be read (behind the end of a mapped file) counts as zeroes. */
static void read_run(const struct transplant_side *side, uint64_t start, unsigned char *out,
                     size_t len)
{
    if (pread(side->mem, out, len, (off_t)start) == (ssize_t)len)
        return;
    for (size_t at = 0; at < len; at += PAGE) {
        if (pread(side->mem, out + at, PAGE, (off_t)(start + at)) != (ssize_t)PAGE)
            memset(out + at, 0, PAGE);
    }
}

/* process_vm_writev is the faster way. A write to /proc/PID/mem also reaches private pages that
 * the process itself may not write. */
static enum inject_end write_run(struct transplant *t, const struct transplant_range *range,
                                 uint64_t to, const unsigned char *bytes, size_t len)
{
    const int both = PROT_READ | PROT_WRITE;
    t->report.bytes_copied += len;
    if ((range->prot & both) == both && inject_write(&t->to.at, to, bytes, len) == 0)
        return INJECT_OK;
    ssize_t put = pwrite(t->to.mem, bytes, len, (off_t)to);
    if (put != (ssize_t)len)
        errno = put < 0 && errno == EIO && !(range->prot & PROT_WRITE) ? EIO : ENOMEM;
    return put == (ssize_t)len ? INJECT_OK : INJECT_REFUSED;
}

static bool differs(const struct transplant *t, const struct transplant_range *range, size_t at)
{
    static const unsigned char zeroes[PAGE];
    if (!range->blank && !range->kept)
        return true;
    return memcmp(t->bytes[0] + at, range->blank ? zeroes : t->bytes[1] + at, PAGE) != 0;
}

/* Copy pages that follow each other. A write makes a page private in the fresh process, so only
 * pages that differ are written. */
static enum inject_end copy_run(struct transplant *t, const struct transplant_range *range,
                                uint64_t start, size_t len)
{
    enum inject_end end = INJECT_OK;
    read_run(&t->from, start, t->bytes[0], len);
    if (range->kept)
        read_run(&t->to, start, t->bytes[1], len);
    for (size_t at = 0, next; end == INJECT_OK && at < len; at = next) {
        next = at;
        while (next < len && differs(t, range, next))
            next += PAGE;
        if (next > at)
            end = write_run(t, range, start + at, t->bytes[0] + at, next - at);
        else
            next += PAGE;
    }
    return end;
}

/* --- a range --- */

/* Copy the next pages of a range: the private ones of at most one batch. */
static enum inject_end copy_some(struct transplant *t, const struct transplant_range *range,
                                 uint64_t *at)
{
    const uint64_t start = *at, left = (range->end - start) / PAGE;
    size_t count = left < TRANSPLANT_BATCH ? (size_t)left : TRANSPLANT_BATCH;
    const uint64_t *from = NULL, *to = NULL;
    if (!range->all && !(from = entries_of(&t->from, start, count, &count)))
        return INJECT_REFUSED;
    if (range->kept && !(to = entries_of(&t->to, start, count, &count)))
        return INJECT_REFUSED;
    enum inject_end end = INJECT_OK;
    for (size_t i = 0, next; end == INJECT_OK && i < count; i = next + 1) {
        next = i;
        while (next < count && (!from || is_private(from[next]) || (to && is_private(to[next]))))
            next++;
        if (next > i)
            end = copy_run(t, range, start + i * PAGE, (next - i) * PAGE);
    }
    *at += count * PAGE;
    return end;
}

enum inject_end transplant_copy(struct transplant *t, const struct transplant_range *range)
{
    enum inject_end end = INJECT_OK;
    for (uint64_t at = range->start; end == INJECT_OK && at < range->end;) {
        end = copy_some(t, range, &at);
        if (end == INJECT_OK && clock_now_ns() > t->deadline_ns) {
            errno = ETIMEDOUT;
            end = INJECT_REFUSED;
        }
    }
    return end;
}

#endif
