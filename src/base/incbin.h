/* A file of the source tree in the program's read-only data, from `symbol` to `symbol_end`, where
 * a NUL stands. The makefile must name it as what the object depends on. */
#ifndef BASE_INCBIN_H
#define BASE_INCBIN_H

#define EMBED(symbol, file)                              \
    extern const char symbol[], symbol##_end[];          \
    __asm__(".section .rodata\n.balign 16\n"             \
            ".globl " #symbol "\n" #symbol ":\n"         \
            ".incbin \"" file "\"\n"                     \
            ".globl " #symbol "_end\n" #symbol "_end:\n" \
            ".byte 0\n.previous\n")

#endif
