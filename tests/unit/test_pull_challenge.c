/* WWW-Authenticate as registries send it, and as they should not. */
#include "check.h"

#include <string.h>

#include "base/attr.h"
#include "image/pull/challenge.h"

static const struct {
    const char *header;
    bool basic, bearer;
    const char *realm, *service, *scope;
} rows[] = {
    { "Bearer realm=\"https://a/token\",service=\"s\",scope=\"repository:x:pull\"", false, true,
      "https://a/token", "s", "repository:x:pull" },
    { "bearer  realm = \"https://a\" , service=s", false, true, "https://a", "s", "" },
    { "Basic realm=\"x\"", true, false, "", "", "" },
    { "Basic realm=\"x\", Bearer realm=\"https://a\"", true, true, "https://a", "", "" },
    { "Bearer realm=\"https://a\", Basic realm=\"x\"", true, true, "https://a", "", "" },
    { "Negotiate YWJj==, Basic realm=\"x\"", true, false, "", "", "" },
    { "Bearer realm=\"a\\\"b\\\\c\"", false, true, "a\"b\\c", "", "" },
    { "Bearer REALM=\"https://a\",error=\"invalid_token\"", false, true, "https://a", "", "" },
    { "Bearer realm=\"a, Basic b\"", false, true, "a, Basic b", "", "" },
    { "Bearer service=\"s\"", false, false, "", "", "" }, /* no realm */
    { "Bearer realm=\"\"", false, false, "", "", "" },
    { "Bearer realm=\"a\tb\"", false, false, "", "", "" },
    { "Digest realm=\"x\"", false, false, "", "", "" },
    { "Bearer realm=\"https://first\", Bearer realm=\"https://second\"", false, true,
      "https://first", "", "" },
    { "", false, false, "", "", "" },
    { "\"", false, false, "", "", "" },
    { "Bearer realm=\"open", false, true, "open", "", "" },
    { ",,,=,=\"", false, false, "", "", "" },
};

TEST(pull_challenge_forms)
{
    for (size_t i = 0; i < array_len(rows); i++) {
        struct pull_challenge found = { 0 };
        pull_challenge_add(&found, str_of(rows[i].header));
        if (found.basic != rows[i].basic || found.bearer != rows[i].bearer)
            check_failed(__FILE__, __LINE__, "%s: basic %d bearer %d", rows[i].header, found.basic,
                         found.bearer);
        CHECK_TEXT(found.realm, rows[i].realm);
        CHECK_TEXT(found.service, rows[i].service);
        CHECK_TEXT(found.scope, rows[i].scope);
    }
}

TEST(pull_challenge_adds_up_over_headers)
{
    struct pull_challenge found = { 0 };
    pull_challenge_add(&found, STR("Basic realm=\"x\""));
    pull_challenge_add(&found, STR("Bearer realm=\"https://a\""));
    pull_challenge_add(&found, STR("Bearer realm=\"https://b\""));
    CHECK(found.basic && found.bearer);
    CHECK_TEXT(found.realm, "https://a");
}

TEST(pull_challenge_refuses_a_realm_that_is_cut)
{
    char header[4096];
    struct pull_challenge found = { 0 };
    memset(header, 'a', sizeof header);
    memcpy(header, "Bearer realm=\"", 14);
    header[sizeof header - 1] = '"';
    pull_challenge_add(&found, (struct str){ header, sizeof header });
    CHECK(!found.bearer && !found.realm[0]);
}
