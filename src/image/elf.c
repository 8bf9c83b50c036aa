/* Program headers of an ELF file, for its loader. Reads the head, at most 64 program headers and
 * one text, each at an offset that the file names and pread checks against the end of the file. */
#include "image/elf.h"

#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define HEADERS_MAX 64
#define LOADER_MAX 255

struct shape {
    uint64_t at; /* of the program headers */
    unsigned size, count;
    bool is_64;
};

static bool read_head(int fd, struct shape *out)
{
    union {
        unsigned char ident[EI_NIDENT];
        Elf32_Ehdr small;
        Elf64_Ehdr large;
    } head;
    ssize_t n = pread(fd, &head, sizeof head, 0);
    if (n < (ssize_t)sizeof head.small || memcmp(head.ident, ELFMAG, SELFMAG) != 0 ||
        head.ident[EI_DATA] != ELFDATA2LSB)
        return false;
    if (head.ident[EI_CLASS] == ELFCLASS64 && n == (ssize_t)sizeof head)
        *out = (struct shape){ head.large.e_phoff, head.large.e_phentsize, head.large.e_phnum,
                               true };
    else if (head.ident[EI_CLASS] == ELFCLASS32)
        *out = (struct shape){ head.small.e_phoff, head.small.e_phentsize, head.small.e_phnum,
                               false };
    else
        return false;
    return true;
}

/* Where the text of PT_INTERP is; false if this header is another or cannot be read. */
static bool read_header(int fd, const struct shape *shape, unsigned i, uint64_t *out_at,
                        uint64_t *out_len)
{
    union {
        Elf32_Phdr small;
        Elf64_Phdr large;
    } header;
    size_t size = shape->is_64 ? sizeof header.large : sizeof header.small;
    uint64_t at;
    if (shape->size < size || __builtin_add_overflow(shape->at, (uint64_t)i * shape->size, &at) ||
        at > INT64_MAX || pread(fd, &header, size, (off_t)at) != (ssize_t)size)
        return false;
    *out_at = shape->is_64 ? header.large.p_offset : header.small.p_offset;
    *out_len = shape->is_64 ? header.large.p_filesz : header.small.p_filesz;
    return (shape->is_64 ? header.large.p_type : header.small.p_type) == PT_INTERP;
}

static bool is_path(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (text[i] <= ' ' || text[i] >= 127)
            return false;
    return len > 1 && text[0] == '/';
}

bool image_elf_loader(int fd, char *out, size_t room)
{
    struct shape shape;
    uint64_t at, len;
    char text[LOADER_MAX + 1];
    out[0] = 0;
    if (!read_head(fd, &shape))
        return false;
    for (unsigned i = 0; i < shape.count && i < HEADERS_MAX; i++) {
        if (!read_header(fd, &shape, i, &at, &len))
            continue;
        if (len == 0 || len > sizeof text || at > INT64_MAX ||
            pread(fd, text, len, (off_t)at) != (ssize_t)len || text[len - 1] != 0)
            return true;
        if (strlen(text) < room && is_path(text, strlen(text)))
            snprintf(out, room, "%s", text);
        return true;
    }
    return true;
}
