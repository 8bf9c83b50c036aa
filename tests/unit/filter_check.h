/* The system call filters by name, and checks of their verdicts in the simulated machine. */
#ifndef TESTS_UNIT_FILTER_CHECK_H
#define TESTS_UNIT_FILTER_CHECK_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf_sim.h"

#define ALLOW SECCOMP_RET_ALLOW
#define LOUD SECCOMP_RET_USER_NOTIF
#define TRACED SECCOMP_RET_TRACE
#define KILL SECCOMP_RET_KILL_PROCESS
#define QUIET(error) (SECCOMP_RET_ERRNO | (error))
#define SKIP SECCOMP_RET_ERRNO /* 0, and the call is not made */
#define BIT32 (1ull << 32)
#define X32 0x40000000
#define NUMBERS 640

struct filter {
    const char *name;
    const struct sock_filter *at;
    size_t len;
    uint32_t fallback;
};

#define FILTERS 11
extern const struct filter filters[FILTERS];
#define OCCUPANT (&filters[0])
#define INIT (&filters[1])
#define PORTER (&filters[2])
#define SESSION (&filters[3])
#define KEEPER (&filters[4])
#define SESSION_ONE_UID (&filters[6])
#define UNCOUNTED (&filters[8])

/* A call, its first arguments and its verdict. */
struct filter_case {
    int nr;
    uint64_t a0, a1, a2;
    uint32_t want;
};

uint32_t filter_run(const struct filter *filter, struct seccomp_data data);
struct seccomp_data filter_call(int nr);
/* Ends the test where no filter has that name. */
const struct filter *filter_named(const char *name);
/* The name of a call, or NULL. */
const char *filter_call_name(int nr);
/* -1: only x86_64 has it. */
int filter_call_number(const char *name);
/* A list of names, ended by NULL, that all have one verdict whatever the arguments. */
void filter_check_names(const struct filter *filter, const char *const *names, uint32_t want);
void filter_check_cases(const struct filter *filter, const struct filter_case *at, size_t count);

#endif
