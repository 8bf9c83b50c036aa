/* Credentials in docker's file: the entry that fits best, and those that need a program. */
#include "check.h"

#include <string.h>

#include "base/attr.h"
#include "image/pull/auth_file.h"

#define PAIR "dTpw"  /* u:p */
#define PAIR2 "djpx" /* v:q */

static const struct {
    const char *file, *ref, *auth; /* auth NULL: refused */
    const char *says;
} rows[] = {
    { "{}", "a.org/x", "", "" },
    { "{\"auths\":{\"a.org\":{\"auth\":\"" PAIR "\"}}}", "a.org/x", PAIR, "" },
    { "{\"auths\":{\"https://a.org/\":{\"auth\":\"" PAIR "\"}}}", "a.org/x", PAIR, "" },
    { "{\"auths\":{\"a.org\":{\"auth\":\"" PAIR "\"}}}", "a.org:5000/x", "", "" },
    { "{\"auths\":{\"a.org:5000\":{\"auth\":\"" PAIR "\"}}}", "a.org/x", "", "" },
    { "{\"auths\":{\"a.or\":{\"auth\":\"" PAIR "\"}}}", "a.org/x", "", "" },
    { "{\"auths\":{\"a.org\":{\"auth\":\"" PAIR "\"},\"a.org/team\":{\"auth\":\"" PAIR2 "\"}}}",
      "a.org/team/x", PAIR2, "" },
    { "{\"auths\":{\"a.org\":{\"auth\":\"" PAIR "\"},\"a.org/team\":{\"auth\":\"" PAIR2 "\"}}}",
      "a.org/teams/x", PAIR, "" },
    { "{\"auths\":{\"https://index.docker.io/v1/\":{\"auth\":\"" PAIR "\"}}}", "docker.io/debian",
      PAIR, "" },
    { "{\"auths\":{\"a.org\":{}},\"credsStore\":\"desktop\"}", "a.org/x", NULL, "helper" },
    { "{\"auths\":{},\"credsStore\":\"desktop\"}", "a.org/x", "", "" },
    { "{\"credHelpers\":{\"a.org\":\"gcloud\"}}", "a.org/x", NULL, "helper" },
    { "{\"credHelpers\":{\"b.org\":\"gcloud\"}}", "a.org/x", "", "" },
    { "{\"auths\":{\"a.org\":{\"identitytoken\":\"abc\"}}}", "a.org/x", NULL, "identity token" },
    { "{\"auths\":{\"a.org\":{\"auth\":\"!!\"}}}", "a.org/x", NULL, "no user and password" },
    { "{\"auths\":{\"a.org\":{\"auth\":\"YWJj\"}}}", "a.org/x", NULL, "no user and password" },
    { "{\"auths\":{\"a.org\":{\"auth\":\"YTpiCg==\"}}}", "a.org/x", NULL, "no user and password" },
    { "{\"auths\":[]}", "a.org/x", "", "" },
    { "[]", "a.org/x", NULL, "no JSON object" },
    { "{", "a.org/x", NULL, "credentials" },
};

TEST(pull_auth_entries)
{
    for (size_t i = 0; i < array_len(rows); i++) {
        struct err err = ERR_INIT;
        struct pull_ref ref;
        char auth[PULL_BASIC_ROOM];
        CHECK_INT(pull_ref_read(rows[i].ref, NULL, &ref, &err), 0);
        int rc = pull_auth_find(str_of(rows[i].file), &ref, auth, &err);
        if ((rc == 0) != (rows[i].auth != NULL))
            check_failed(__FILE__, __LINE__, "row %zu: %d %s", i, rc, err.text);
        if (rows[i].auth)
            CHECK_TEXT(auth, rows[i].auth);
        else if (!strstr(err.text, rows[i].says))
            check_failed(__FILE__, __LINE__, "row %zu: '%s' lacks '%s'", i, err.text, rows[i].says);
    }
}
