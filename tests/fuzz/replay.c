/* Feeds files to a fuzz target without libFuzzer, so that every test run replays
 * the corpus with any compiler. Arguments: files, or folders of files. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/buf.h"

#define REPLAY_FILE_MAX (16u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        return -1;
    }
    own_buf content = BUF_INIT(REPLAY_FILE_MAX);
    char part[4096];
    size_t n;
    while ((n = fread(part, 1, sizeof part, file)) > 0 && buf_add(&content, part, n) == 0)
        ;
    fclose(file);
    /* A copy of the exact size: a sanitizer then sees the first byte too far. */
    uint8_t *exact = buf_alloc(content.len);
    memcpy(exact, buf_str(&content).at, content.len);
    fprintf(stderr, "%s\n", path);
    LLVMFuzzerTestOneInput(exact, content.len);
    free(exact);
    return 0;
}

static int replay_folder(const char *path)
{
    DIR *folder = opendir(path);
    int failed = folder ? 0 : -1;
    struct dirent *entry;
    while (folder && (entry = readdir(folder))) {
        own_buf whole = BUF_INIT(8192);
        if (entry->d_name[0] == '.')
            continue;
        buf_printf(&whole, "%s/%s", path, entry->d_name);
        failed |= replay_file(buf_str(&whole).at);
    }
    if (folder)
        closedir(folder);
    return failed;
}

int main(int argc, char **argv)
{
    int failed = 0;
    for (int i = 1; i < argc; i++) {
        struct stat info;
        bool folder = stat(argv[i], &info) == 0 && S_ISDIR(info.st_mode);
        failed |= folder ? replay_folder(argv[i]) : replay_file(argv[i]);
    }
    return failed ? 1 : 0;
}
