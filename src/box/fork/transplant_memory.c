/* Mappings: the fresh process gets the mappings of the parked one. A mapping that both processes
 * have of the same file, or that both have anonymously, is kept: two forks of one zygote share
 * nearly all of them. The fresh process unmaps the rest and maps what the parked one has. It opens
 * image files by name. Other mapped files and shared memory become private memory.
 *
 * The fresh process may lose the code that it waits in, so its calls are made from a page of the
 * desk. It cannot create the kernel's own mappings (the vDSO), but it can move them: first to the
 * desk, then to the address that the parked process has. */
#include "box/fork/transplant_int.h"

#if INJECT_HERE

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
#define DESK_LOWEST (UINT64_C(256) << 20)
#define DESK_MARGIN (UINT64_C(16) << 20) /* to every mapping: stacks and heaps grow */
#define USER_END (UINT64_C(1) << 47)
#define SPECIALS_MAX 8
#define NO_FD (~UINT64_C(0))

/* A part of the address space that is one mapping, or none, in each process. */
struct piece {
    uint64_t start, end;
    const struct transplant_vma *from, *to;
};

struct walk {
    size_t from, to;
    uint64_t at;
};

/* --- pieces --- */

/* The first ordinary mapping that ends after `at`. */
static const struct transplant_vma *skip_to(const struct transplant_map *map, size_t *index,
                                            uint64_t at)
{
    while (*index < map->count &&
           (map->vma[*index].end <= at || map->vma[*index].kind == TRANSPLANT_SPECIAL))
        ++*index;
    return *index < map->count ? &map->vma[*index] : NULL;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t next_edge(const struct transplant_vma *vma, uint64_t at)
{
    if (!vma)
        return UINT64_MAX;
    return vma->start > at ? vma->start : vma->end;
}

static bool next_piece(const struct transplant *t, struct walk *walk, struct piece *out)
{
    const struct transplant_vma *from = skip_to(&t->from.map, &walk->from, walk->at);
    const struct transplant_vma *to = skip_to(&t->to.map, &walk->to, walk->at);
    if (!from && !to)
        return false;
    const uint64_t first = least(from ? from->start : UINT64_MAX, to ? to->start : UINT64_MAX);
    out->start = walk->at > first ? walk->at : first;
    out->end = walk->at = least(next_edge(from, out->start), next_edge(to, out->start));
    out->from = from && from->start <= out->start ? from : NULL;
    out->to = to && to->start <= out->start ? to : NULL;
    return true;
}

static bool is_kept(const struct piece *piece)
{
    const struct transplant_vma *a = piece->from, *b = piece->to;
    if (!a || !b || a->kind != b->kind || a->shared != b->shared)
        return false;
    if (a->kind != TRANSPLANT_FILE)
        return true;
    return !(a->shared && ((a->prot | b->prot) & PROT_WRITE)) && a->inode == b->inode &&
           a->device[0] == b->device[0] && a->device[1] == b->device[1] &&
           a->offset - a->start == b->offset - b->start;
}

/* --- the desk --- */

/* An address where neither process has a mapping. */
static uint64_t find_address(const struct transplant *t)
{
    uint64_t address = DESK_LOWEST;
    const struct transplant_map *maps[] = { &t->from.map, &t->to.map };
    size_t index[] = { 0, 0 };
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t i = 0; i < array_len(maps); i++) {
            const struct transplant_map *map = maps[i];
            while (index[i] < map->count && map->vma[index[i]].end + DESK_MARGIN <= address)
                index[i]++;
            if (index[i] < map->count &&
                map->vma[index[i]].start < address + TRANSPLANT_DESK_LEN + DESK_MARGIN) {
                address = map->vma[index[i]].end + DESK_MARGIN;
                moved = true;
            }
        }
    }
    return address;
}

enum inject_end transplant_make_desk(struct transplant *t)
{
    static const unsigned char code[] = { 0x0f, 0x05 }; /* syscall */
    const uint64_t desk = find_address(t);
    const uint64_t flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    const struct inject_order map = { SYS_mmap, { desk, TRANSPLANT_DESK_HOLD,
                                                  PROT_READ | PROT_WRITE, flags, NO_FD, 0 } };
    const struct inject_order make_code = { SYS_mprotect, { desk, TRANSPLANT_PAGE,
                                                            PROT_READ | PROT_EXEC } };
    long got = 0;
    errno = ENOMEM;
    if (desk + TRANSPLANT_DESK_LEN + DESK_MARGIN > USER_END)
        return INJECT_REFUSED;
    enum inject_end end = transplant_do(t, map, &got);
    if (end == INJECT_OK &&
        ((uint64_t)got != desk || inject_write(&t->to.at, desk, code, sizeof code) < 0))
        end = INJECT_REFUSED;
    if (end == INJECT_OK)
        end = transplant_do(t, make_code, NULL);
    if (end != INJECT_OK)
        return end;
    t->desk = desk;
    t->to.at.regs.rip = desk + sizeof code;
    return INJECT_OK;
}

/* --- the kernel's mappings --- */

static size_t specials(const struct transplant_map *map, const struct transplant_vma **out)
{
    size_t count = 0;
    for (size_t i = 0; i < map->count; i++) {
        if (map->vma[i].kind == TRANSPLANT_SPECIAL && count < SPECIALS_MAX)
            out[count++] = &map->vma[i];
    }
    return count;
}

static enum inject_end move(struct transplant *t, uint64_t from, uint64_t to, uint64_t len)
{
    const uint64_t flags = MREMAP_MAYMOVE | MREMAP_FIXED;
    return transplant_do(t, (struct inject_order){ SYS_mremap, { from, len, len, flags, to } },
                         NULL);
}

/* Move them to the desk, or from there to the addresses of the parked process. Both processes
 * have the same ones, because they run on one kernel. */
static enum inject_end move_specials(struct transplant *t, bool to_desk)
{
    const struct transplant_vma *from[SPECIALS_MAX], *to[SPECIALS_MAX];
    const size_t count = specials(&t->from.map, from);
    uint64_t hold = t->desk + TRANSPLANT_DESK_HOLD;
    bool differ = false;
    errno = ENOTSUP;
    if (specials(&t->to.map, to) != count)
        return INJECT_REFUSED;
    for (size_t i = 0; i < count; i++) {
        const uint64_t len = to[i]->end - to[i]->start;
        differ = differ || from[i]->start != to[i]->start;
        hold += len;
        if (from[i]->end - from[i]->start != len || hold > t->desk + TRANSPLANT_DESK_LEN)
            return INJECT_REFUSED;
    }
    enum inject_end end = INJECT_OK;
    hold = t->desk + TRANSPLANT_DESK_HOLD;
    for (size_t i = 0; differ && end == INJECT_OK && i < count; i++) {
        const uint64_t len = to[i]->end - to[i]->start;
        end = to_desk ? move(t, to[i]->start, hold, len) : move(t, hold, from[i]->start, len);
        hold += len;
    }
    t->moved = differ;
    return end;
}

/* --- unmapping --- */

/* Whether the range contains the desk or a mapping of the kernel. */
static bool must_stay(const struct transplant *t, uint64_t start, uint64_t end)
{
    const struct transplant_vma *all[SPECIALS_MAX];
    const size_t count = t->moved ? 0 : specials(&t->to.map, all);
    if (start < t->desk + TRANSPLANT_DESK_LEN && end > t->desk)
        return true;
    for (size_t i = 0; i < count; i++) {
        if (start < all[i]->end && end > all[i]->start)
            return true;
    }
    return false;
}

/* One call removes neighbours and the holes between them. */
static enum inject_end unmap_rest(struct transplant *t)
{
    struct walk walk = { 0 };
    struct piece piece;
    uint64_t start = 0, end = 0;
    for (bool more = true; more;) {
        more = next_piece(t, &walk, &piece);
        const bool goes = more && piece.to && !is_kept(&piece);
        if (goes && start && !must_stay(t, start, piece.end)) {
            end = piece.end;
            continue;
        }
        if (start && (goes || !more || piece.to)) {
            const struct inject_order order = { SYS_munmap, { start, end - start } };
            enum inject_end done = transplant_do(t, order, NULL);
            if (done != INJECT_OK)
                return done;
            start = 0;
        }
        if (goes) {
            start = piece.start;
            end = piece.end;
        }
    }
    return INJECT_OK;
}

/* --- mapping --- */

/* Whether a mapping is of an image file, which is the same in every box and read-only. */
static bool is_image(const struct transplant *t, const struct transplant_vma *vma)
{
    static const char *const image[] = { "/usr/", "/lib/", "/lib64/", "/bin/", "/opt/", "/etc/",
                                         "" };
    static const char deleted[] = " (deleted)";
    const char *name = transplant_name(&t->from, vma);
    const size_t tail = sizeof deleted - 1;
    if (vma->kind != TRANSPLANT_FILE || (vma->shared && (vma->prot & PROT_WRITE)) ||
        vma->name_len >= TRANSPLANT_PATH_MAX)
        return false;
    return transplant_begins(name, vma->name_len, image) && !strchr(name, '\\') &&
           (vma->name_len < tail || strcmp(name + vma->name_len - tail, deleted) != 0);
}

static enum inject_end close_image(struct transplant *t)
{
    const long fd = t->open ? t->open_fd : -1;
    t->open = NULL;
    return fd < 0 ? INJECT_OK
                  : transplant_do(t, (struct inject_order){ SYS_close, { (uint64_t)fd } }, NULL);
}

/* Open the file of a mapping in the fresh process. It stays open until another file is needed. */
static enum inject_end open_image(struct transplant *t, const struct transplant_vma *vma)
{
    const char *name = transplant_name(&t->from, vma);
    const uint64_t there = t->desk + TRANSPLANT_DESK_DATA;
    if (t->open && strcmp(name, transplant_name(&t->from, t->open)) == 0)
        return INJECT_OK;
    enum inject_end end = close_image(t);
    if (end == INJECT_OK && inject_write(&t->to.at, there, name, vma->name_len + 1) < 0)
        end = INJECT_REFUSED;
    if (end != INJECT_OK)
        return end;
    t->open = vma;
    return transplant_try(t, (struct inject_order){ SYS_openat, { (uint64_t)AT_FDCWD, there,
                                                                  O_RDONLY | O_CLOEXEC } },
                          &t->open_fd);
}

/* *out says whether the file could be mapped. */
static enum inject_end map_image(struct transplant *t, const struct piece *piece, bool *out)
{
    const struct transplant_vma *vma = piece->from;
    const uint64_t offset = vma->offset + (piece->start - vma->start);
    long got = -1;
    enum inject_end end = open_image(t, vma);
    if (end == INJECT_OK && t->open_fd >= 0)
        end = transplant_try(t, (struct inject_order){ SYS_mmap,
                                                       { piece->start, piece->end - piece->start,
                                                         vma->prot, MAP_PRIVATE | MAP_FIXED,
                                                         (uint64_t)t->open_fd, offset } }, &got);
    *out = got != -1;
    return end;
}

static enum inject_end map_memory(struct transplant *t, const struct piece *piece)
{
    const uint64_t grows = piece->from->kind == TRANSPLANT_STACK ? MAP_GROWSDOWN : 0;
    const uint64_t flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE | grows;
    return transplant_do(t, (struct inject_order){ SYS_mmap,
                                                   { piece->start, piece->end - piece->start,
                                                     piece->from->prot, flags, NO_FD, 0 } }, NULL);
}

/* The client hears of writable shared memory, because it is no longer shared. The bytes that are
 * copied have a limit, because shared memory can be larger than all memory. */
static bool may_copy_shared(struct transplant *t, const struct piece *piece)
{
    const uint64_t len = piece->end - piece->start;
    if (piece->from->prot & PROT_WRITE)
        t->report.lost_bits |= BOX_LOST_BIT(MEMORY);
    if (len > t->shared_left)
        return false;
    t->shared_left -= len;
    return true;
}

/* Map one piece of the parked process in the fresh one, and copy its content. */
static enum inject_end give_piece(struct transplant *t, const struct piece *piece)
{
    const struct transplant_vma *vma = piece->from;
    const bool kept = is_kept(piece);
    bool image = false;
    enum inject_end end = INJECT_OK;
    if (kept && vma->prot != piece->to->prot)
        end = transplant_do(t, (struct inject_order){ SYS_mprotect,
                                                      { piece->start, piece->end - piece->start,
                                                        vma->prot } }, NULL);
    if (!kept && is_image(t, vma))
        end = map_image(t, piece, &image);
    if (end == INJECT_OK && !kept && !image)
        end = map_memory(t, piece);
    if (end != INJECT_OK)
        return end;
    /* Nobody can write to a shared mapping that is kept, or that is of an image. */
    if (vma->shared && (kept || image || !may_copy_shared(t, piece)))
        return INJECT_OK;
    const struct transplant_range range = {
        .start = piece->start, .end = piece->end, .prot = vma->prot, .kept = kept,
        .all = !kept && !image && vma->kind == TRANSPLANT_FILE, .blank = !kept && !image,
    };
    return transplant_copy(t, &range);
}

enum inject_end transplant_give_memory(struct transplant *t)
{
    struct walk walk = { 0 };
    struct piece piece;
    enum inject_end end = move_specials(t, true);
    if (end == INJECT_OK)
        end = unmap_rest(t);
    if (end == INJECT_OK && t->moved)
        end = move_specials(t, false);
    while (end == INJECT_OK && next_piece(t, &walk, &piece)) {
        if (piece.from)
            end = give_piece(t, &piece);
    }
    return end == INJECT_OK ? close_image(t) : end;
}

#endif
