/* Facts of trees that are made here: where interpreters are, which links count. */
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"
#include "check.h"
#include "image/look.h"
#include "image/os_release.h"
#include "images_place.h"

static void make_folder(int tree, const char *path)
{
    own_fd fd = image_path_open(tree, str_of(path), /* make= */ true, NULL, NULL);
    CHECK(fd >= 0);
}

static void make_file(int tree, const char *path, const void *bytes, size_t len)
{
    char folder[200];
    snprintf(folder, sizeof folder, "%s", path);
    *strrchr(folder, '/') = 0;
    make_folder(tree, folder);
    own_fd fd = openat(tree, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
    CHECK(fd >= 0 && io_write_all(fd, bytes, len) == 0);
}

static void make_program(int tree, const char *path, const char *loader)
{
    struct {
        Elf64_Ehdr head;
        Elf64_Phdr part;
        char text[64];
    } program = { .head = { .e_phoff = sizeof program.head, .e_phentsize = sizeof program.part,
                            .e_phnum = 1 },
                  .part = { .p_type = PT_INTERP, .p_filesz = strlen(loader) + 1,
                            .p_offset = sizeof program.head + sizeof program.part } };
    memcpy(program.head.e_ident, ELFMAG, SELFMAG);
    program.head.e_ident[EI_CLASS] = ELFCLASS64;
    program.head.e_ident[EI_DATA] = ELFDATA2LSB;
    snprintf(program.text, sizeof program.text, "%s", loader);
    make_file(tree, path, &program, sizeof program);
}

static int make_tree(struct images_place *place)
{
    images_place_open(place);
    CHECK(mkdirat(place->state, "tree", 0755) == 0);
    return openat(place->state, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

TEST(debians_python_adds_to_usr_local)
{
    struct images_place place = IMAGES_PLACE_INIT;
    struct image_facts facts;
    struct err err = ERR_INIT;
    own_fd tree = make_tree(&place);
    make_program(tree, "usr/bin/python3.11", "/lib64/ld-linux-x86-64.so.2");
    CHECK(symlinkat("python3.11", tree, "usr/bin/python3") == 0);
    make_folder(tree, "usr/lib/python3/dist-packages");
    make_program(tree, "usr/bin/bash", "/lib64/ld-linux-x86-64.so.2");
    CHECK(symlinkat("usr/bin", tree, "bin") == 0);
    CHECK(symlinkat("bash", tree, "usr/bin/sh") == 0);
    make_file(tree, "etc/os-release", "NAME=x\nPRETTY_NAME=\"Debian 12\"\n", 31);
    CHECK(image_look(tree, &facts, &err) == 0);
    CHECK_TEXT(facts.python, "/usr/bin/python3.11");
    CHECK_INT(facts.python_minor, 11);
    CHECK_TEXT(facts.python_packages, "/usr/local/lib/python3.11/dist-packages");
    CHECK_TEXT(facts.libc, "glibc");
    CHECK_TEXT(facts.loader, "/lib64/ld-linux-x86-64.so.2");
    CHECK_TEXT(facts.bash, "/usr/bin/bash");
    CHECK_TEXT(facts.sh, "/usr/bin/bash");
    CHECK_TEXT(facts.node, "");
    CHECK_TEXT(facts.os, "Debian 12");
}

TEST(a_python_of_its_own_prefix_adds_to_site_packages)
{
    struct images_place place = IMAGES_PLACE_INIT;
    struct image_facts facts;
    struct err err = ERR_INIT;
    own_fd tree = make_tree(&place);
    make_program(tree, "opt/py/bin/python3.13", "/lib/ld-musl-x86_64.so.1");
    make_folder(tree, "usr/local/bin");
    CHECK(symlinkat("/opt/py/bin/python3.13", tree, "usr/local/bin/python3") == 0);
    CHECK(image_look(tree, &facts, &err) == 0);
    CHECK_TEXT(facts.python, "/opt/py/bin/python3.13");
    CHECK_INT(facts.python_minor, 13);
    CHECK_TEXT(facts.python_packages, "/opt/py/lib/python3.13/site-packages");
    CHECK_TEXT(facts.libc, "musl");
}

TEST(the_version_of_python_is_also_read_from_its_library)
{
    struct images_place place = IMAGES_PLACE_INIT;
    struct image_facts facts;
    struct err err = ERR_INIT;
    own_fd tree = make_tree(&place);
    make_file(tree, "usr/bin/python3", "static", 6);
    make_folder(tree, "usr/lib/python3.8");
    CHECK(image_look(tree, &facts, &err) == 0);
    CHECK_INT(facts.python_minor, 8);
    CHECK_TEXT(facts.python_packages, "/usr/lib/python3.8/site-packages");
    CHECK_TEXT(facts.libc, "");
}

TEST(links_lead_nowhere_but_into_the_tree)
{
    struct images_place place = IMAGES_PLACE_INIT;
    struct image_facts facts;
    struct err err = ERR_INIT;
    own_fd tree = make_tree(&place);
    make_folder(tree, "usr/bin");
    /* What it leads to is there outside: the test's own shell. */
    CHECK(symlinkat("../../../../../../../../bin/sh", tree, "usr/bin/sh") == 0);
    CHECK(symlinkat("/proc/self/exe", tree, "usr/bin/bash") == 0);
    CHECK(symlinkat("node", tree, "usr/bin/node") == 0); /* for ever */
    CHECK(symlinkat("loop", tree, "loop") == 0);
    CHECK(symlinkat("/loop/python3", tree, "usr/bin/python3") == 0);
    CHECK(image_look(tree, &facts, &err) == 0);
    CHECK_TEXT(facts.sh, "");
    CHECK_TEXT(facts.bash, "");
    CHECK_TEXT(facts.node, "");
    CHECK_TEXT(facts.python, "");
    CHECK_TEXT(facts.os, "");
}

TEST(an_empty_tree_has_no_facts)
{
    struct images_place place = IMAGES_PLACE_INIT;
    struct image_facts facts, none = { 0 };
    struct err err = ERR_INIT;
    own_fd tree = make_tree(&place);
    CHECK(image_look(tree, &facts, &err) == 0);
    CHECK(memcmp(&facts, &none, sizeof facts) == 0);
    images_refused(image_look(-1, &facts, &err), &err, "cannot be read");
}

TEST(the_name_of_a_system_is_printable)
{
    char out[12];
    image_os_release(STR("ID=x\nNAME='A\x1b[31m\tB'\n"), out, sizeof out);
    CHECK_TEXT(out, "A[31mB");
    image_os_release(STR("PRETTY_NAME=\"a name that is too long\""), out, sizeof out);
    CHECK_TEXT(out, "a name that");
    image_os_release(STR("PRETTY_NAMES=x"), out, sizeof out);
    CHECK_TEXT(out, "");
}
