/* The doctor's checks. */
#ifndef CLI_DOCTOR_DOCTOR_H
#define CLI_DOCTOR_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>

enum cli_doctor_verdict { CLI_DOCTOR_OK, CLI_DOCTOR_WEAK, CLI_DOCTOR_MISSING };

struct cli_doctor_report {
    enum cli_doctor_verdict verdict;
    char detail[256]; /* the finding */
    char fix[512];    /* the exact command, "" if there is nothing to do */
};

struct cli_doctor_check {
    const char *name;
    void (*look)(struct cli_doctor_report *out);
    bool required; /* if missing, the default profile cannot run */
};

extern const struct cli_doctor_check cli_doctor_kernel[];  /* walls, limits, sharing */
extern const size_t cli_doctor_kernel_count;
extern const struct cli_doctor_check cli_doctor_host[]; /* runtimes, space, clock */
extern const size_t cli_doctor_host_count;

void cli_doctor_say(struct cli_doctor_report *out, enum cli_doctor_verdict verdict, const char *fmt,
                    ...) __attribute__((format(printf, 3, 4)));
void cli_doctor_fix(struct cli_doctor_report *out, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* A run, and a row for each stored image; false if the default profile cannot run. Last, because an
 * engine takes the rights that other checks need. */
bool cli_doctor_run(void (*tell)(void *user, const struct cli_doctor_check *check,
                                 const struct cli_doctor_report *report),
                    void *user);

/* Sets the fix: the command that installs these packages (Debian's names) on this host. */
void cli_doctor_install(struct cli_doctor_report *out, const char *const *packages, size_t count);

/* First line of a small file without its newline; false on failure. */
bool cli_doctor_read(const char *path, char *out, size_t room);
/* A file's number, or `otherwise`. */
long cli_doctor_number(const char *path, long otherwise);

#endif
