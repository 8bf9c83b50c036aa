/* Data of policyc: the architectures, the words of the policy language, and a policy in memory.
 * Only policyc.c includes it. */
#ifndef DEV_POLICYC_H
#define DEV_POLICYC_H

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

#define array_len(a) (sizeof(a) / sizeof((a)[0]))

/* ---- The architectures ---- */
/* All are 64-bit and little-endian, with the same values below. A policy lists the calls of x86_64;
 * calls that another architecture lacks are left out there. */
struct arch {
    const char *name;
    uint32_t audit, scmp;
    /* Numbers of another convention that this `audit` covers as well (x32); 0, 0: none. */
    uint32_t foreign_first, foreign_last;
};
static const struct arch archs[] = {
    { "x86_64", AUDIT_ARCH_X86_64, SCMP_ARCH_X86_64, 0x40000000u, 0x7fffffffu },
    { "aarch64", AUDIT_ARCH_AARCH64, SCMP_ARCH_AARCH64, 0, 0 },
};
static const struct arch *arch = &archs[0];
#define ARG_LOW(n) (uint32_t)(offsetof(struct seccomp_data, args) + 8 * (n))
#define ARG_HIGH(n) (ARG_LOW(n) + 4)

struct named {
    const char *name;
    uint64_t value;
};

/* Calls that the libseccomp of Debian 12 does not know. */
static const struct named new_calls[] = {
    { "statmount", 457 },        { "listmount", 458 },        { "lsm_get_self_attr", 459 },
    { "lsm_set_self_attr", 460 }, { "lsm_list_modules", 461 }, { "mseal", 462 },
    { "setxattrat", 463 },       { "getxattrat", 464 },       { "listxattrat", 465 },
    { "removexattrat", 466 },    { "open_tree_attr", 467 },   { "file_getattr", 468 },
    { "file_setattr", 469 },     { "listns", 470 },
};

/* ---- Words of the language ---- */
#define N(id) { #id, (uint64_t)(id) }
static const struct named values[] = {
    { "INT", 0xffffffff }, /* the bits that the kernel reads of an int */
    { "SHARED_ANONYMOUS", MAP_SHARED | MAP_ANONYMOUS }, /* MAP_SHARED_VALIDATE has both bits, too */
    /* The numbers from WARDEN_FIRST on (src/box/proto/warden.h) as processes, and as groups. */
    { "PARKED_MASK", 0xfffffe00 }, { "PARKED", 0x7e00 }, { "PARKED_GROUP", 0xffff8000 },
    N(AF_UNIX), N(AF_INET), N(AF_INET6), N(AF_NETLINK), N(IPPROTO_TCP), N(IPPROTO_UDP),
    N(IPPROTO_UDPLITE), N(IPPROTO_SCTP), { "IPPROTO_MPTCP", 262 },
    N(SOCK_RAW), N(SOCK_RDM), N(SOCK_DCCP), N(SOCK_PACKET), N(F_SETLEASE), N(F_NOTIFY),
    N(F_SETPIPE_SZ), N(SOL_SOCKET), N(SO_LINGER),
    N(F_SETOWN), N(F_SETOWN_EX), N(FIOSETOWN), N(SIOCSPGRP), N(PRIO_PROCESS), N(SIGKILL),
    N(SIGABRT), N(TIOCSTI), N(TIOCLINUX), N(TIOCSETD), N(FIONREAD), N(FIONBIO), N(TCGETS),
    N(SECCOMP_IOCTL_NOTIF_RECV), N(SECCOMP_IOCTL_NOTIF_SEND), N(PROT_EXEC),
    { "PROT_WRITE_EXEC", PROT_WRITE | PROT_EXEC }, N(MADV_MERGEABLE),
    N(MAP_HUGETLB), { "MFD_HUGETLB", 4 },
    { "MADV_COLLAPSE", 25 }, N(POSIX_FADV_DONTNEED),
    { "FS_IOC_FIEMAP", 0xc020660b },
    N(S_ISUID), N(S_ISGID), N(O_CREAT), { "O_TMPFILE", 020000000 }, /* without O_DIRECTORY */
    N(MADV_DONTFORK), N(MADV_WIPEONFORK),
    N(SCHED_OTHER), N(SCHED_BATCH), N(SCHED_IDLE), N(SCHED_FIFO), N(SCHED_RR),
    N(CLONE_NEWNS), N(CLONE_NEWCGROUP), N(CLONE_NEWUTS), N(CLONE_NEWIPC), N(CLONE_NEWUSER),
    N(CLONE_NEWPID), N(CLONE_NEWNET),
    N(SECCOMP_SET_MODE_FILTER),
    N(PR_SET_MM), N(PR_SET_NAME), N(PR_GET_NAME), N(PR_SET_VMA), N(PR_SET_PDEATHSIG),
    N(PR_GET_PDEATHSIG), N(PR_SET_CHILD_SUBREAPER), N(PR_GET_CHILD_SUBREAPER), N(PR_GET_DUMPABLE),
    N(PR_SET_DUMPABLE), N(PR_GET_KEEPCAPS), N(PR_GET_SECUREBITS), N(PR_CAPBSET_READ),
    N(PR_CAP_AMBIENT),
    N(PR_SET_NO_NEW_PRIVS), N(PR_GET_NO_NEW_PRIVS), N(PR_GET_SECCOMP), N(PR_SET_THP_DISABLE),
    N(PR_GET_THP_DISABLE), N(PR_SET_TIMERSLACK), N(PR_GET_TIMERSLACK), N(PR_GET_TID_ADDRESS),
    N(PR_GET_TSC), N(PR_GET_SPECULATION_CTRL), { "PR_GET_AUXV", 0x41555856 },
};
static const struct named errors[] = { N(EPERM), N(ENOSYS), N(EINVAL), N(EAFNOSUPPORT),
                                       N(EPROTONOSUPPORT) };
#undef N

enum verdict { ALLOW, QUIET, SKIP, LOUD, TRACE, KILL };
static const struct {
    const char *word;
    uint32_t action;
    bool has_error;
} verdicts[] = {
    [ALLOW] = { "allow", SECCOMP_RET_ALLOW, false },
    [QUIET] = { "quiet", SECCOMP_RET_ERRNO, true },
    [SKIP] = { "skip", SECCOMP_RET_ERRNO, false }, /* errno 0: the call seems done */
    [LOUD] = { "loud", SECCOMP_RET_USER_NOTIF, true },
    [TRACE] = { "trace", SECCOMP_RET_TRACE, false },
    [KILL] = { "kill", SECCOMP_RET_KILL_PROCESS, false },
};

/* ---- Lookup ---- */
#define CALLS_MAX 640 /* numbers tried; the newest call is 470 */

__attribute__((format(printf, 1, 2), noreturn)) static void fail(const char *fmt, ...);

static const struct named *find(const struct named *table, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(table[i].name, name))
            return &table[i];
    return NULL;
}

static bool read_number(const char *word, uint64_t *out)
{
    char *end;
    errno = 0;
    if (*word < '0' || *word > '9')
        return false;
    *out = strtoull(word, &end, 0);
    return !*end && !errno;
}

static uint64_t read_value(const char *word)
{
    uint64_t value;
    if (read_number(word, &value))
        return value;
    const struct named *known = find(values, array_len(values), word);
    if (!known)
        fail("know no value '%s'", word);
    return known->value;
}

/* The number, or -1 if only other architectures have this call. */
static int read_call(const char *word)
{
    uint64_t nr;
    if (!read_number(word, &nr)) {
        int known = seccomp_syscall_resolve_name_arch(arch->scmp, word);
        const struct named *young = find(new_calls, array_len(new_calls), word);
        if (known < 0 && !young && arch != &archs[0] &&
            seccomp_syscall_resolve_name_arch(archs[0].scmp, word) >= 0)
            return -1;
        if (known < 0 && !young)
            fail("know no system call '%s' on this architecture", word);
        nr = known >= 0 ? (uint64_t)known : young->value;
    }
    if (nr >= CALLS_MAX)
        fail("number '%s' is not below %d", word, CALLS_MAX);
    return (int)nr;
}

static unsigned read_arg(const char *word)
{
    if (word[0] != 'a' || word[1] < '0' || word[1] > '5' || word[2])
        fail("argument '%s' is none of a0 to a5", word);
    return (unsigned)(word[1] - '0');
}

/* ---- A policy in memory ---- */
#define RULES_MAX 40
#define TESTS_MAX 2
#define WORDS_MAX 16
#define POLICIES_MAX 16

struct answer {
    enum verdict verdict;
    int error;
};

struct test {
    unsigned arg;
    bool masked;
    uint64_t mask, value;
};

struct rule {
    struct answer answer;
    struct test tests[TESTS_MAX];
    size_t count;
};

static bool same_answer(struct answer a, struct answer b)
{
    return a.verdict == b.verdict && a.error == b.error;
}

static bool same_tests(const struct rule *a, const struct rule *b)
{
    bool same = a->count == b->count;
    for (size_t i = 0; same && i < a->count; i++)
        same = a->tests[i].arg == b->tests[i].arg && a->tests[i].mask == b->tests[i].mask &&
               a->tests[i].value == b->tests[i].value;
    return same;
}

struct call {
    struct rule rules[RULES_MAX];
    size_t count;
    struct answer last;
    int first_line, last_line; /* 0: none yet */
};

struct policy {
    char name[64];
    char path[512];
    struct answer fallback;
    int fallback_line;
    char beneath[64]; /* the included policy, or "" */
    int beneath_line;
    bool joined;
    struct call calls[CALLS_MAX];
};

#endif
