/* The content of pages, from the parked process to the fresh one. Which pages are a
 * process's own is in its page map; where that is not for us to read, all are compared.
 * Read and written in batches of many runs, through memory of ours that stays in the
 * processor's cache. */
#include "box/fork/transplant_int.h"

#if INJECT_HERE

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"

#define PAGE TRANSPLANT_PAGE
/* /proc/PID/pagemap: present or swapped out; a page of a file. */
#define PAGEMAP_USED (UINT64_C(3) << 62)
#define PAGEMAP_FILE (UINT64_C(1) << 61)

/* What is collected of a range until it is worth a call. */
struct batch {
    struct transplant *t;
    const struct transplant_range *range;
    bool compare; /* with what the fresh process has there */
    bool opened;  /* the range was made writable here */
    size_t pages, runs;
};

static bool is_own(uint64_t entry)
{
    return (entry & PAGEMAP_USED) && !(entry & PAGEMAP_FILE);
}

/* Entries from one page on; *out_count is how many there are at hand. Without a page map
 * each page may be an own one; where nothing can be read in the ordinary way, none is. */
static const uint64_t *entries_of(struct transplant_side *side, uint8_t prot, uint64_t at,
                                  size_t *out_count)
{
    const uint64_t into = (at - side->window) / PAGE;
    *out_count = side->entry_count - (size_t)into;
    if (side->pagemap >= 0 && at >= side->window && into < side->entry_count)
        return side->entry + into;
    side->window = at;
    side->entry_count = *out_count = TRANSPLANT_ENTRIES;
    if (side->pagemap < 0) {
        for (size_t i = 0; i < TRANSPLANT_ENTRIES; i++)
            side->entry[i] = prot & PROT_READ ? PAGEMAP_USED : 0;
        return side->entry;
    }
    ssize_t got = pread(side->pagemap, side->entry, sizeof side->entry,
                        (off_t)(at / PAGE * sizeof side->entry[0]));
    side->entry_count = *out_count = got > 0 ? (size_t)got / sizeof side->entry[0] : 0;
    errno = got < 0 ? errno : EIO;
    return side->entry_count ? side->entry : NULL;
}

/* --- reading and writing --- */

/* A page that cannot be read in the ordinary way: by words, as a debugger does. What
 * lies behind the end of a file is no memory at all, and is left empty. */
static void peek_page(pid_t pid, uint64_t at, unsigned char *out)
{
    memset(out, 0, PAGE);
    for (size_t i = 0; i < PAGE; i += sizeof(long)) {
        long word = 0; /* the system call, unlike libc's function, puts it there */
        if (syscall(SYS_ptrace, (long)PTRACE_PEEKDATA, (long)pid, at + i, &word) < 0)
            return;
        memcpy(out + i, &word, sizeof word);
    }
}

static void read_run(const struct transplant_side *side, const struct iovec *run,
                     unsigned char *out)
{
    const uint64_t start = (uint64_t)(uintptr_t)run->iov_base;
    if (transplant_read(side, start, out, run->iov_len) == 0)
        return;
    for (size_t at = 0; at < run->iov_len; at += PAGE) {
        if (transplant_read(side, start + at, out + at, PAGE) < 0)
            peek_page(side->at.pid, start + at, out + at);
    }
}

static void read_batch(const struct batch *b, const struct transplant_side *side,
                       unsigned char *out)
{
    for (size_t i = 0; i < b->runs; i++) {
        read_run(side, &b->t->run[i], out);
        out += b->t->run[i].iov_len;
    }
}

static enum inject_end protect(struct batch *b, uint64_t prot)
{
    const struct transplant_range *range = b->range;
    return transplant_do(b->t, (struct inject_order){ SYS_mprotect,
                                                      { range->start, range->end - range->start,
                                                        prot } }, NULL);
}

static enum inject_end write_run(struct batch *b, const unsigned char *bytes, uint64_t to,
                                 size_t len)
{
    const uint64_t open = PROT_READ | PROT_WRITE;
    if ((b->range->prot & open) != open && !b->range->opened && !b->opened) {
        enum inject_end end = protect(b, b->range->prot | open);
        if (end != INJECT_OK)
            return end;
        b->opened = true;
    }
    b->t->report.bytes_copied += len;
    errno = ENOMEM; /* it may be written in part */
    return inject_write(&b->t->to.at, to, bytes, len) < 0 ? INJECT_REFUSED : INJECT_OK;
}

static bool differs(const struct batch *b, size_t page)
{
    static const unsigned char zeroes[PAGE];
    const unsigned char *have = b->range->blank ? zeroes : b->t->bytes[1] + page * PAGE;
    return !b->compare || memcmp(b->t->bytes[0] + page * PAGE, have, PAGE) != 0;
}

/* Only what differs: a page that is written is the fresh process's own from then on. */
static enum inject_end write_changes(struct batch *b)
{
    struct transplant *t = b->t;
    enum inject_end end = INJECT_OK;
    size_t page = 0;
    for (size_t i = 0; end == INJECT_OK && i < b->runs; i++) {
        const uint64_t base = (uint64_t)(uintptr_t)t->run[i].iov_base;
        const size_t pages = t->run[i].iov_len / PAGE;
        for (size_t k = 0, next; end == INJECT_OK && k < pages; k = next) {
            next = k;
            while (next < pages && differs(b, page + next))
                next++;
            if (next > k)
                end = write_run(b, t->bytes[0] + (page + k) * PAGE, base + k * PAGE,
                                (next - k) * PAGE);
            else
                next++;
        }
        page += pages;
    }
    return end;
}

static enum inject_end flush(struct batch *b)
{
    struct transplant *t = b->t;
    errno = ETIMEDOUT;
    if (clock_now_ns() > t->deadline_ns)
        return INJECT_REFUSED;
    read_batch(b, &t->from, t->bytes[0]);
    if (b->compare && !b->range->blank)
        read_batch(b, &t->to, t->bytes[1]);
    enum inject_end end = write_changes(b);
    b->pages = b->runs = 0;
    return end;
}

static enum inject_end add_page(struct batch *b, uint64_t at)
{
    struct iovec *last = b->runs ? &b->t->run[b->runs - 1] : NULL;
    if (last && (uint64_t)(uintptr_t)last->iov_base + last->iov_len == at)
        last->iov_len += PAGE;
    else
        b->t->run[b->runs++] = (struct iovec){ (void *)(uintptr_t)at, PAGE };
    return ++b->pages == TRANSPLANT_BATCH ? flush(b) : INJECT_OK;
}

/* --- a range --- */

/* The next pages of a range, as many as both page maps have at hand. */
static enum inject_end copy_some(struct batch *b, uint64_t *at)
{
    struct transplant *t = b->t;
    const struct transplant_range *range = b->range;
    const uint64_t left = (range->end - *at) / PAGE;
    size_t count = left < TRANSPLANT_ENTRIES ? (size_t)left : TRANSPLANT_ENTRIES, some = count;
    const uint64_t *from = NULL, *to = NULL;
    if (!range->all && !(from = entries_of(&t->from, range->prot, *at, &some)))
        return INJECT_REFUSED;
    count = some < count ? some : count;
    if (range->kept && !(to = entries_of(&t->to, range->prot, *at, &some)))
        return INJECT_REFUSED;
    count = some < count ? some : count;
    enum inject_end end = INJECT_OK;
    for (size_t i = 0; end == INJECT_OK && i < count; i++) {
        if (!from || is_own(from[i]) || (to && is_own(to[i])))
            end = add_page(b, *at + i * PAGE);
    }
    *at += count * PAGE;
    if (end == INJECT_OK && clock_now_ns() > t->deadline_ns) {
        errno = ETIMEDOUT;
        end = INJECT_REFUSED;
    }
    return end;
}

bool transplant_has_own(struct transplant *t, uint64_t start, uint64_t end)
{
    size_t count = 0;
    for (uint64_t at = start; at < end; at += count * PAGE) {
        const uint64_t *entry = entries_of(&t->from, 0, at, &count);
        if (!entry || clock_now_ns() > t->deadline_ns)
            return false; /* which is seen again when they are copied */
        for (size_t i = 0; i < count && at + i * PAGE < end; i++) {
            if (is_own(entry[i]))
                return true;
        }
    }
    return false;
}

enum inject_end transplant_copy(struct transplant *t, const struct transplant_range *range)
{
    struct batch b = {
        .t = t, .range = range,
        .compare = range->blank || range->kept || t->from.pagemap < 0,
    };
    enum inject_end end = INJECT_OK;
    for (uint64_t at = range->start; end == INJECT_OK && at < range->end;)
        end = copy_some(&b, &at);
    if (end == INJECT_OK)
        end = flush(&b);
    return end == INJECT_OK && b.opened ? protect(&b, range->prot) : end;
}

#endif
