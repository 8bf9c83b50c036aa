/* CPU affinities; see the header. Runs in the keeper of a session. It makes raw system calls,
 * because libc's sets have a fixed size. */
#include "box/park/pin.h"

#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/attr.h"

#define CPUS ((int)(8 * sizeof((struct pin *)0)->cpus))

static bool has(const struct pin *pin, int cpu)
{
    return cpu >= 0 && cpu < CPUS && pin->cpus[cpu / 64] >> cpu % 64 & 1;
}

static bool read_pin(pid_t pid, struct pin *out)
{
    *out = (struct pin){ .len = 0 };
    long len = syscall(SYS_sched_getaffinity, pid, sizeof out->cpus, out->cpus);
    out->len = len > 0 ? (size_t)len : 0;
    return len > 0;
}

static bool set_pin(pid_t pid, int cpu)
{
    struct pin one = { .len = sizeof one.cpus };
    if (cpu < 0 || cpu >= CPUS)
        return false;
    one.cpus[cpu / 64] = UINT64_C(1) << cpu % 64;
    return syscall(SYS_sched_setaffinity, pid, one.len, one.cpus) == 0;
}

static int cpu_now(void)
{
    unsigned cpu = 0;
    return syscall(SYS_getcpu, &cpu, NULL, NULL) < 0 ? -1 : (int)cpu;
}

void pin_self(int home, struct pin *out_before)
{
    int cpu = cpu_now(), other = -1;
    if (!read_pin(0, out_before))
        return;
    for (int i = 1; cpu == home && other < 0 && i < CPUS; i++)
        other = has(out_before, (home + i) % CPUS) ? (home + i) % CPUS : -1;
    if (!set_pin(0, other >= 0 ? other : cpu))
        out_before->len = 0;
}

void pin_beside(pid_t pid, struct pin *out_before)
{
    if (read_pin(pid, out_before) && !set_pin(pid, cpu_now()))
        out_before->len = 0;
}

bool pin_to(pid_t pid, int home, const struct pin *before)
{
    return before->len > 0 && has(before, home) && set_pin(pid, home);
}

void pin_release(pid_t pid, const struct pin *before)
{
    if (before->len > 0)
        syscall(SYS_sched_setaffinity, pid, before->len, before->cpus);
}
