/* References to images in registries: each form, and each way to write none. */
#include "check.h"

#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "image/pull/ref.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const struct {
    const char *text, *registry, *server, *repository, *tag, *digest, *name;
} good[] = {
    { "localhost:5000/tool", "localhost:5000", "localhost:5000", "tool", "latest", "", "tool" },
    { "127.0.0.1:5000/a/b/tool:1.2", "127.0.0.1:5000", "127.0.0.1:5000", "a/b/tool", "1.2", "",
      "tool" },
    { "[::1]:5000/tool:x", "[::1]:5000", "[::1]:5000", "tool", "x", "", "tool" },
    { "Example.ORG/a__b/c--d", "example.org", "example.org", "a__b/c--d", "latest", "", "c--d" },
    { "example.org/t@sha256:" HEX, "example.org", "example.org", "t", "", "sha256:" HEX, "t" },
    { "example.org/t:1@sha256:" HEX, "example.org", "example.org", "t", "1", "sha256:" HEX, "t" },
    { "docker://localhost/x", "localhost", "localhost", "x", "latest", "", "x" },
    { "docker.io/debian", "docker.io", "registry-1.docker.io", "library/debian", "latest", "",
      "debian" },
    { "docker.io/team/debian:12", "docker.io", "registry-1.docker.io", "team/debian", "12", "",
      "debian" },
    { "example.org/team/host", "example.org", "example.org", "team/host", "latest", "",
      "host-image" },
};

TEST(pull_ref_reads_every_form)
{
    for (size_t i = 0; i < array_len(good); i++) {
        struct err err = ERR_INIT;
        struct pull_ref ref;
        char name[64];
        if (pull_ref_read(good[i].text, NULL, &ref, &err) < 0)
            check_failed(__FILE__, __LINE__, "%s: %s", good[i].text, err.text);
        CHECK_TEXT(ref.registry, good[i].registry);
        CHECK_TEXT(ref.server, good[i].server);
        CHECK_TEXT(ref.repository, good[i].repository);
        CHECK_TEXT(ref.tag, good[i].tag);
        CHECK_TEXT(ref.digest, good[i].digest);
        pull_ref_name(&ref, name, sizeof name);
        CHECK_TEXT(name, good[i].name);
    }
}

TEST(pull_ref_written_reads_back_as_itself)
{
    for (size_t i = 0; i < array_len(good); i++) {
        struct err err = ERR_INIT;
        struct pull_ref ref, again;
        char text[PULL_REF_ROOM];
        CHECK_INT(pull_ref_read(good[i].text, NULL, &ref, &err), 0);
        pull_ref_text(&ref, text);
        CHECK_INT(pull_ref_read(text, NULL, &again, &err), 0);
        CHECK_TEXT(again.repository, ref.repository);
        CHECK_TEXT(again.tag, ref.tag);
        CHECK_TEXT(again.digest, ref.digest);
    }
}

static const char *const bad[] = {
    "", "tool", "tool:1", "team/tool", "docker://", "/tool", "example.org/", "example.org//x",
    "example.org/x/", "example.org/Tool", "example.org/.x", "example.org/x.", "example.org/a..b",
    "example.org/a___b", "example.org/a b", "example.org/x:", "example.org/x:-a",
    "example.org/x:a/b:c", "example.org:0/x", "example.org:65536/x", "example.org:/x",
    "user@example.org/x", "example.org/x@sha256:12", "example.org/x@md5:" HEX,
    "example.org/x@sha256:" HEX "0", "example.org/x@sha256:" HEX "@sha256:" HEX,
    "example.org/../x", "exa mple.org/x", "-example.org/x", "[::1/x", "a.b[::1]/x",
    "example.org/x?y=1", "example.org/x#y", "example.org/\nx", "example.org/x:a\r\nb",
};

TEST(pull_ref_refuses_everything_else)
{
    for (size_t i = 0; i < array_len(bad); i++) {
        struct err err = ERR_INIT;
        struct pull_ref ref;
        if (pull_ref_read(bad[i], NULL, &ref, &err) == 0)
            check_failed(__FILE__, __LINE__, "'%s' was taken", bad[i]);
        CHECK_INT(err.kind, ERR_INPUT);
        CHECK_TEXT(err.field, "ref");
        CHECK(err.bound[0] && err.hint[0]);
    }
}

TEST(pull_ref_takes_names_without_a_registry_from_the_configured_one)
{
    struct err err = ERR_INIT;
    struct pull_ref ref;
    CHECK_INT(pull_ref_read("team/tool:1", "registry.test:5000", &ref, &err), 0);
    CHECK_TEXT(ref.registry, "registry.test:5000");
    CHECK_TEXT(ref.repository, "team/tool");
    CHECK_INT(pull_ref_read("tool:1", "docker.io", &ref, &err), 0);
    CHECK_TEXT(ref.repository, "library/tool");
    CHECK_INT(pull_ref_read("tool", "bad host", &ref, &err), -1);
    CHECK_INT(pull_ref_read("team/tool", NULL, &ref, &err), -1);
    CHECK(strstr(err.hint, "images.registry"));
}

TEST(pull_ref_is_too_long_at_700_bytes)
{
    struct err err = ERR_INIT;
    struct pull_ref ref;
    char text[1024];
    snprintf(text, sizeof text, "example.org/%0300d", 1);
    CHECK_INT(pull_ref_read(text, NULL, &ref, &err), -1);
    snprintf(text, sizeof text, "example.org/x:%0129d", 1);
    CHECK_INT(pull_ref_read(text, NULL, &ref, &err), -1);
    snprintf(text, sizeof text, "example.org/%0800d", 1);
    CHECK_INT(pull_ref_read(text, NULL, &ref, &err), -1);
}

TEST(pull_ref_knows_loopback_addresses)
{
    static const struct {
        const char *text;
        bool loopback;
    } rows[] = {
        { "localhost/x", true },         { "localhost:5000/x", true },
        { "127.0.0.1:5000/x", true },    { "127.1.2.3/x", true },
        { "[::1]:5000/x", true },        { "example.org/x", false },
        { "127.0.0.1.org/x", false },    { "128.0.0.1/x", false },
        { "localhost.org/x", false },    { "[::2]/x", false },
        { "127.0.0.999/x", false },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        struct err err = ERR_INIT;
        struct pull_ref ref;
        CHECK_INT(pull_ref_read(rows[i].text, NULL, &ref, &err), 0);
        if (pull_ref_is_loopback(&ref) != rows[i].loopback)
            check_failed(__FILE__, __LINE__, "%s", rows[i].text);
    }
}
