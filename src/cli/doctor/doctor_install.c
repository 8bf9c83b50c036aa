/* The command that installs a package on this distribution. The table has Debian's names; other
 * names follow by rule, and a few by name. Runs in the cli process. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/attr.h"
#include "cli/doctor/doctor.h"

enum manager { APT, DNF, ZYPPER, PACMAN, APK, MANAGERS };

static const struct {
    const char *program, *command;
    const char *python; /* prefix of Python packages */
} managers[MANAGERS] = {
    [APT] = { "/usr/bin/apt-get", "sudo apt-get install", "python3-" },
    [DNF] = { "/usr/bin/dnf", "sudo dnf install", "python3-" },
    [ZYPPER] = { "/usr/bin/zypper", "sudo zypper install", "python3-" },
    [PACMAN] = { "/usr/bin/pacman", "sudo pacman -S", "python-" },
    [APK] = { "/sbin/apk", "sudo apk add", "py3-" },
};

/* Exceptions to the rule. */
static const struct {
    const char *debian, *other, *arch; /* arch: NULL, as other */
} names[] = {
    { "python3", "python3", "python" },
    { "python3-sklearn", "python3-scikit-learn", NULL },
    { "python3-bs4", "python3-beautifulsoup4", NULL },
    { "python3-pil", "python3-pillow", NULL },
};

static enum manager find_manager(void)
{
    for (int i = 0; i < MANAGERS; i++) {
        if (access(managers[i].program, X_OK) == 0)
            return (enum manager)i;
    }
    return access("/usr/bin/apk", X_OK) == 0 ? APK : APT;
}

void cli_doctor_install(struct cli_doctor_report *out, const char *const *packages, size_t count)
{
    enum manager manager = find_manager();
    size_t at = (size_t)snprintf(out->fix, sizeof out->fix, "%s", managers[manager].command);
    for (size_t i = 0; i < count && at < sizeof out->fix; i++) {
        const char *name = packages[i], *begin = "";
        for (size_t n = 0; manager != APT && n < array_len(names); n++) {
            if (strcmp(packages[i], names[n].debian) == 0)
                name = manager == PACMAN && names[n].arch ? names[n].arch : names[n].other;
        }
        if (strncmp(name, "python3-", 8) == 0) {
            begin = managers[manager].python;
            name += 8;
        }
        at += (size_t)snprintf(out->fix + at, sizeof out->fix - at, " %s%s", begin, name);
    }
}
