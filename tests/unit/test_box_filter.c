/* The system call filters, run on every number and every rule. The first tests hold what the policy
 * must say, by hand; the later ones walk the generated tables: a new rule needs no new test. */
#include "box/wall/filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/attr.h"
#include "check.h"
#include "filter_check.h"

TEST(box_filter_allows_what_interpreters_need)
{
    static const char *const names[] = {
        "read", "write", "openat", "mmap", "mprotect", "munmap", "brk", "execve", "fork", "vfork",
        "exit_group", "wait4", "futex", "rseq", "getrandom", "epoll_wait", "statx", "newfstatat",
        "setfsuid", "sendfile", "mknodat", "mq_open", "memfd_create", "futex_wait", "mseal",
        "fchmodat2", "map_shadow_stack", "landlock_restrict_self", "copy_file_range", "getdents64",
        "pidfd_open", "pidfd_send_signal", "sched_setaffinity", "rt_sigreturn", "shmget", NULL,
    };
    filter_check_names(OCCUPANT, names, ALLOW);
}

TEST(box_filter_reports_what_is_forbidden)
{
    static const char *const names[] = {
        "ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "kcmp", "process_madvise",
        "mount", "umount2", "pivot_root", "chroot", "open_tree", "open_tree_attr", "move_mount",
        "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr", "listmount", "statmount",
        "unshare", "setns", "bpf", "perf_event_open", "userfaultfd", "keyctl", "add_key",
        "request_key", "open_by_handle_at", "fanotify_init", "init_module", "finit_module",
        "delete_module", "kexec_load", "kexec_file_load", "reboot", "swapon", "swapoff", "acct",
        "quotactl", "quotactl_fd", "settimeofday", "clock_settime", "adjtimex", "clock_adjtime",
        "iopl", "ioperm", "vhangup", "syslog", "nfsservctl", "lookup_dcookie", "process_mrelease",
        NULL,
    };
    filter_check_names(OCCUPANT, names, LOUD);
}

TEST(box_filter_answers_probes_quietly)
{
    static const char *const absent[] = {
        "clone3", "io_uring_setup", "io_uring_enter", "io_uring_register", "splice", "tee",
        "vmsplice", "memfd_secret", "pkey_alloc", "pkey_mprotect", "pkey_free", "cachestat",
        "sched_setattr", "name_to_handle_at", "io_setup", "modify_ldt", NULL,
    };
    static const char *const forbidden[] = { "sethostname", "setdomainname", NULL };
    static const char *const skipped[] = { "sync", "syncfs", NULL };
    filter_check_names(OCCUPANT, absent, QUIET(ENOSYS));
    filter_check_names(OCCUPANT, forbidden, QUIET(EPERM));
    filter_check_names(OCCUPANT, skipped, SKIP);
}

/* Rules by hand: the attacks they are there for, with and without upper bits. */
static const struct filter_case cases[] = {
    { SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ALLOW },
    { SYS_socket, AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 17, ALLOW },
    { SYS_socket, AF_INET6, SOCK_STREAM, 6, ALLOW },
    { SYS_socket, AF_INET, SOCK_STREAM, 132 /* SCTP */, QUIET(EPROTONOSUPPORT) },
    { SYS_socket, AF_INET, SOCK_STREAM, 262 /* MPTCP */, QUIET(EPROTONOSUPPORT) },
    { SYS_socket, AF_INET, SOCK_STREAM, 262 | BIT32, QUIET(EPROTONOSUPPORT) },
    { SYS_socket, AF_INET, SOCK_DGRAM, IPPROTO_UDPLITE, ALLOW },
    { SYS_socket, AF_INET, SOCK_DGRAM, IPPROTO_UDPLITE | BIT32, LOUD },
    { SYS_setuid, 0, 0, 0, QUIET(EPERM) },
    { SYS_setreuid, 1000, 1001, 0, QUIET(EPERM) },
    { SYS_setresuid, 0xffffffff, 0, 0xffffffff, QUIET(EPERM) },
    { SYS_chown, 0, 0, 1000, QUIET(EPERM) },
    { SYS_sendfile, 1, 3, 0, ALLOW },
    { SYS_socket, AF_INET, SOCK_STREAM, BIT32, LOUD },
    { SYS_socket, AF_INET, SOCK_RAW, 0, LOUD },
    { SYS_socket, AF_INET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, LOUD },
    { SYS_socket, AF_INET, SOCK_RAW | BIT32, 0, LOUD },
    { SYS_socket, AF_INET, 10 /* SOCK_PACKET */, 0, LOUD },
    { SYS_socket, AF_UNIX | BIT32, SOCK_STREAM, 0, LOUD },
    { SYS_socket, 38 /* AF_ALG */, SOCK_SEQPACKET, 0, LOUD },
    { SYS_socket, 38 | BIT32, SOCK_SEQPACKET, 0, LOUD },
    { SYS_socket, 40 /* AF_VSOCK */, SOCK_STREAM, 0, LOUD },
    { SYS_socket, 40 | BIT32, SOCK_STREAM, 0, LOUD },
    { SYS_socket, 17 /* AF_PACKET */, SOCK_RAW, 0, LOUD },
    { SYS_socket, AF_NETLINK, SOCK_RAW, 0, QUIET(EAFNOSUPPORT) },
    { SYS_socket, AF_NETLINK | BIT32, SOCK_RAW, 0, QUIET(EAFNOSUPPORT) },
    { SYS_setsockopt, 3, SOL_SOCKET, SO_LINGER, QUIET(EPERM) },
    { SYS_setsockopt, 3, SOL_SOCKET | BIT32, SO_LINGER | BIT32, QUIET(EPERM) },
    { SYS_setsockopt, 3, SOL_SOCKET, SO_REUSEADDR, ALLOW },
    { SYS_setsockopt, 3, IPPROTO_TCP, SO_LINGER, ALLOW }, /* another option there */
    { SYS_fcntl, 3, F_SETPIPE_SZ, 1 << 20, QUIET(EPERM) },
    { SYS_fcntl, 3, F_SETPIPE_SZ | BIT32, 1 << 20, QUIET(EPERM) },
    { SYS_fcntl, 3, F_GETPIPE_SZ, 0, ALLOW },
    { SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, ALLOW },
    { SYS_socketpair, AF_UNIX | BIT32, SOCK_STREAM, 0, LOUD },
    { SYS_socketpair, 30 /* AF_TIPC */, SOCK_STREAM, 0, LOUD },
    { SYS_clone, 0x003d0f00 /* a thread */, 0, 0, ALLOW },
    { SYS_clone, 0x01200011 /* a child */, 0, 0, ALLOW },
    { SYS_clone, CLONE_NEWUSER | 17, 0, 0, LOUD },
    { SYS_clone, CLONE_NEWUSER | 17 | BIT32, 0, 0, LOUD },
    { SYS_clone, CLONE_NEWNS | CLONE_NEWPID, 0, 0, LOUD },
    { SYS_clone, CLONE_NEWCGROUP, 0, 0, LOUD },
    { SYS_clone, CLONE_NEWUTS, 0, 0, LOUD },
    { SYS_clone, CLONE_NEWIPC, 0, 0, LOUD },
    { SYS_clone, CLONE_NEWNET, 0, 0, LOUD },
    { SYS_ioctl, 0, 0x5401 /* TCGETS */, 0, ALLOW },
    { SYS_ioctl, 0, 0x5412 /* TIOCSTI */, 0, LOUD },
    { SYS_ioctl, 0, 0x5412 | BIT32, 0, LOUD },
    { SYS_ioctl, 0, 0x541c /* TIOCLINUX */, 0, LOUD },
    { SYS_ioctl, 0, 0x541c | 1ull << 63, 0, LOUD },
    { SYS_fcntl, 3, 1024 /* F_SETLEASE */, 0, LOUD },
    { SYS_fcntl, 3, 1026 /* F_NOTIFY */, 0, LOUD },
    { SYS_fcntl, 3, 1024 | BIT32, 0, LOUD },
    { SYS_fcntl, 3, 1030 /* F_DUPFD_CLOEXEC */, 0, ALLOW },
    { SYS_personality, 0, 0, 0, ALLOW },
    { SYS_personality, 0xffffffff, 0, 0, ALLOW },
    { SYS_personality, 0x0040000 /* ADDR_NO_RANDOMIZE */, 0, 0, LOUD },
    { SYS_personality, 0x0040000 | BIT32, 0, 0, LOUD },
    { SYS_personality, BIT32, 0, 0, LOUD },
    { SYS_prctl, PR_SET_NAME, 0, 0, ALLOW },
    { SYS_prctl, PR_CAPBSET_READ, 0, 0, ALLOW },
    { SYS_prctl, 35 /* PR_SET_MM */, 0, 0, LOUD },
    { SYS_prctl, 35 | BIT32, 0, 0, LOUD },
    { SYS_prctl, PR_SET_SECCOMP, 1, 0, QUIET(EINVAL) },
    { SYS_prctl, PR_SET_DUMPABLE, 1, 0, QUIET(EINVAL) },
    { SYS_prctl, 0x59616d61 /* PR_SET_PTRACER */, 1, 0, QUIET(EINVAL) },
    { SYS_prctl, PR_SET_NAME | BIT32, 0, 0, QUIET(EINVAL) },
    { SYS_seccomp, 1, 0, 0, ALLOW },
    { SYS_seccomp, 1, 1 /* TSYNC */, 0, ALLOW },
    { SYS_seccomp, 1, 8 /* NEW_LISTENER */, 0, LOUD },
    { SYS_seccomp, 1, 0x28 | BIT32, 0, LOUD },
    { SYS_sched_setscheduler, 0, SCHED_BATCH, 0, ALLOW },
    { SYS_sched_setscheduler, 0, SCHED_IDLE | 0x40000000, 0, ALLOW },
    { SYS_sched_setscheduler, 0, SCHED_FIFO, 0, LOUD },
    { SYS_sched_setscheduler, 0, SCHED_RR | 0x40000000, 0, LOUD },
    { SYS_sched_setscheduler, 0, SCHED_FIFO | BIT32, 0, LOUD },
    { SYS_madvise, 0, 4096, 4, ALLOW },
    { SYS_madvise, 0, 4096, 12 /* MADV_MERGEABLE */, QUIET(EINVAL) },
    { SYS_madvise, 0, 4096, 25 /* MADV_COLLAPSE */, QUIET(EINVAL) },
    { SYS_madvise, 0, 4096, 25 | BIT32, QUIET(EINVAL) },
    { SYS_mprotect, 0, 4096, 7, ALLOW },
};

TEST(box_filter_rules_decide_as_intended)
{
    filter_check_cases(OCCUPANT, cases, array_len(cases));
}

/* prctl and socket families against the list, as an attacker would scan them. */
TEST(box_filter_scan_finds_only_the_listed_values)
{
    static const int ops[] = { 1, 2, 3, 7, 15, 16, 21, 23, 25, 27, 29, 30, 36, 37, 38, 39, 40, 41,
                               42, 47, 52 };
    size_t next = 0;
    for (int op = 0; op <= 80; op++) {
        struct seccomp_data data = filter_call(SYS_prctl);
        data.args[0] = (uint64_t)op;
        if (filter_run(OCCUPANT, data) == ALLOW) {
            CHECK(next < array_len(ops));
            CHECK_INT(op, ops[next++]);
        }
    }
    CHECK_INT(next, array_len(ops));
    for (uint64_t family = 0; family <= 64; family++)
        for (uint64_t type = 0; type < 16; type++) {
            struct seccomp_data data = filter_call(SYS_socket);
            data.args[0] = family;
            data.args[1] = type;
            bool known = family == AF_UNIX || family == AF_INET || family == AF_INET6;
            bool plain = type != 3 && type != 4 && type != 6 && type != 10;
            CHECK_INT(filter_run(OCCUPANT, data) == ALLOW, known && plain);
        }
}

/* Each rule as written, then with each bit that the kernel does not read: an allow
 * must be lost, a denial must stay. */
TEST(box_filter_rules_fail_closed_under_upper_bits)
{
    for (size_t i = 0; i < array_len(box_filter_rules); i++) {
        const struct box_filter_rule *rule = &box_filter_rules[i];
        const struct filter *filter = filter_named(rule->policy);
        struct seccomp_data data = filter_call(rule->nr);
        for (int t = 0; t < rule->tests; t++)
            data.args[rule->test[t].arg] = rule->test[t].value;
        CHECK_INT(filter_run(filter, data), rule->action);
        for (int t = 0; t < rule->tests; t++)
            for (int bit = 32; bit < 64; bit++) {
                struct seccomp_data flipped = data;
                flipped.args[rule->test[t].arg] ^= 1ull << bit;
                uint32_t got = filter_run(filter, flipped);
                if (got == ALLOW || (rule->action != ALLOW && got != rule->action))
                    check_failed(__FILE__, __LINE__, "%s, rule %zu of %s: bit %d gives 0x%08x",
                                 filter_call_name(rule->nr), i, rule->policy, bit, got);
            }
    }
}

TEST(box_filter_kills_foreign_conventions)
{
    static const uint32_t arches[] = { AUDIT_ARCH_I386, OTHER_ARCH, AUDIT_ARCH_ARM, 0, 0xffffffff };
    for (size_t f = 0; f < FILTERS; f++)
        for (int nr = 0; nr < NUMBERS; nr++) {
            for (size_t a = 0; a < array_len(arches); a++) {
                struct seccomp_data data = filter_call(nr);
                data.arch = arches[a];
                CHECK_INT(filter_run(&filters[f], data), KILL);
            }
            if (OWN_ARCH == AUDIT_ARCH_X86_64)
                CHECK_INT(filter_run(&filters[f], filter_call(nr | X32)), KILL);
        }
    if (OWN_ARCH == AUDIT_ARCH_X86_64)
        CHECK_INT(filter_run(OCCUPANT, filter_call(0x7fffffff)), KILL);
}

/* Every number has a verdict; those without a name, and those to come, have the default. */
TEST(box_filter_decides_every_number)
{
    static const int far[] = { 700, 1000, 65536, 0x3fffffff, -1, -2, INT32_MIN };
    for (size_t f = 0; f < FILTERS; f++) {
        for (int nr = 0; nr < NUMBERS; nr++) {
            uint32_t got = filter_run(&filters[f], filter_call(nr));
            uint32_t error = got & SECCOMP_RET_DATA;
            bool quiet = (got & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO &&
                         (error == ENOSYS || error == EINVAL || error == EAFNOSUPPORT ||
                          (error == EPERM && &filters[f] != UNCOUNTED));
            bool skip = (got == SKIP && (nr == SYS_sync || nr == SYS_syncfs)) ||
                        (got == TRACED && nr == SYS_clone3);
            CHECK(got == ALLOW || got == LOUD || got == KILL || quiet || skip);
            if (!filter_call_name(nr))
                CHECK_INT(got, filters[f].fallback);
        }
        for (size_t i = 0; i < array_len(far); i++)
            CHECK_INT(filter_run(&filters[f], filter_call(far[i])), filters[f].fallback);
    }
}

/* The supervisor can answer whatever the filter hands to it, and nothing else. */
TEST(box_filter_loud_table_covers_the_filter)
{
    for (int nr = 0; nr < NUMBERS; nr++) {
        struct seccomp_data odd = filter_call(nr);
        for (int i = 0; i < 6; i++)
            odd.args[i] = 0x5a5a5a5a5a5a5a5aull;
        bool loud = filter_run(OCCUPANT, odd) == LOUD, listed = false;
        for (size_t i = 0; i < array_len(box_filter_rules); i++)
            loud = loud || (box_filter_rules[i].nr == nr && box_filter_rules[i].action == LOUD);
        for (size_t i = 0; i < array_len(box_filter_loud); i++) {
            bool socket = nr == SYS_socket || nr == SYS_socketpair;
            if (box_filter_loud[i].nr != nr)
                continue;
            listed = true;
            CHECK_INT(box_filter_loud[i].error, socket ? EAFNOSUPPORT : EPERM);
        }
        CHECK_INT(listed, loud);
    }
}

TEST(box_filter_names_are_sorted_and_right)
{
    for (size_t i = 1; i < array_len(box_filter_names); i++)
        CHECK(box_filter_names[i - 1].nr < box_filter_names[i].nr);
    CHECK_TEXT(filter_call_name(SYS_read), "read");
    CHECK_TEXT(filter_call_name(SYS_ptrace), "ptrace");
    CHECK_TEXT(filter_call_name(462), "mseal");
}

TEST(box_filter_of_init_and_porter_is_small)
{
    static const char *const init[] = { "openat", "socket", "execve", "clone", "mmap", "ptrace",
                                        "mount", "setuid", "prctl", "fork", "kill", "read",
                                        "recvmsg", NULL };
    static const char *const porter[] = { "socket", "execve", "clone", "ptrace", "mount", "kill",
                                          "unlinkat", "renameat2", "linkat", "symlinkat", NULL };
    static const char *const sleeps[] = { "sendmsg", "pause", "exit_group", NULL };
    static const char *const copies[] = { "openat2", "read", "getdents64", "sendmsg", NULL };
    filter_check_names(INIT, init, KILL);
    filter_check_names(PORTER, porter, KILL);
    filter_check_names(INIT, sleeps, ALLOW);
    filter_check_names(PORTER, copies, ALLOW);
}

/* A session's occupant has the parked copies' uid as its saved one. */
static const struct filter_case session_cases[] = {
    { SYS_setresuid, 1000, 1000, 1000, ALLOW },
    { SYS_setresuid, UINT64_MAX, 0xffffffff, 1000, ALLOW },
    { SYS_setresuid, 1001, 1000, 1001, TRACED },
    { SYS_setresuid, 1000, 1001 | BIT32, 1000, TRACED },
    { SYS_setresuid, UINT64_MAX, UINT64_MAX, 1001, TRACED },
    { SYS_setuid, 1000, 0, 0, ALLOW },
    { SYS_setuid, 1001, 0, 0, QUIET(EPERM) },
    { SYS_setuid, 1001 | BIT32, 0, 0, QUIET(EPERM) },
    { SYS_setreuid, 1000, 1001, 0, QUIET(EPERM) },
    { SYS_setreuid, 1001, UINT64_MAX, 0, QUIET(EPERM) },
    { SYS_setfsuid, 1001, 0, 0, QUIET(EPERM) },
    { SYS_prctl, PR_SET_DUMPABLE, 1, 0, TRACED },
    { SYS_prctl, PR_SET_DUMPABLE | BIT32, 1, 0, TRACED },
    { SYS_prctl, 35 /* PR_SET_MM */, 14 /* PR_SET_MM_MAP */, 0, TRACED },
    { SYS_prctl, 35 /* PR_SET_MM */, 13, 0, LOUD },
    { SYS_prctl, PR_SET_NAME, 0, 0, ALLOW },
    { SYS_prctl, PR_SET_SECCOMP, 2, 0, QUIET(EINVAL) },
    { SYS_prctl, 59 /* PR_SET_SYSCALL_USER_DISPATCH */, 1, 0, QUIET(EINVAL) },
    { SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, 0, LOUD },
    { SYS_seccomp, SECCOMP_SET_MODE_FILTER | BIT32, 1, 0, LOUD },
    { SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0x8, 0, LOUD },
    { SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, 0, ALLOW },
    { SYS_setpriority, 0, 0, 5, ALLOW },
    { SYS_setpriority, 0, 7, 5, QUIET(EPERM) },
    { SYS_setpriority, 2, 1001, 5, QUIET(EPERM) },
    { SYS_sched_setaffinity, 0, 8, 0, ALLOW },
    { SYS_sched_setaffinity, 7, 8, 0, QUIET(EPERM) },
    { SYS_sched_setaffinity, BIT32, 8, 0, QUIET(EPERM) },
    { SYS_sched_setparam, 7, 0, 0, QUIET(EPERM) },
    { SYS_sched_setscheduler, 0, SCHED_IDLE | 0x40000000, 0, ALLOW },
    { SYS_sched_setscheduler, 7, SCHED_IDLE, 0, QUIET(EPERM) },
    { SYS_sched_setscheduler, 0, SCHED_FIFO, 0, LOUD },
    { SYS_sched_setscheduler, 7, SCHED_RR | 0x40000000, 0, LOUD },
    { SYS_kill, 7, 9, 0, ALLOW },
};

TEST(box_filter_of_a_session_keeps_the_parked_uid_away)
{
    filter_check_cases(SESSION, session_cases, array_len(session_cases));
}

/* But for the calls of policy/session.policy it is the occupant's filter. */
TEST(box_filter_of_a_session_is_the_occupants_elsewhere)
{
    static const int differ[] = { SYS_setresuid, SYS_setuid, SYS_setreuid, SYS_setfsuid, SYS_prctl,
                                  SYS_setpriority, SYS_sched_setaffinity, SYS_sched_setparam,
                                  SYS_sched_setscheduler, SYS_seccomp };
    static const uint64_t args[] = { 0, 1, 4, 16, 35, 1001, 0x10000000, 0x5a5a5a5a, UINT64_MAX };
    for (int nr = 0; nr < NUMBERS; nr++) {
        bool same = true;
        for (size_t i = 0; i < array_len(differ); i++)
            same = same && nr != differ[i];
        for (size_t a = 0; same && a < array_len(args); a++) {
            struct seccomp_data data = filter_call(nr);
            for (int i = 0; i < 6; i++)
                data.args[i] = args[a];
            CHECK_INT(filter_run(SESSION, data), filter_run(OCCUPANT, data));
        }
    }
}

/* Below the other one it can only take away. */
TEST(box_filter_where_nobody_counts_refuses_hidden_memory)
{
    static const char *const absent[] = { "memfd_create", "shmget", "semget", "msgget", NULL };
    static const struct {
        uint64_t flags;
        bool refused;
    } maps[] = {
        { MAP_PRIVATE | MAP_ANONYMOUS, false }, { MAP_SHARED, false }, { MAP_PRIVATE, false },
        { MAP_SHARED | MAP_ANONYMOUS, true }, { MAP_SHARED_VALIDATE | MAP_ANONYMOUS, true },
        { MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE | MAP_POPULATE, true },
        { MAP_SHARED | MAP_ANONYMOUS | BIT32, true },
    };
    filter_check_names(UNCOUNTED, absent, QUIET(ENOSYS));
    for (size_t i = 0; i < array_len(maps); i++) {
        struct seccomp_data data = filter_call(SYS_mmap);
        data.args[3] = maps[i].flags;
        CHECK_INT(filter_run(UNCOUNTED, data), maps[i].refused ? QUIET(EPERM) : ALLOW);
    }
    for (int nr = 0; nr < NUMBERS; nr++) {
        bool may_lack = nr == SYS_mmap;
        for (const char *const *name = absent; *name; name++)
            may_lack |= nr == filter_call_number(*name);
        if (!may_lack && nr < X32)
            CHECK_INT(filter_run(UNCOUNTED, filter_call(nr)), ALLOW);
    }
}

TEST(box_filter_of_the_keeper_is_small)
{
    static const char *const needed[] = { "ptrace", "wait4", "recvmsg", "sendmsg", "pidfd_getfd",
                                          "process_vm_readv", "poll", NULL };
    static const char *const killed[] = { "execve", "clone", "fork", "kill", "socket", "connect",
                                          "mprotect", "setresuid", "write", "unlinkat", "mount",
                                          "setns", "prctl", "dup3", NULL };
    filter_check_names(KEEPER, needed, ALLOW);
    filter_check_names(KEEPER, killed, KILL);
}
