/* Starts a program under a filter that makes one system call fail, as a host would that
 * does not offer it. Usage: deny CALL EPERM|ENOSYS program arguments... */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct row {
    const char *name;
    unsigned number;
} rows[] = {
    { "unshare", SYS_unshare }, { "mount", SYS_mount }, { "pivot_root", SYS_pivot_root },
    { "seccomp", SYS_seccomp }, { "capset", SYS_capset }, { "umount2", SYS_umount2 },
    { "move_mount", 429 }, { "fsopen", 430 }, { "open_tree", 428 },
    { "setresuid", SYS_setresuid }, { "sethostname", SYS_sethostname },
    { "close_range", 436 }, { "openat2", 437 }, { "landlock_create_ruleset", 444 },
    { "clone3", 435 }, { "setsid", SYS_setsid },
};

int main(int argc, char **argv)
{
    unsigned number = ~0u;
    for (unsigned i = 0; argc > 3 && i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(rows[i].name, argv[1]) == 0)
            number = rows[i].number;
    }
    if (number == ~0u)
        return 99;
    unsigned error = strcmp(argv[2], "EPERM") == 0 ? EPERM : ENOSYS;
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, 2, &program) != 0) {
        perror("deny");
        return 99;
    }
    execv(argv[3], argv + 3);
    perror(argv[3]);
    return 99;
}
