/* The doctor's checks of the host: runtimes, packages, clock and space. Runs in the cli process. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/attr.h"
#include "base/clock.h"
#include "base/mounts.h"
#include "base/own.h"
#include "cli/doctor/doctor.h"
#include "engine/engine.h"
#include "image/packages.h"

#define SPACE_LEAST (256.0 * 1024 * 1024)

void cli_doctor_say(struct cli_doctor_report *out, enum cli_doctor_verdict verdict, const char *fmt,
                    ...)
{
    va_list args;
    va_start(args, fmt);
    out->verdict = verdict;
    vsnprintf(out->detail, sizeof out->detail, fmt, args);
    va_end(args);
}

void cli_doctor_fix(struct cli_doctor_report *out, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(out->fix, sizeof out->fix, fmt, args);
    va_end(args);
}

bool cli_doctor_read(const char *path, char *out, size_t room)
{
    ssize_t n = io_read_text(AT_FDCWD, path, out, room);
    out[strcspn(out, "\n")] = 0;
    return n >= 0;
}

long cli_doctor_number(const char *path, long otherwise)
{
    char text[64], *end;
    if (!cli_doctor_read(path, text, sizeof text))
        return otherwise;
    long value = strtol(text, &end, 10);
    return end == text ? otherwise : value;
}

/* First line of `path --version`, within two seconds. */
static bool version_of(const char *path, char *out, size_t room)
{
    int ends[2];
    if (access(path, X_OK) < 0 || pipe2(ends, O_CLOEXEC) < 0)
        return false;
    own_fd from = ends[0], to = ends[1];
    pid_t child = fork();
    if (child == 0) {
        dup2(to, STDOUT_FILENO);
        execl(path, path, "--version", (char *)NULL);
        _exit(127);
    }
    close(take_fd(&to));
    if (child < 0)
        return false;
    struct pollfd ready = { .fd = from, .events = POLLIN };
    ssize_t n = poll(&ready, 1, 2000) == 1 ? read(from, out, room - 1) : -1;
    out[n < 0 ? 0 : n] = 0;
    out[strcspn(out, "\n")] = 0;
    kill(child, SIGKILL); /* for a program that did not answer; harmless for a zombie */
    waitpid(child, NULL, 0);
    return n > 0;
}

static void check_runtime(struct cli_doctor_report *out, const char *path, const char *package)
{
    char version[160];
    if (version_of(path, version, sizeof version)) {
        cli_doctor_say(out, CLI_DOCTOR_OK, "%.100s", version);
        return;
    }
    cli_doctor_say(out, CLI_DOCTOR_MISSING, "%s is missing or does not start", path);
    cli_doctor_install(out, &package, 1);
}

static void check_python(struct cli_doctor_report *out)
{
    check_runtime(out, "/usr/bin/python3", "python3");
}

static void check_node(struct cli_doctor_report *out)
{
    check_runtime(out, "/usr/bin/node", "nodejs");
}

static void check_bash(struct cli_doctor_report *out)
{
    check_runtime(out, "/usr/bin/bash", "bash");
}

static void check_packages(struct cli_doctor_report *out)
{
    static const struct {
        const char *folder, *package;
    } rows[] = {
        { "numpy", "python3-numpy" },       { "pandas", "python3-pandas" },
        { "matplotlib", "python3-matplotlib" }, { "scipy", "python3-scipy" },
        { "sympy", "python3-sympy" },       { "sklearn", "python3-sklearn" },
        { "openpyxl", "python3-openpyxl" }, { "lxml", "python3-lxml" },
        { "bs4", "python3-bs4" },           { "PIL", "python3-pil" },
    };
    char absent[200] = "", folders[IMAGE_PACKAGES_MAX][IMAGE_PACKAGES_ROOM];
    const char *packages[array_len(rows)];
    size_t count = 0, at = 0, there = image_packages(folders);
    for (size_t i = 0; i < array_len(rows); i++) {
        bool found = false;
        for (size_t n = 0; n < there && !found; n++) {
            char path[128];
            snprintf(path, sizeof path, "%.60s/%s", folders[n], rows[i].folder);
            found = access(path, F_OK) == 0;
        }
        if (found)
            continue;
        at += (size_t)snprintf(absent + at, sizeof absent - at, " %s", rows[i].folder);
        packages[count++] = rows[i].package;
    }
    if (count == 0) {
        cli_doctor_say(out, CLI_DOCTOR_OK, "all %zu that models ask for most", array_len(rows));
        return;
    }
    cli_doctor_say(out, CLI_DOCTOR_WEAK, "not there:%s", absent);
    cli_doctor_install(out, packages, count);
}

/* Mounts below /usr, and whether boxes see them. */
static void check_mounts(struct cli_doctor_report *out)
{
    static struct mounts mounts;
    char names[160] = "";
    if (mounts_read(&mounts) < 0) {
        cli_doctor_say(out, CLI_DOCTOR_MISSING, "could not read /proc/self/mountinfo: %s",
                       strerror(errno));
        return;
    }
    size_t count = 0, used = 0;
    for (const char *at = mounts.hidden; at < mounts.hidden + mounts.len; at += strlen(at) + 1) {
        used += used < sizeof names ? (size_t)snprintf(names + used, sizeof names - used, " %s", at)
                                    : 0;
        count++;
    }
    if (count == 0)
        cli_doctor_say(out, CLI_DOCTOR_OK, "nothing that boxes miss is mounted below /usr");
    else
        cli_doctor_say(out, CLI_DOCTOR_WEAK, "boxes do not see what is mounted at%s%s", names,
                       used < sizeof names ? "" : " ...");
}

static void check_clock(struct cli_doctor_report *out)
{
    char source[64] = "?";
    cli_doctor_read("/sys/devices/system/clocksource/clocksource0/current_clocksource", source,
                    sizeof source);
    int64_t before = clock_now_ns();
    struct timespec nap = { .tv_nsec = 2000000 };
    nanosleep(&nap, NULL);
    double slept = clock_ms_between(before, clock_now_ns());
    static const char *const quick[] = { "tsc", "kvm-clock", "arch_sys_counter",
                                         "hyperv_clocksource" };
    bool is_quick = false;
    for (size_t i = 0; i < array_len(quick); i++)
        is_quick = is_quick || strncmp(source, quick[i], strlen(quick[i])) == 0;
    if (slept < 1.9)
        cli_doctor_say(out, CLI_DOCTOR_MISSING, "the monotonic clock runs wrong: 2 ms took %.1f",
                       slept);
    else
        cli_doctor_say(out, is_quick ? CLI_DOCTOR_OK : CLI_DOCTOR_WEAK, "%s, 2 ms took %.1f ms%s",
                       source, slept, is_quick ? "" : ": reading it costs a system call");
}

static void check_space(struct cli_doctor_report *out)
{
    char state[PATH_MAX] = "/";
    bool named;
    /* The state folder, or the nearest existing folder above it. */
    engine_state_path(state, sizeof state, &named);
    while (access(state, F_OK) < 0 && strrchr(state, '/') > state)
        *strrchr(state, '/') = 0;
    const char *const places[] = { state, "/tmp" };
    double least = -1;
    const char *worst = state;
    for (size_t i = 0; i < array_len(places); i++) {
        struct statvfs st;
        if (statvfs(places[i], &st) < 0)
            continue;
        double bytes = (double)st.f_bavail * (double)st.f_frsize;
        if (least < 0 || bytes < least) {
            least = bytes;
            worst = places[i];
        }
    }
    double mib = least / 1048576;
    if (least < 0)
        cli_doctor_say(out, CLI_DOCTOR_WEAK, "'%.100s' cannot be examined", worst);
    else if (least < SPACE_LEAST)
        cli_doctor_say(out, CLI_DOCTOR_WEAK, "only %.0f MiB free in '%.100s'", mib, worst);
    else
        cli_doctor_say(out, CLI_DOCTOR_OK, "%.0f MiB free in '%.100s'", mib, worst);
    if (least >= 0 && least < SPACE_LEAST)
        cli_doctor_fix(out, "free some space, or set CUPEL_STATE to a folder elsewhere");
}

const struct cli_doctor_check cli_doctor_host[] = {
    { "python", check_python, true },
    { "node", check_node, false },
    { "bash", check_bash, false },
    { "packages", check_packages, false },
    { "mounts", check_mounts, false },
    { "clock", check_clock, false },
    { "space", check_space, false },
};
const size_t cli_doctor_host_count = array_len(cli_doctor_host);
