/* Fuzz a tar archive as a layer and as a whole archive, into a store in memory. Whatever it says,
 * nothing appears or changes outside of the build, a refusal leaves nothing, and an image that
 * comes of it is sound. */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"
#include "image/archive/archive.h"
#include "image/archive/layer.h"

#define CANARY "canary"
#define BYTES_MAX (4 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char state_path[] = "/dev/shm/cupel-fuzz-layer-XXXXXX";
static int state = -1;
static struct image_store store = IMAGE_STORE_INIT;

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void clean(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        execl("/bin/rm", "rm", "-rf", state_path, (char *)NULL);
        _exit(1);
    }
}

static void start(void)
{
    struct err err = ERR_INIT;
    if (state >= 0)
        return;
    must(mkdtemp(state_path) != NULL);
    atexit(clean);
    state = open(state_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    must(state >= 0);
    own_fd canary = openat(state, CANARY, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    must(canary >= 0 && io_write_all(canary, "sings", 5) == 0);
    must(image_store_open(state, /* make= */ true, &store, &err) == 0);
}

static int count(const char *folder)
{
    char path[100];
    int found = 0;
    snprintf(path, sizeof path, "%s/%s", state_path, folder);
    own_dirp dir = opendir(path);
    must(dir != NULL);
    for (const struct dirent *entry; (entry = readdir(dir));)
        found += entry->d_name[0] != '.';
    return found;
}

static void check_outside(void)
{
    char text[16];
    struct stat st;
    must(count(".") == 2); /* the canary, and the folder of images */
    must(io_read_text(state, CANARY, text, sizeof text) == 5 && strcmp(text, "sings") == 0);
    must(fstatat(state, CANARY, &st, 0) == 0 && st.st_nlink == 1);
    must(count("images/work") == 0);
}

static void finish(struct image_build *build, const json_t *facts)
{
    own_image_entry entry = IMAGE_ENTRY_INIT;
    struct err err = ERR_INIT;
    int64_t bytes, images;
    must(image_build_finish(build, "fuzz", facts, &entry, &err) == 0);
    must(image_store_verify(&store, &entry, &err) == 0);
    must(image_store_remove(&store, "fuzz", &err) == 0);
    image_build_close(build);
    must(image_store_prune(&store, &bytes, &images, &err) == 0);
}

static void check_refusal(const struct err *err)
{
    must(err->kind == ERR_INPUT && *err->text && str_is_utf8(str_of(err->text)));
}

static void try(int fd, int64_t size, bool layer)
{
    const struct image_import_options options = { .bytes_max = BYTES_MAX };
    own_import_report report = IMAGE_IMPORT_REPORT_INIT;
    own_paths paths = paths_new();
    const struct layer_job job = { .paths = paths, .options = &options, .report = &report };
    const struct unpack_source source = { fd, 0, size };
    struct layer_job mine = job;
    struct unpack_sums sums;
    struct err err = ERR_INIT;
    struct image_build *build = NULL;
    must(image_build_start(&store, NULL, &build, &err) == 0);
    mine.build = build;
    int rc = layer ? layer_apply(&mine, &source, LAYER_DIFF, &sums, &err)
                   : image_import(build, fd, &options, &report, &err);
    must(report.bytes <= BYTES_MAX);
    if (rc == 0) {
        finish(build, report.facts);
    } else {
        check_refusal(&err);
        image_build_close(build);
    }
    check_outside();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    start();
    own_fd fd = memfd_create("layer", MFD_CLOEXEC);
    must(fd >= 0 && io_write_all(fd, data, size) == 0);
    try(fd, (int64_t)size, /* layer= */ true);
    try(fd, (int64_t)size, /* layer= */ false);
    return 0;
}
