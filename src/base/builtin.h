/* A file of the source tree built into the program's read-only data, from `symbol` to `symbol_end`,
 * where a NUL stands. The makefile must list the file as a dependency of the object. */
#ifndef BASE_BUILTIN_H
#define BASE_BUILTIN_H

#define BUILTIN(symbol, file)                              \
    extern const char symbol[], symbol##_end[];          \
    __asm__(".section .rodata\n.balign 16\n"             \
            ".globl " #symbol "\n" #symbol ":\n"         \
            ".incbin \"" file "\"\n"                     \
            ".globl " #symbol "_end\n" #symbol "_end:\n" \
            ".byte 0\n.previous\n")

#endif
