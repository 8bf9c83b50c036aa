/* build/image-maker: makes images for the tests. `image-maker NAME FOLDER` makes one of
 * a folder of the disk, `image-maker --host NAME FOLDER` one on the host, and
 * `image-maker --from IMAGE NAME FOLDER` one on top of another. The state folder is that of cupel;
 * as root the rights are dropped before the folder is read. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/own.h"
#include "box/host/box.h"
#include "cli/images/images.h"
#include "cli/term/term.h"

#define MTIME 1000000000

struct job {
    const char *base, *from, *name;
    int folder;
};

static int make(struct cli_images *images, const struct job *job, struct err *err)
{
    own_image_entry from = IMAGE_ENTRY_INIT, made = IMAGE_ENTRY_INIT;
    struct image_build *build = NULL;
    if (cli_images_open_state(images, err) < 0 ||
        cli_images_open_store(images, /* make= */ true, err) < 0 ||
        (job->from && image_store_find(&images->store, job->from, &from, err) < 0) ||
        image_build_start(&images->store, job->from ? &from : NULL, &build, err) < 0)
        return -1;
    own_json facts = json_pack("{s:s,s:s*}", "source", "a test", "base", job->base);
    /* On the host an environment would keep the zygote from serving the image. */
    if (job->base && strcmp(job->base, "none") == 0)
        json_object_set_new(facts, "env", json_pack("{s:s}", "GREETING", "hello"));
    int rc = image_build_take(build, job->folder, STR(""), MTIME, err);
    if (rc == 0)
        rc = image_build_finish(build, job->name, facts, &made, err);
    image_build_close(build);
    if (rc == 0)
        printf("%s\n", made.hex);
    return rc;
}

int main(int argc, char **argv)
{
    struct cli_images images = CLI_IMAGES_INIT;
    struct err err = ERR_INIT;
    struct job job = { .base = "none" };
    int at = 1;
    if (argc == 4 && strcmp(argv[1], "--host") == 0) {
        job.base = "host";
        at = 2;
    } else if (argc == 5 && strcmp(argv[1], "--from") == 0) {
        job.from = argv[2];
        job.base = NULL;
        at = 3;
    } else if (argc != 3) {
        fputs("usage: image-maker [--host | --from IMAGE] NAME FOLDER\n", stderr);
        return 2;
    }
    job.name = argv[at];
    own_fd folder = open(argv[at + 1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    job.folder = folder;
    int rc = folder < 0 ? err_sys(&err, "open '%.200s'", argv[at + 1]) : make(&images, &job, &err);
    cli_images_close(&images);
    return rc < 0 ? cli_term_refuse(&err, /* json= */ false) : 0;
}
