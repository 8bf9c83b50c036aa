/* Freezing the memory of a zygote. Runs in the zygote, once, after its imports.
 *
 * A fork copies the page tables of every mapping with private pages, and each child pays for each
 * page again at its end. A mapping of a file without written pages is copied as one record. So the
 * private memory becomes such a file: copy the content, then map the file over the memory, at the
 * same address.
 *
 * 1. Between the copy and the last mapping this code writes only to its stack and its scratch
 *    mapping; neither is frozen.
 * 2. Nothing becomes writable, and nothing executable becomes or was writable. Code is not copied;
 *    constants beside it in its file may become executable with it.
 * 3. The kernel writes to the thread's control block (rseq, errno's neighbours) at any time: its
 *    pages stay ordinary memory.
 * 4. A mapping with an unknown flag stays as it is: it may be wiped on fork, locked, shared, sealed
 *    or a device.
 * 5. The file has no hole and can neither grow nor shrink nor be written: no occupant can reach
 *    another through it. */
#include "box/zygote/freeze.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/io.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

#define PAGE UINT64_C(4096)
#define SCRATCH_BYTES (size_t)(16u << 20)
#define REGIONS_MAX 16384
#define CONTROL_BLOCK_BELOW 4096 /* errno and similar lie below the thread pointer */
#define CONTROL_BLOCK_ABOVE 4096
#define BLOCK_IS_MAPPED 2
/* An unused run of this many pages is not copied: the file would be full of zeroes (a linear
 * algebra library reserves 128 MiB). */
#define UNUSED_RUN UINT64_C(1024)
#define PAGEMAP_USED (UINT64_C(3) << 62) /* present, or swapped out */
#define PAGEMAP_AT_ONCE 4096

#define SMALL_STEP ((size_t)16) /* CPython: the step of small size classes, and the largest */
#define SMALL_MAX ((size_t)512)
#define GAPS_MAX ((size_t)(64u << 20))
#define GAP_MAX ((size_t)(16u << 20))
#define GAP_MIN ((size_t)24) /* libc's smallest block */

struct region {
    uint64_t from, to;
    uint64_t end;    /* of the whole mapping; the region may be a part of it */
    uint64_t offset; /* in the frozen file */
    int prot;
    bool wanted, anonymous;
    bool clean;       /* no page was written */
    uint64_t file_at; /* offset in its file */
    const char *file; /* "dev inode path" up to the end of the line; NULL: none */
};

/* In a mapping of its own, which is not frozen. */
struct scratch {
    size_t count;
    struct region region[REGIONS_MAX];
    size_t text_len;
    char text[];
};

static bool only_thread(void)
{
    struct stat st; /* two links, and one for each thread */
    return stat("/proc/self/task", &st) == 0 && st.st_nlink == 3;
}

static int read_smaps(struct scratch *scratch)
{
    const size_t room = SCRATCH_BYTES - sizeof *scratch - 1;
    int fd = open("/proc/self/smaps", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t n = 1;
    while (n > 0 && scratch->text_len < room) {
        n = read(fd, scratch->text + scratch->text_len, room - scratch->text_len);
        scratch->text_len += n > 0 ? (size_t)n : 0;
    }
    int saved = errno;
    close(fd);
    errno = n < 0 ? saved : EOVERFLOW;
    scratch->text[scratch->text_len] = 0;
    return n == 0 ? 0 : -1;
}

static const char *hex(const char *at, uint64_t *out)
{
    *out = 0;
    for (;; at++) {
        unsigned digit = *at >= '0' && *at <= '9'   ? (unsigned)(*at - '0')
                         : *at >= 'a' && *at <= 'f' ? (unsigned)(*at - 'a') + 10
                                                    : 16;
        if (digit > 15)
            return at;
        *out = *out << 4 | digit;
    }
}

/* The flags of /proc/self/smaps that allow a copy. */
static bool harmless_flags(const char *flags)
{
    static const char known[] = "rd wr mr mw me ac nr hg nh sd dd";
    for (; *flags && *flags != '\n'; flags += 2) {
        flags += strspn(flags, " ");
        if (!*flags || *flags == '\n')
            break;
        bool found = false;
        for (const char *at = known; !found && *at; at += at[2] ? 3 : 2)
            found = at[0] == flags[0] && at[1] == flags[1];
        if (!found)
            return false;
    }
    return true;
}

/* One mapping: "from-to perms offset dev inode   path". */
static bool read_head(const char *line, struct region *out)
{
    const char *at = hex(line, &out->from);
    if (*at != '-')
        return false;
    at = hex(at + 1, &out->to);
    if (*at != ' ')
        return false;
    out->end = out->to;
    const char *perms = at + 1;
    for (int field = 0; field < 4; field++) {
        at += strspn(at, " ");
        if (field == 1)
            hex(at, &out->file_at);
        out->file = field == 2 ? at : out->file;
        at += strcspn(at, " \n");
    }
    at += strspn(at, " ");
    out->file = *at == '/' ? out->file : NULL;
    bool special = *at == '[' && strncmp(at, "[heap]", 6) != 0 && strncmp(at, "[anon:", 6) != 0;
    out->prot = (perms[0] == 'r' ? PROT_READ : 0) | (perms[1] == 'w' ? PROT_WRITE : 0) |
                (perms[2] == 'x' ? PROT_EXEC : 0);
    out->anonymous = *at == '[' || *at == '\n';
    out->wanted = perms[3] == 'p' && !special && (out->prot & PROT_READ) &&
                  !(out->prot & PROT_EXEC);
    return true;
}

static int parse(struct scratch *scratch)
{
    struct region *last = NULL;
    for (const char *line = scratch->text; *line; line++) {
        const char *end = strchrnul(line, '\n');
        struct region head = { 0 };
        if (*line >= 'A' && *line <= 'Z') { /* a fact about the mapping above */
            if (last && strncmp(line, "VmFlags:", 8) == 0 && !harmless_flags(line + 8))
                last->wanted = false;
            if (last && strncmp(line, "Anonymous:", 10) == 0)
                last->clean = strtoul(line + 10, NULL, 10) == 0;
        } else if (read_head(line, &head)) {
            if (scratch->count == REGIONS_MAX) {
                errno = EOVERFLOW;
                return -1;
            }
            last = &scratch->region[scratch->count++];
            *last = head;
        }
        line = end;
        if (!*line)
            break;
    }
    return 0;
}

/* Exclude [from, to): the rest of a region on both sides stays wanted. */
static int leave_out(struct scratch *scratch, uint64_t from, uint64_t to)
{
    for (size_t i = 0, all = scratch->count; i < all; i++) {
        struct region *region = &scratch->region[i];
        if (!region->wanted || region->to <= from || region->from >= to)
            continue;
        if (region->from < from && region->to > to) {
            if (scratch->count == REGIONS_MAX) {
                errno = EOVERFLOW;
                return -1;
            }
            struct region upper = *region;
            upper.from = to;
            scratch->region[scratch->count++] = upper;
        }
        if (region->from < from)
            region->to = from;
        else if (region->to > to)
            region->from = to;
        else
            region->wanted = false;
    }
    return 0;
}

/* Heap blocks in mappings of their own stay as they are: libc grows them in place, beyond the end
 * of the frozen file. Each begins with its length and a mark; a false match is excluded too, which
 * only costs time. libc knows how many there are. */
static int leave_out_blocks(struct scratch *scratch)
{
    const struct mallinfo2 heap = mallinfo2();
    size_t blocks = 0, bytes = 0;
    for (size_t i = 0, all = scratch->count; heap.hblks > 0 && i < all; i++) {
        const struct region region = scratch->region[i];
        bool writable = region.wanted && (region.prot & PROT_WRITE);
        for (uint64_t at = region.from; writable && at < region.to; at += PAGE) {
            const size_t *head = (const size_t *)(uintptr_t)at;
            const size_t len = head[1] & ~(size_t)7;
            if (head[0] != 0 || (head[1] & 7) != BLOCK_IS_MAPPED || len == 0 || len % PAGE ||
                len > region.end - at)
                continue;
            if (leave_out(scratch, at, at + len) < 0)
                return -1;
            blocks++;
            bytes += len;
            at += len - PAGE;
        }
    }
    errno = ENOTSUP;
    return blocks >= heap.hblks && bytes >= heap.hblkhd ? 0 : -1;
}

/* Exclude every long run of unused pages. */
static int leave_out_runs(struct scratch *scratch, int pagemap, struct region region)
{
    uint64_t entries[PAGEMAP_AT_ONCE], run = region.from;
    for (uint64_t at = region.from; at < region.to;) {
        size_t want = (region.to - at) / PAGE;
        want = want < PAGEMAP_AT_ONCE ? want : PAGEMAP_AT_ONCE;
        ssize_t n = pread(pagemap, entries, want * sizeof entries[0],
                          (off_t)(at / PAGE * sizeof entries[0]));
        if (n < (ssize_t)sizeof entries[0])
            return -1;
        const uint64_t until = at + (uint64_t)n / sizeof entries[0] * PAGE;
        for (const uint64_t *entry = entries; at < until; at += PAGE, entry++) {
            bool last = at + PAGE == region.to, used = *entry & PAGEMAP_USED;
            const uint64_t end = last && !used ? region.to : at;
            bool over = (used || last) && end - run >= UNUSED_RUN * PAGE;
            if (over && leave_out(scratch, run, end) < 0)
                return -1;
            run = used ? at + PAGE : run;
        }
    }
    return 0;
}

static int leave_out_unused(struct scratch *scratch)
{
    int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC), failed = pagemap < 0 ? -1 : 0;
    for (size_t i = 0, all = scratch->count; !failed && i < all; i++) {
        const struct region region = scratch->region[i];
        if (region.wanted && region.anonymous && region.to - region.from >= UNUSED_RUN * PAGE)
            failed = leave_out_runs(scratch, pagemap, region);
    }
    int saved = errno;
    if (pagemap >= 0)
        close(pagemap);
    errno = saved;
    return failed;
}

/* Neighbours must be neighbours in the file too, or the kernel does not merge them. */
static void sort(struct scratch *scratch)
{
    for (size_t i = 1; i < scratch->count; i++) {
        struct region moved = scratch->region[i];
        size_t at = i;
        for (; at > 0 && scratch->region[at - 1].from > moved.from; at--)
            scratch->region[at] = scratch->region[at - 1];
        scratch->region[at] = moved;
    }
}

static bool follows(const struct region *one, const struct region *next)
{
    return one->file && next->file && one->to == next->from && one->clean && next->clean &&
           one->file_at + (one->to - one->from) == next->file_at &&
           strcspn(one->file, "\n") == strcspn(next->file, "\n") &&
           strncmp(one->file, next->file, strcspn(one->file, "\n")) == 0;
}

/* Code and the constants on both sides of it in the same file become one readable and executable
 * mapping: each mapping costs every fork a microsecond. */
static void join_constants(struct scratch *scratch)
{
    const int code = PROT_READ | PROT_EXEC;
    struct region *all = scratch->region;
    for (size_t i = 0; i < scratch->count; i++) {
        bool before = i + 1 < scratch->count && all[i + 1].prot == code &&
                      follows(&all[i], &all[i + 1]);
        bool after = i > 0 && all[i - 1].prot == code && follows(&all[i - 1], &all[i]);
        void *at = (void *)(uintptr_t)all[i].from;
        if (all[i].prot == PROT_READ && all[i].wanted && (before || after) &&
            mprotect(at, all[i].to - all[i].from, code) == 0)
            all[i].wanted = false;
    }
}

static int choose(struct scratch *scratch)
{
    const uint64_t own = (uint64_t)(uintptr_t)scratch;
    const uint64_t block = (uint64_t)(uintptr_t)__builtin_thread_pointer();
    const uint64_t stack = (uint64_t)(uintptr_t)__builtin_frame_address(0);
    if (read_smaps(scratch) < 0 || parse(scratch) < 0 ||
        leave_out(scratch, own, own + SCRATCH_BYTES) < 0 ||
        leave_out(scratch, (block - CONTROL_BLOCK_BELOW) & ~(PAGE - 1),
                  (block + CONTROL_BLOCK_ABOVE + PAGE - 1) & ~(PAGE - 1)) < 0 ||
        leave_out_unused(scratch) < 0 || leave_out_blocks(scratch) < 0)
        return -1;
    for (size_t i = 0; i < scratch->count; i++) { /* usually named [stack] */
        if (scratch->region[i].from <= stack && stack < scratch->region[i].to)
            scratch->region[i].wanted = false;
    }
    sort(scratch);
    join_constants(scratch);
    return 0;
}

/* Copy the content into the file. A mapping longer than its file cannot be read to its end and is
 * left alone. */
static int copy(struct scratch *scratch, int file)
{
    uint64_t at = 0;
    for (size_t i = 0; i < scratch->count; i++) {
        struct region *region = &scratch->region[i];
        const char *bytes = (const char *)(uintptr_t)region->from;
        const size_t len = region->to - region->from;
        size_t done = 0;
        while (region->wanted && done < len) {
            ssize_t n = pwrite(file, bytes + done, len - done, (off_t)(at + done));
            if (n < 0 && errno != EFAULT)
                return -1;
            region->wanted = n > 0;
            done += n > 0 ? (size_t)n : 0;
        }
        if (!region->wanted)
            continue;
        region->offset = at;
        at += len;
    }
    return ftruncate(file, (off_t)at); /* cut the rest of a failed copy */
}

static void map(const struct scratch *scratch, int file)
{
    for (size_t i = 0; i < scratch->count; i++) {
        const struct region *region = &scratch->region[i];
        void *at = (void *)(uintptr_t)region->from;
        if (region->wanted && mmap(at, region->to - region->from, region->prot,
                                   MAP_PRIVATE | MAP_FIXED, file, (off_t)region->offset) != at)
            _exit(74); /* the old mapping may be gone: there is no way back */
    }
}

static int open_file(void)
{
    const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    int fd = memfd_create("frozen", flags | MFD_NOEXEC_SEAL);
    return fd < 0 && errno == EINVAL ? memfd_create("frozen", flags) : fd; /* before 6.3 */
}

/* --- gaps --- */

/* As CPython declares it: PyObjectArenaAllocator. */
struct arenas {
    void *context;
    void *(*take)(void *context, size_t len);
    void (*give_back)(void *context, void *at, size_t len);
};

static struct arenas arenas;
static uintptr_t new_arena, new_arena_end;

static void *take_arena(void *context, size_t len)
{
    void *at = arenas.take(context, len);
    new_arena = (uintptr_t)at;
    new_arena_end = at ? new_arena + len : 0;
    return at;
}

/* Allocate in each size class until a block comes from a new arena: then the old pools are full,
 * and only the new arena has free pools. Return the blocks from there but one, which keeps the
 * arena. */
static void fill_arenas(const struct freeze_allocator *python)
{
    python->get_arenas(&arenas);
    struct arenas ours = { arenas.context, take_arena, arenas.give_back };
    python->set_arenas(&ours);
    size_t taken = 0; /* bounds the loop if small objects do not come from arenas */
    void *keeper = NULL;
    for (size_t len = SMALL_MAX; len > 0 && taken < GAPS_MAX; len -= SMALL_STEP) {
        void *block;
        do {
            block = python->take(len);
            taken += len;
        } while (block && taken < GAPS_MAX &&
                 ((uintptr_t)block < new_arena || (uintptr_t)block >= new_arena_end));
        if (keeper)
            python->give_back(block);
        else
            keeper = block;
    }
    python->set_arenas(&arenas);
}

/* The same for libc's heap, from large to small: a block that is not from the heap's end was a
 * gap. */
static void fill_heap(void)
{
    const uintptr_t end = (uintptr_t)sbrk(0) - mallinfo2().keepcost;
    for (size_t len = GAP_MAX; len >= GAP_MIN; len -= len > PAGE ? len / 16 : 16) {
        void *volatile block;
        do
            block = malloc(len);
        while (block && (uintptr_t)block < end);
        free(block);
    }
}

void freeze_fill_gaps(const struct freeze_allocator *python)
{
    fill_heap();
    fill_arenas(python);
}

int freeze_memory(void)
{
    const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
    if (!only_thread()) {
        errno = EBUSY;
        return -1;
    }
    struct scratch *scratch = mmap(NULL, SCRATCH_BYTES, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (scratch == MAP_FAILED)
        return -1;
    int file = open_file(), failed = -1;
    if (file >= 0 && choose(scratch) == 0 && copy(scratch, file) == 0) {
        map(scratch, file);
        failed = fcntl(file, F_ADD_SEALS, seals);
        if (failed < 0)
            _exit(74); /* a writable file would be shared memory */
    }
    int saved = errno;
    if (file >= 0)
        close(file);
    munmap(scratch, SCRATCH_BYTES);
    errno = saved;
    return failed;
}
