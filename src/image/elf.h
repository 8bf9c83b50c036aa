/* The dynamic loader that a program names. The file is hostile: reads are few and capped. */
#ifndef IMAGE_ELF_H
#define IMAGE_ELF_H

#include <stdbool.h>
#include <stddef.h>

/* The path in PT_INTERP, absolute and of printable characters; "" for a static program and for what
 * is no ELF file of 32 or 64 bits, little-endian. True if it is an ELF file. */
bool image_elf_loader(int fd, char *out, size_t room);

#endif
