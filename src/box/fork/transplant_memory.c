/* Mappings: those of the fresh process become those of the parked one. What both have of
 * the same file, or both have anonymously, is kept (two forks of one zygote: nearly all);
 * the rest goes, and the parked one's is mapped. Image files are opened anew by name;
 * what else was mapped from a file, or shared, becomes plain memory with its content.
 *
 * Calls are made from a page that is ours alone (the desk), because the code that the
 * fresh process waits in is not spared. Data of the kernel that is mapped (vdso) cannot
 * be made, but moved: over the desk to where the parked one has it. */
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
#define DESK_MARGIN (UINT64_C(16) << 20) /* from every mapping: stacks and heaps grow */
#define USER_END (UINT64_C(1) << 47)
#define SPECIALS_MAX 8
#define OPEN (PROT_READ | PROT_WRITE)
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

/* The first ordinary mapping that ends behind the place reached. */
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

/* A place where neither process has anything. */
static uint64_t find_place(const struct transplant *t)
{
    uint64_t place = DESK_LOWEST;
    const struct transplant_map *maps[] = { &t->from.map, &t->to.map };
    size_t index[] = { 0, 0 };
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t i = 0; i < array_len(maps); i++) {
            const struct transplant_map *map = maps[i];
            while (index[i] < map->count && map->vma[index[i]].end + DESK_MARGIN <= place)
                index[i]++;
            if (index[i] < map->count &&
                map->vma[index[i]].start < place + TRANSPLANT_DESK_LEN + DESK_MARGIN) {
                place = map->vma[index[i]].end + DESK_MARGIN;
                moved = true;
            }
        }
    }
    return place;
}

enum inject_end transplant_set_desk(struct transplant *t)
{
    static const unsigned char code[] = { 0x0f, 0x05 }; /* syscall */
    if (transplant_read_map(&t->to) < 0)
        return INJECT_REFUSED;
    const uint64_t desk = find_place(t);
    errno = ENOMEM;
    if (desk + TRANSPLANT_DESK_LEN + DESK_MARGIN > USER_END)
        return INJECT_REFUSED;
    const uint64_t flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    const struct inject_order map = { SYS_mmap, { desk, TRANSPLANT_DESK_HOLD,
                                                  PROT_READ | PROT_WRITE, flags, NO_FD, 0 } };
    const struct inject_order make_code = { SYS_mprotect, { desk, TRANSPLANT_PAGE,
                                                            PROT_READ | PROT_EXEC } };
    long got = 0;
    t->changed = true;
    enum inject_end end = transplant_do(t, map, &got);
    if (end == INJECT_OK && ((uint64_t)got != desk || transplant_write_loop(t, desk) < 0 ||
                             inject_write(&t->to.at, desk, code, sizeof code) < 0))
        end = INJECT_REFUSED;
    if (end == INJECT_OK)
        end = transplant_do(t, make_code, NULL);
    if (end != INJECT_OK)
        return end;
    t->desk = desk;
    t->to.at.regs.rip = desk + sizeof code;
    return INJECT_OK;
}

/* --- what the kernel has mapped --- */

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

/* To the desk, or from there to where the parked process has them. Both processes must
 * have the same ones: it is one kernel. */
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

/* --- what goes --- */

/* Whether something lies there that must stay: the desk, the kernel's. */
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

/* Holes between are no matter: few calls. */
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

/* --- what comes --- */

/* Whether the file is part of the image, which is the same in every box and read-only. */
static bool in_image(const struct transplant *t, const struct transplant_vma *vma)
{
    static const char *const image[] = { "/usr/", "/lib/", "/lib64/", "/bin/", "/opt/", "/etc/",
                                         "" };
    static const char deleted[] = " (deleted)";
    const char *name = transplant_name(&t->from, vma);
    const size_t tail = sizeof deleted - 1;
    return vma->name_len < TRANSPLANT_PATH_MAX &&
           transplant_begins(name, vma->name_len, image) && !memchr(name, '\\', vma->name_len) &&
           (vma->name_len < tail || memcmp(name + vma->name_len - tail, deleted, tail) != 0);
}

static enum inject_end close_image(struct transplant *t)
{
    if (!t->open)
        return INJECT_OK;
    t->open = NULL;
    return transplant_queue(t, (struct inject_order){ SYS_close, { TRANSPLANT_LAST_FILE } },
                            TRANSPLANT_WHATEVER);
}

/* The file of a mapping, open in the fresh process until one of another file comes. */
static enum inject_end open_image(struct transplant *t, const struct transplant_vma *vma)
{
    const char *name = transplant_name(&t->from, vma);
    if (t->open && vma->name_len == t->open->name_len &&
        memcmp(name, transplant_name(&t->from, t->open), vma->name_len) == 0)
        return INJECT_OK;
    uint64_t there = 0;
    enum inject_end end = close_image(t);
    if (end == INJECT_OK)
        end = transplant_queue_name(t, name, vma->name_len, &there);
    if (end != INJECT_OK)
        return end;
    t->open = vma;
    return transplant_queue(t, (struct inject_order){ SYS_openat, { (uint64_t)AT_FDCWD, there,
                                                                    O_RDONLY | O_CLOEXEC } },
                            TRANSPLANT_WHATEVER);
}

/* What will be written is made writable first. */
static uint64_t prot_now(const struct transplant_vma *vma)
{
    return vma->opened ? vma->prot | OPEN : vma->prot;
}

static enum inject_end map_image(struct transplant *t, const struct piece *piece)
{
    const struct transplant_vma *vma = piece->from;
    const uint64_t offset = vma->offset + (piece->start - vma->start);
    enum inject_end end = open_image(t, vma);
    if (end != INJECT_OK)
        return end;
    return transplant_queue(t, (struct inject_order){ SYS_mmap,
                                                      { piece->start, piece->end - piece->start,
                                                        prot_now(vma), MAP_PRIVATE | MAP_FIXED,
                                                        TRANSPLANT_LAST_FILE, offset } },
                            (int32_t)(vma - t->from.map.vma));
}

static struct inject_order map_memory(const struct piece *piece)
{
    const uint64_t grows = piece->from->kind == TRANSPLANT_STACK ? MAP_GROWSDOWN : 0;
    const uint64_t flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE | grows;
    return (struct inject_order){ SYS_mmap, { piece->start, piece->end - piece->start,
                                              prot_now(piece->from), flags, NO_FD, 0 } };
}

static struct inject_order protect(const struct piece *piece)
{
    return (struct inject_order){ SYS_mprotect, { piece->start, piece->end - piece->start,
                                                  piece->from->prot } };
}

static bool is_image(const struct transplant *t, const struct transplant_vma *vma)
{
    return vma->kind == TRANSPLANT_FILE && !vma->failed &&
           !(vma->shared && (vma->prot & PROT_WRITE)) && in_image(t, vma);
}

static enum inject_end map_piece(struct transplant *t, const struct piece *piece)
{
    struct transplant_vma *vma = &t->from.map.vma[piece->from - t->from.map.vma];
    if (is_kept(piece))
        return vma->prot == piece->to->prot ? INJECT_OK
                                            : transplant_queue(t, protect(piece), TRANSPLANT_MUST);
    const bool image = is_image(t, vma);
    if ((vma->prot & OPEN) != OPEN && !vma->shared && (vma->kind != TRANSPLANT_FILE || image) &&
        transplant_has_own(t, piece->start, piece->end))
        vma->opened = true;
    return image ? map_image(t, piece)
                 : transplant_queue(t, map_memory(piece), TRANSPLANT_MUST);
}

/* What the code has shared with others is told, if it can be written; how much of it is
 * copied has an end, because it may be larger than all memory. */
static bool may_copy_shared(struct transplant *t, const struct piece *piece)
{
    const uint64_t len = piece->end - piece->start;
    if (piece->from->prot & PROT_WRITE)
        transplant_lose(t, BOX_LOST_BIT(MEMORY), -1, transplant_name(&t->from, piece->from),
                        piece->from->name_len);
    if (len > t->shared_left)
        return false;
    t->shared_left -= len;
    return true;
}

static enum inject_end fill_piece(struct transplant *t, const struct piece *piece)
{
    const struct transplant_vma *vma = piece->from;
    const bool kept = is_kept(piece), image = is_image(t, vma);
    const struct transplant_range range = {
        .start = piece->start, .end = piece->end, .prot = vma->prot, .kept = kept,
        .all = !kept && vma->kind == TRANSPLANT_FILE && !image, .opened = !kept && vma->opened,
        .blank = !kept && !image,
    };
    if (vma->shared && (kept || image))
        return INJECT_OK; /* nobody can write to it */
    if (!kept && vma->failed) {
        enum inject_end end = transplant_do(t, map_memory(piece), NULL);
        if (end != INJECT_OK)
            return end;
    }
    if (vma->shared && !may_copy_shared(t, piece))
        return INJECT_OK;
    return transplant_copy(t, &range);
}

static enum inject_end close_piece(struct transplant *t, const struct piece *piece)
{
    return piece->from->opened ? transplant_queue(t, protect(piece), TRANSPLANT_MUST) : INJECT_OK;
}

static enum inject_end for_pieces(struct transplant *t,
                                  enum inject_end (*part)(struct transplant *,
                                                          const struct piece *))
{
    struct walk walk = { 0 };
    struct piece piece;
    enum inject_end end = INJECT_OK;
    while (end == INJECT_OK && next_piece(t, &walk, &piece)) {
        if (piece.from)
            end = part(t, &piece);
    }
    if (end == INJECT_OK)
        end = close_image(t);
    return end == INJECT_OK ? transplant_flush(t) : end;
}

enum inject_end transplant_give_memory(struct transplant *t)
{
    enum inject_end end = move_specials(t, true);
    if (end == INJECT_OK)
        end = unmap_rest(t);
    if (end == INJECT_OK && t->moved)
        end = move_specials(t, false);
    if (end == INJECT_OK)
        end = for_pieces(t, map_piece);
    if (end == INJECT_OK)
        end = for_pieces(t, fill_piece);
    return end == INJECT_OK ? for_pieces(t, close_piece) : end;
}

#endif
