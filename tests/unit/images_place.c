/* Stores of images for tests, in one folder that goes with its process. */
#include "images_place.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"
#include "check.h"

static char all[] = "/tmp/cupel-unit-images-XXXXXX";
static unsigned places;
static pid_t maker;

static void clean(void)
{
    if (getpid() != maker)
        return;
    if (fork() == 0) {
        execl("/bin/rm", "rm", "-rf", all, (char *)NULL);
        _exit(1);
    }
    wait(NULL);
}

void images_place_open(struct images_place *place)
{
    struct err err = ERR_INIT;
    if (places++ == 0) {
        CHECK(mkdtemp(all) != NULL);
        maker = getpid();
        atexit(clean);
        check_clean = clean;
    }
    snprintf(place->path, sizeof place->path, "%s/%u", all, places);
    CHECK(mkdir(place->path, 0755) == 0);
    place->state = open(place->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    image_store_open(place->state, /* make= */ true, &place->store, &err);
    CHECK_TEXT(err.text, "");
}

struct image_build *images_start(struct images_place *place, const struct image_entry *from)
{
    struct err err = ERR_INIT;
    struct image_build *build = NULL;
    image_build_start(&place->store, from, &build, &err);
    CHECK_TEXT(err.text, "");
    return build;
}

static int64_t read_text(void *user, void *buffer, size_t room, struct err *err)
{
    struct str *rest = user;
    size_t n = rest->len < room ? rest->len : room;
    (void)err;
    memcpy(buffer, rest->at, n);
    *rest = (struct str){ rest->at + n, rest->len - n };
    return (int64_t)n;
}

void images_file(struct image_build *build, const char *path, const char *text, unsigned mode)
{
    struct err err = ERR_INIT;
    struct str rest = str_of(text);
    image_build_file(build, str_of(path), mode, 1000, read_text, &rest, &err);
    CHECK_TEXT(err.text, "");
}

void images_refused(int rc, const struct err *err, const char *words)
{
    CHECK_INT(rc, -1);
    CHECK_INT(err->kind, ERR_INPUT);
    if (!strstr(err->text, words))
        CHECK_TEXT(err->text, words);
}

void images_finish(struct image_build *build, const char *name, struct image_entry *out)
{
    struct err err = ERR_INIT;
    json_t *facts = json_pack("{s:s,s:s}", "base", "none", "source", "a test");
    image_build_finish(build, name, facts, out, &err);
    json_decref(facts);
    CHECK_TEXT(err.text, "");
    image_build_close(build);
}

void images_make(struct images_place *place, const char *name, const char *text,
                 struct image_entry *out)
{
    struct image_build *build = images_start(place, NULL);
    images_file(build, "etc/motd", text, 0644);
    images_finish(build, name, out);
}

static int count_below(int dirfd)
{
    own_image_names names = IMAGE_NAMES_INIT;
    int count = 0;
    CHECK(image_names_read(dirfd, &names) == 0);
    for (size_t i = 0; i < names.count; i++) {
        own_fd fd = openat(dirfd, names.at[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        count += fd >= 0 ? count_below(fd) : 1;
    }
    return count;
}

int images_count(const struct images_place *place, const char *folder)
{
    own_fd fd = openat(place->store.dirfd, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(fd >= 0);
    return count_below(fd);
}

void images_read(const struct images_place *place, const char *path, char out[256])
{
    if (io_read_text(place->store.dirfd, path, out, 256) < 0)
        snprintf(out, 256, "(none)");
}

bool images_stat(const struct images_place *place, const char *path, struct stat *out)
{
    return fstatat(place->store.dirfd, path, out, AT_SYMLINK_NOFOLLOW) == 0;
}
