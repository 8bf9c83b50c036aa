/* The digest of image `host`, over a small tree that stands for a host. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"
#include "image/digest.h"
#include "image/image.h"
#include "check.h"

static char base[64];
static int root = -1, state = -1;

static void put(const char *path, const char *text)
{
    char at[256];
    snprintf(at, sizeof at, "%s", path);
    for (char *slash = at; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        mkdirat(root, at, 0755);
        *slash = '/';
    }
    own_fd fd = openat(root, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    CHECK(fd >= 0);
    CHECK_INT(io_write_all(fd, text, strlen(text)), 0);
}

static void make_host(void)
{
    snprintf(base, sizeof base, "/tmp/cupel-image-XXXXXX");
    CHECK(mkdtemp(base) != NULL);
    root = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(root >= 0);
    put("var/lib/dpkg/status", "Package: numpy\nVersion: 1\n");
    put("var/lib/dpkg/info/numpy.list",
        "/.\n/usr/lib/python3/dist-packages/numpy/core.py\n/lib/python3.11/os.py\n/usr/bin/x\n");
    put("usr/lib/python3/dist-packages/numpy/core.py", "owned");
    put("usr/lib/python3.11/os.py", "owned");
    put("usr/bin/python3.11", "python");
    CHECK_INT(symlinkat("/usr/bin/python3.11", root, "usr/bin/python3"), 0);
    put("usr/bin/bash", "bash");
    CHECK_INT(mkdirat(root, "state", 0700), 0);
    state = openat(root, "state", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(state >= 0);
}

static void remove_host(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        execl("/bin/rm", "rm", "-rf", base, (char *)NULL);
        _exit(1);
    }
    waitpid(pid, NULL, 0);
}

/* The digest after a change, and whether it differs from the one before. */
static bool changed(char digest[IMAGE_DIGEST_ROOM])
{
    char now[IMAGE_DIGEST_ROOM];
    struct err err = ERR_INIT;
    CHECK_INT(image_digest_compute(root, now, &err), 0);
    bool differs = strcmp(now, digest) != 0;
    snprintf(digest, IMAGE_DIGEST_ROOM, "%s", now);
    return differs;
}

TEST(image_digest_follows_what_the_image_is_made_of)
{
    make_host();
    char digest[IMAGE_DIGEST_ROOM] = "";
    CHECK(changed(digest));
    CHECK(strncmp(digest, "sha256:", 7) == 0 && strlen(digest) == 71);
    CHECK(!changed(digest));
    put("usr/lib/python3/dist-packages/numpy/core.py", "dpkg vouches for this");
    CHECK(!changed(digest));
    put("usr/lib/python3.11/os.py", "and for this, under its old name");
    CHECK(!changed(digest));
    put("usr/lib/python3/dist-packages/numpy/__pycache__/core.cpython-311.pyc", "compiled");
    CHECK(!changed(digest));
    put("etc/hosts", "not in the image's digest");
    CHECK(!changed(digest));
    put("usr/lib/python3/dist-packages/mine.py", "unowned");
    CHECK(changed(digest));
    put("usr/lib/python3/dist-packages/mine.py", "other");
    CHECK(changed(digest));
    CHECK_INT(symlinkat("mine.py", root, "usr/lib/python3/dist-packages/link.py"), 0);
    CHECK(changed(digest));
    put("usr/lib/python3.12/new.py", "another python");
    CHECK(changed(digest));
    put("usr/share/nodejs/mine/index.js", "unowned");
    CHECK(changed(digest));
    put("usr/bin/python3.11", "another interpreter");
    CHECK(changed(digest));
    put("usr/bin/node", "now there is one");
    CHECK(changed(digest));
    put("var/lib/dpkg/status", "Package: numpy\nVersion: 2\n");
    CHECK(changed(digest));
    remove_host();
}

TEST(image_key_changes_with_stat_facts)
{
    make_host();
    char before[IMAGE_KEY_ROOM], after[IMAGE_KEY_ROOM];
    image_digest_key(root, before);
    image_digest_key(root, after);
    CHECK_TEXT(after, before);
    put("usr/lib/python3/dist-packages/new.py", "x");
    image_digest_key(root, after);
    CHECK(strcmp(before, after) != 0);
    put("var/lib/dpkg/status", "longer than it was before, by a good deal\n");
    image_digest_key(root, before);
    CHECK(strcmp(before, after) != 0);
    remove_host();
}

TEST(image_cache_is_trusted_while_the_key_holds)
{
    make_host();
    struct err err = ERR_INIT;
    struct image image = IMAGE_INIT;
    CHECK_INT(image_open_at(root, "host", state, false, &image, &err), 0);
    CHECK(!image.from_cache && !image.manifest);
    image.manifest = json_pack("{s:s}", "name", "host");
    CHECK_INT(image_save(&image, state, &err), 0);
    char digest[IMAGE_DIGEST_ROOM];
    snprintf(digest, sizeof digest, "%s", image.digest);
    image_done(&image);

    CHECK_INT(image_open_at(root, "host", state, false, &image, &err), 0);
    CHECK(image.from_cache && image.manifest);
    CHECK_TEXT(image.digest, digest);
    image_done(&image);
    CHECK_INT(image_open_at(root, "host", state, true, &image, &err), 0);
    CHECK(!image.from_cache && !image.manifest);
    image_done(&image);

    put("usr/lib/python3/dist-packages/new.py", "x");
    CHECK_INT(image_open_at(root, "host", state, false, &image, &err), 0);
    CHECK(!image.from_cache);
    CHECK(strcmp(image.digest, digest) != 0);
    image_done(&image);
    remove_host();
}

TEST(image_cache_that_is_not_ours_is_ignored)
{
    make_host();
    struct err err = ERR_INIT;
    struct image image = IMAGE_INIT;
    char key[IMAGE_KEY_ROOM], text[400];
    image_digest_key(root, key);
    static const char *const bodies[] = {
        "{\"schema\":2,\"key\":\"%s\",\"digest\":\"sha256:zz\"}",
        "{\"schema\":3,\"key\":\"%s\",\"digest\":\"sha256:\"}",
        "[\"%s\"]",
        "not json %s",
        "",
    };
    for (size_t i = 0; i < array_len(bodies); i++) {
        const char *mark = strstr(bodies[i], "%s");
        size_t head = mark ? (size_t)(mark - bodies[i]) : 0;
        snprintf(text, sizeof text, "%.*s%s%s", (int)head, bodies[i], mark ? key : "",
                 mark ? mark + 2 : "");
        put("state/image-host.json", text);
        CHECK_INT(image_open_at(root, "host", state, false, &image, &err), 0);
        CHECK(!image.from_cache);
        image_done(&image);
    }
    remove_host();
}

TEST(image_names_are_checked)
{
    make_host();
    struct err err = ERR_INIT;
    struct image image = IMAGE_INIT;
    char name[100], wrong[100];
    CHECK_INT(image_open_at(root, "ubuntu", -1, false, &image, &err), -1);
    CHECK_INT(err.kind, ERR_INPUT);
    CHECK_TEXT(err.field, "image");
    CHECK_INT(image_open_at(root, "", -1, false, &image, &err), -1);
    CHECK_INT(image_open_at(root, "hos", -1, false, &image, &err), -1);
    CHECK_INT(image_open_at(root, "host@", -1, false, &image, &err), -1);
    CHECK_INT(image_open_at(root, "host@sha256:12", -1, false, &image, &err), -1);
    CHECK_INT(image_open_at(root, "host", -1, false, &image, &err), 0);
    snprintf(name, sizeof name, "host@%s", image.digest);
    snprintf(wrong, sizeof wrong, "host@sha256:%064d", 0);
    image_done(&image);
    CHECK_INT(image_open_at(root, name, -1, false, &image, &err), 0);
    image_done(&image);
    CHECK_INT(image_open_at(root, wrong, -1, false, &image, &err), -1);
    remove_host();
}

TEST(image_of_a_host_without_dpkg_has_a_digest)
{
    make_host();
    CHECK_INT(unlinkat(root, "var/lib/dpkg/info/numpy.list", 0), 0);
    CHECK_INT(unlinkat(root, "var/lib/dpkg/info", AT_REMOVEDIR), 0);
    CHECK_INT(unlinkat(root, "var/lib/dpkg/status", 0), 0);
    char digest[IMAGE_DIGEST_ROOM] = "";
    CHECK(changed(digest));
    remove_host();
}
