/* The heap that grows by brk. Where it begins is fixed when a program starts: two forks
 * of one zygote have it at the same place, and then it is set as the parked one has it.
 * Else the parked one's heap becomes plain memory of the fresh process, whose own is
 * empty, somewhere else. libc keeps the end of the heap in a word of its own (__curbrk),
 * takes whatever the kernel answers for it, and would use memory that is not there: that
 * word must be changed.
 *
 * Seen from glibc's malloc: if the kernel's heap lies above the word, it is as if somebody
 * else had moved the end up: the new part is used, the old one stays. If it lies below,
 * the word is put a page too high: nothing can be given back there, asking for more fails
 * (the old heap is in the way), and malloc goes on with mappings. */
#include "box/fork/transplant_int.h"

#if INJECT_HERE

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#define HEADERS_MAX 32
#define DYNAMIC_MAX 128

/* What is needed of the library as it lies in memory; every number is an attacker's. */
struct library {
    uint64_t base, dynamic, dynamic_len, symbols, strings, strings_len;
};

static bool is_libc(const struct transplant_side *side, const struct transplant_vma *vma)
{
    static const char *const names[] = { "libc.so.", "libc-2.", "" };
    const char *name = transplant_name(side, vma);
    const char *slash = memrchr(name, '/', vma->name_len);
    return slash && vma->offset == 0 &&
           transplant_begins(slash + 1, vma->name_len - (size_t)(slash + 1 - name), names);
}

static int find_dynamic(const struct transplant_side *side, struct library *library)
{
    Elf64_Ehdr head;
    Elf64_Phdr part[HEADERS_MAX];
    if (transplant_read(side, library->base, &head, sizeof head) < 0)
        return -1;
    if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_phentsize != sizeof part[0] ||
        head.e_phnum > HEADERS_MAX ||
        transplant_read(side, library->base + head.e_phoff, part,
                        head.e_phnum * sizeof part[0]) < 0)
        return -1;
    for (size_t i = 0; i < head.e_phnum; i++) {
        if (part[i].p_type == PT_DYNAMIC) {
            library->dynamic = library->base + part[i].p_vaddr;
            library->dynamic_len = part[i].p_memsz;
        }
    }
    return library->dynamic ? 0 : -1;
}

/* The loader has made addresses of what were offsets, or has left them. */
static int find_tables(const struct transplant_side *side, struct library *library)
{
    Elf64_Dyn entry[DYNAMIC_MAX];
    size_t count = library->dynamic_len / sizeof entry[0];
    count = count < DYNAMIC_MAX ? count : DYNAMIC_MAX;
    if (transplant_read(side, library->dynamic, entry, count * sizeof entry[0]) < 0)
        return -1;
    for (size_t i = 0; i < count && entry[i].d_tag != DT_NULL; i++) {
        const uint64_t value = entry[i].d_un.d_val;
        const uint64_t address = value < library->base ? library->base + value : value;
        if (entry[i].d_tag == DT_SYMTAB)
            library->symbols = address;
        else if (entry[i].d_tag == DT_STRTAB)
            library->strings = address;
        else if (entry[i].d_tag == DT_STRSZ)
            library->strings_len = value;
    }
    return library->symbols && library->strings > library->symbols ? 0 : -1;
}

/* Names lie behind the symbols. 0: it is not there. */
static uint64_t find_symbol(struct transplant *t, const struct library *library, const char *name)
{
    const size_t len = library->strings_len, table_len = library->strings - library->symbols;
    const size_t name_len = strlen(name) + 1;
    char *strings = (char *)t->bytes[0];
    if (len > sizeof t->bytes[0] || table_len > sizeof t->bytes[1] ||
        transplant_read(&t->from, library->strings, strings, len) < 0 ||
        transplant_read(&t->from, library->symbols, t->bytes[1], table_len) < 0)
        return 0;
    for (size_t at = 0; at + sizeof(Elf64_Sym) <= table_len; at += sizeof(Elf64_Sym)) {
        Elf64_Sym symbol;
        memcpy(&symbol, t->bytes[1] + at, sizeof symbol);
        if (symbol.st_name < len && len - symbol.st_name >= name_len && symbol.st_value &&
            memcmp(strings + symbol.st_name, name, name_len) == 0)
            return library->base + symbol.st_value;
    }
    return 0;
}

static uint64_t find_word(struct transplant *t)
{
    const struct transplant_map *map = &t->from.map;
    for (size_t i = 0; i < map->count; i++) {
        struct library library = { .base = map->vma[i].start };
        if (is_libc(&t->from, &map->vma[i]) && find_dynamic(&t->from, &library) == 0 &&
            find_tables(&t->from, &library) == 0)
            return find_symbol(t, &library, "__curbrk");
    }
    return 0;
}

enum inject_end transplant_set_heap(struct transplant *t)
{
    const bool same = t->from.start_brk == t->to.start_brk;
    const uint64_t wanted = same ? t->from.brk : t->to.start_brk;
    t->heap_word = same ? 0 : find_word(t);
    errno = ENOTSUP; /* another libc */
    if (!same && !t->heap_word)
        return INJECT_REFUSED;
    long got = 0;
    t->changed = true;
    enum inject_end end = transplant_do(t, (struct inject_order){ SYS_brk, { wanted } }, &got);
    if (end != INJECT_OK)
        return end;
    errno = ENOMEM;
    t->to.brk = (uint64_t)got;
    return t->to.brk == wanted ? INJECT_OK : INJECT_REFUSED;
}

enum inject_end transplant_tell_heap(struct transplant *t)
{
    uint64_t word = 0;
    if (!t->heap_word)
        return INJECT_OK;
    if (inject_read(&t->to.at, t->heap_word, &word, sizeof word) < 0)
        return INJECT_REFUSED;
    if (word == 0) /* it has not asked yet */
        return INJECT_OK;
    word = t->to.brk > word ? t->to.brk : word + TRANSPLANT_PAGE;
    return inject_write(&t->to.at, t->heap_word, &word, sizeof word) < 0 ? INJECT_REFUSED
                                                                         : INJECT_OK;
}

#endif
