/* The processor's instruction sets, asked of the processor itself: the host's /proc/cpuinfo can
 * take 10 ms to open. Only flags by which programs choose code; whichever process runs system.c;
 * no heap. */
#include "box/inside/system_flags.h"

#include <stdint.h>
#include <string.h>

#include "base/attr.h"

static size_t append(char *out, size_t len, size_t room, const char *name)
{
    const size_t more = strlen(name);
    if (len + more + 2 > room)
        return len;
    if (len)
        out[len++] = ' ';
    memcpy(out + len, name, more + 1);
    return len + more;
}

#if defined(__x86_64__)

#include <cpuid.h>

enum reg { A, B, C, D };
enum leaf { BASIC, MORE, AMD, LEAVES };
static const uint32_t numbers[LEAVES] = { 1, 7, 0x80000001u };
/* State that the kernel must save for the flag to be of use (XCR0). */
#define YMM 0x6u
#define ZMM 0xe6u

static const struct {
    enum leaf leaf;
    enum reg reg;
    unsigned bit;
    uint32_t state;
    const char *name;
} rows[] = {
    { BASIC, D, 0, 0, "fpu" },          { BASIC, D, 4, 0, "tsc" },
    { BASIC, D, 8, 0, "cx8" },          { BASIC, D, 15, 0, "cmov" },
    { BASIC, D, 19, 0, "clflush" },     { BASIC, D, 23, 0, "mmx" },
    { BASIC, D, 24, 0, "fxsr" },        { BASIC, D, 25, 0, "sse" },
    { BASIC, D, 26, 0, "sse2" },        { BASIC, D, 28, 0, "ht" },
    { AMD, D, 11, 0, "syscall" },       { AMD, D, 20, 0, "nx" },
    { AMD, D, 27, 0, "rdtscp" },        { AMD, D, 29, 0, "lm" },
    { BASIC, C, 0, 0, "pni" },          { BASIC, C, 1, 0, "pclmulqdq" },
    { BASIC, C, 9, 0, "ssse3" },        { BASIC, C, 12, YMM, "fma" },
    { BASIC, C, 13, 0, "cx16" },        { BASIC, C, 19, 0, "sse4_1" },
    { BASIC, C, 20, 0, "sse4_2" },      { BASIC, C, 22, 0, "movbe" },
    { BASIC, C, 23, 0, "popcnt" },      { BASIC, C, 25, 0, "aes" },
    { BASIC, C, 26, 0, "xsave" },       { BASIC, C, 28, YMM, "avx" },
    { BASIC, C, 29, YMM, "f16c" },      { BASIC, C, 30, 0, "rdrand" },
    { AMD, C, 0, 0, "lahf_lm" },        { AMD, C, 5, 0, "abm" },
    { AMD, C, 6, 0, "sse4a" },          { AMD, C, 8, 0, "3dnowprefetch" },
    { MORE, B, 3, 0, "bmi1" },          { MORE, B, 5, YMM, "avx2" },
    { MORE, B, 8, 0, "bmi2" },          { MORE, B, 9, 0, "erms" },
    { MORE, B, 16, ZMM, "avx512f" },    { MORE, B, 17, ZMM, "avx512dq" },
    { MORE, B, 18, 0, "rdseed" },       { MORE, B, 19, 0, "adx" },
    { MORE, B, 21, ZMM, "avx512ifma" }, { MORE, B, 23, 0, "clflushopt" },
    { MORE, B, 24, 0, "clwb" },         { MORE, B, 28, ZMM, "avx512cd" },
    { MORE, B, 29, 0, "sha_ni" },       { MORE, B, 30, ZMM, "avx512bw" },
    { MORE, B, 31, ZMM, "avx512vl" },   { MORE, C, 1, ZMM, "avx512vbmi" },
    { MORE, C, 6, ZMM, "avx512_vbmi2" }, { MORE, C, 8, 0, "gfni" },
    { MORE, C, 9, YMM, "vaes" },        { MORE, C, 10, YMM, "vpclmulqdq" },
    { MORE, C, 11, ZMM, "avx512_vnni" }, { MORE, C, 12, ZMM, "avx512_bitalg" },
    { MORE, C, 14, ZMM, "avx512_vpopcntdq" }, { MORE, D, 4, 0, "fsrm" },
    { MORE, D, 23, ZMM, "avx512_fp16" },
};

/* The states that the kernel saves; 0 without xsave. */
static uint32_t saved_states(uint32_t basic_c)
{
    uint32_t low = 0, high = 0;
    if (basic_c & bit_OSXSAVE)
        __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

void system_flags(char *out, size_t room)
{
    /* Each question leaves a virtual machine: ask once for a leaf. */
    uint32_t regs[LEAVES][4] = { 0 };
    const unsigned last = __get_cpuid_max(0, NULL);
    for (int i = 0; i < LEAVES; i++) {
        if (i == AMD || numbers[i] <= last)
            __cpuid_count(numbers[i], 0, regs[i][A], regs[i][B], regs[i][C], regs[i][D]);
    }
    const uint32_t states = saved_states(regs[BASIC][C]);
    size_t len = 0;
    out[0] = 0;
    for (size_t i = 0; i < array_len(rows); i++) {
        if (regs[rows[i].leaf][rows[i].reg] >> rows[i].bit & 1 &&
            (states & rows[i].state) == rows[i].state)
            len = append(out, len, room, rows[i].name);
    }
}

#elif defined(__aarch64__)

#include <sys/auxv.h>

void system_flags(char *out, size_t room)
{
    /* The bits of AT_HWCAP, in order. */
    static const char *const names[] = {
        "fp", "asimd", "evtstrm", "aes", "pmull", "sha1", "sha2", "crc32", "atomics", "fphp",
        "asimdhp", "cpuid", "asimdrdm", "jscvt", "fcma", "lrcpc", "dcpop", "sha3", "sm3", "sm4",
        "asimddp", "sha512", "sve", "asimdfhm", "dit", "uscat", "ilrcpc", "flagm", "ssbs", "sb",
        "paca", "pacg",
    };
    const unsigned long bits = getauxval(AT_HWCAP);
    size_t len = 0;
    out[0] = 0;
    for (size_t i = 0; i < array_len(names); i++) {
        if (bits >> i & 1)
            len = append(out, len, room, names[i]);
    }
}

#endif
