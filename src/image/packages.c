/* Finding Python's package folders. Runs in the engine's process and in the doctor. */
#include "image/packages.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"

#define DEBIAN "/usr/lib/python3/dist-packages"

static size_t look_in(const char *lib, char out[][IMAGE_PACKAGES_ROOM], size_t count)
{
    own_dirp dir = opendir(lib);
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        if (count == IMAGE_PACKAGES_MAX || strncmp(entry->d_name, "python3.", 8) != 0)
            continue;
        int len = snprintf(out[count], IMAGE_PACKAGES_ROOM, "%s/%.20s/site-packages", lib,
                           entry->d_name);
        count += len < IMAGE_PACKAGES_ROOM && access(out[count], X_OK) == 0;
    }
    return count;
}

size_t image_packages(char out[IMAGE_PACKAGES_MAX][IMAGE_PACKAGES_ROOM])
{
    if (access(DEBIAN, X_OK) == 0) {
        snprintf(out[0], IMAGE_PACKAGES_ROOM, DEBIAN);
        return 1;
    }
    return look_in("/usr/lib64", out, look_in("/usr/lib", out, 0));
}
