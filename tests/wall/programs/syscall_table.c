/* row: 18 44 34
 * about: every number that the policy says must never work, with no arguments that could
 *        do harm; one line for each so that none hides behind another
 * control: unshared
 * may-lack: delete_module finit_module kexec_file_load
 * may-lack: quotactl_fd listmount statmount ioperm
 * status: ok */
#include <errno.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BAD ((void *)-4096L)

/* Each call has an argument that the kernel refuses after asking for the right. */
static const struct row {
    const char *name;
    long number, a, b, c, d;
} rows[] = {
    { "umount2", SYS_umount2, (long)"/absent", 99, 0, 0 },
    { "swapoff", SYS_swapoff, (long)"/absent", 0, 0, 0 },
    { "delete_module", SYS_delete_module, (long)"absent", 0, 0, 0 },
    { "finit_module", SYS_finit_module, -1, (long)"", 0, 0 },
    { "ioperm", SYS_ioperm, -1, 5, 1, 0 },
    { "adjtimex", SYS_adjtimex, (long)BAD, 0, 0, 0 },
    { "clock_adjtime", SYS_clock_adjtime, 0, (long)BAD, 0, 0 },
    { "kexec_file_load", SYS_kexec_file_load, -1, -1, 0, 0 },
    { "name_to_handle_at", SYS_name_to_handle_at, -1, (long)"x", (long)BAD, (long)BAD },
    { "fanotify_mark", SYS_fanotify_mark, -1, 1, 0, -1 },
    { "process_madvise", 440, -1, (long)BAD, 1, 0 },
    { "process_mrelease", 448, -1, 0, 0, 0 },
    { "pidfd_getfd", 438, -1, 0, 0, 0 },
    { "mount_setattr", 442, -1, (long)"x", 0, 0 },
    { "quotactl_fd", 443, -1, 0, 0, 0 },
    { "move_pages", SYS_move_pages, 0, 1, (long)BAD, 0 },
    { "migrate_pages", SYS_migrate_pages, 0, 99, (long)BAD, 0 },
    { "statmount", 457, (long)BAD, (long)BAD, 8, 0 },
    { "listmount", 458, (long)BAD, (long)BAD, 8, 0 },
};

int main(void)
{
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *row = &rows[i];
        errno = 0;
        long value = syscall(row->number, row->a, row->b, row->c, row->d, 0, 0);
        int refused = value == -1 && (errno == EPERM || errno == ENOSYS || errno == EACCES);
        printf("PROBE %s: %s %ld %d\n", row->name, refused ? "blocked" : "reached", value, errno);
    }
    return 0;
}
