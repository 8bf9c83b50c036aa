/* The broker and init programs, built beforehand, placed in cupel's read-only
 * data: they are exec'd from sealed memory files and need no installed path. */
#include "box/host/programs.h"

#define EMBED(symbol, file)                            \
    __asm__(".section .rodata\n.balign 16\n"           \
            ".globl " #symbol "\n" #symbol ":\n"       \
            ".incbin \"" file "\"\n"                   \
            ".globl " #symbol "_end\n" #symbol "_end:\n" \
            ".byte 0\n.previous\n")

EMBED(box_embed_broker, BUILD_DIR "/broker");
EMBED(box_embed_init, BUILD_DIR "/init");
