/* The image of a request and the packages that it asks for: what is taken, what is refused how. */
#include "check.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "contract/request.h"
#include "request_ask.h"

TEST(request_wrong_images_and_packages_name_the_field)
{
    static const struct {
        const char *member, *field;
    } rows[] = {
        { "\"image\": \"Debian\"", "image" },
        { "\"image\": \"../x\"", "image" },
        { "\"image\": \".x\"", "image" },
        { "\"image\": \"a/b\"", "image" },
        { "\"image\": \"a:1\"", "image" },
        { "\"image\": \"sha256:00\"", "image" },
        { "\"packages\": \"polars\"", "packages" },
        { "\"packages\": [1]", "packages[0]" },
        { "\"packages\": [\"polars\", \"\"]", "packages[1]" },
        { "\"packages\": [\"-r x\"]", "packages[0]" },
        { "\"packages\": [\"a=1\"]", "packages[0]" },
        { "\"packages\": [\"a==\"]", "packages[0]" },
        { "\"packages\": [\"a<2\"]", "packages[0]" },
        { "\"packages\": [\"a==1;x\"]", "packages[0]" },
        { "\"image\": 1", "image" },
        { "\"image\": \"\"", "image" },
    };
    for (size_t i = 0; i < array_len(rows); i++)
        CHECK_TEXT(ask_refused_with(rows[i].member).field, rows[i].field);
}

TEST(request_image_may_be_pinned)
{
    char digest[65], text[256];
    memset(digest, 'a', 64);
    digest[64] = 0;
    snprintf(text, sizeof text, "{\"code\":\"1\",\"image\":\"host@sha256:%s\"}", digest);
    own_request request = ask_accepted(text);
    CHECK_TEXT(request.image, "host");
    CHECK(strncmp(request.image_digest, "sha256:aaaa", 11) == 0);
    CHECK_INT(strlen(request.image_digest), 71);
    digest[10] = 'A';
    snprintf(text, sizeof text, "\"image\":\"host@sha256:%s\"", digest);
    CHECK_TEXT(ask_refused_with(text).field, "image");
    ask_refused_with("\"image\": \"host@\"");
    ask_refused_with("\"image\": \"host@sha256:\"");
    ask_refused_with("\"image\": \"host@md5:00\"");
    ask_refused_with("\"image\": \"other@sha256:00\"");
}

TEST(request_image_has_a_name_or_a_digest)
{
    char text[256], digest[80];
    snprintf(digest, sizeof digest, "sha256:%064d", 7);
    own_request plain = ask_accepted("{\"code\":\"1\",\"image\":\"data-2.1_x\"}");
    CHECK_TEXT(plain.image, "data-2.1_x");
    CHECK(!plain.image_digest);
    snprintf(text, sizeof text, "{\"code\":\"1\",\"image\":\"%s\"}", digest);
    own_request bare = ask_accepted(text);
    CHECK_TEXT(bare.image, digest);
    CHECK(!bare.image_digest);
    snprintf(text, sizeof text, "{\"code\":\"1\",\"image\":\"data@%s\"}", digest);
    own_request pinned = ask_accepted(text);
    CHECK_TEXT(pinned.image, "data");
    CHECK_TEXT(pinned.image_digest, digest);
    char name[REQUEST_IMAGE_NAME_MAX + 2];
    memset(name, 'a', sizeof name);
    name[sizeof name - 1] = 0;
    snprintf(text, sizeof text, "\"image\":\"%s\"", name);
    CHECK_TEXT(ask_refused_with(text).field, "image");
}

TEST(request_takes_its_image_from_the_ceilings_if_it_names_none)
{
    struct request_ceilings most = { .host_memory_bytes = INT64_C(1) << 40, .image = "data" };
    struct err err = ERR_INIT;
    own_request without = REQUEST_INIT, with = REQUEST_INIT;
    CHECK_INT(request_parse(STR("{\"code\":\"1\"}"), &most, &without, &err), 0);
    CHECK_TEXT(without.image, "data");
    CHECK_INT(request_parse(STR("{\"code\":\"1\",\"image\":\"host\"}"), &most, &with, &err), 0);
    CHECK_TEXT(with.image, "host");
}

TEST(request_packages_have_a_name_and_perhaps_a_version)
{
    struct request_package package;
    own_request request = ask_accepted("{\"code\":\"1\",\"packages\":[\"polars\",\"a-b.c==1.0\"]}");
    CHECK_INT(json_array_size(request.packages), 2);
    own_request none = ask_accepted("{\"code\":\"1\",\"packages\":[]}");
    CHECK(!none.packages);
    CHECK_INT(request_package_read(STR("polars"), &package), 0);
    CHECK(str_is(package.name, "polars") && package.version.len == 0);
    CHECK_INT(request_package_read(STR("a-b.c==1.0+x"), &package), 0);
    CHECK(str_is(package.name, "a-b.c") && str_is(package.version, "1.0+x") && !package.least);
    CHECK_INT(request_package_read(STR("a>=2"), &package), 0);
    CHECK(str_is(package.version, "2") && package.least);
    CHECK_INT(request_package_read(STR("a=="), &package), -1);
    CHECK_INT(request_package_read(STR("a-"), &package), -1);
}
