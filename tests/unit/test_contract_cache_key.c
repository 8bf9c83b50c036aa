/* The key of the cache: two requests share it if, and only if, they ask for the same run. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/hash.h"
#include "contract/request.h"

#define DIGEST "sha256:1111111111111111111111111111111111111111111111111111111111111111"
#define OTHER_DIGEST "sha256:2222222222222222222222222222222222222222222222222222222222222222"

static const struct request_ceilings ceilings = { .host_memory_bytes = (int64_t)64 << 30 };

struct key {
    char hex[HASH_HEX_ROOM];
};

static struct key key_of(const char *text, const char *digest)
{
    own_request request = REQUEST_INIT;
    struct err err = ERR_INIT;
    struct key key = { "" };
    if (request_parse(str_of(text), &ceilings, &request, &err) < 0)
        check_failed(__FILE__, __LINE__, "%s refused: %s", text, err.text);
    else
        request_cache_key(&request, digest, key.hex);
    return key;
}

/* Each of them is another run than every other. */
static const char *const different[] = {
    "{'code':'1'}",
    "{'code':'1 '}",
    "{'code':'','stdin':'1'}",
    "{'code':'1','language':'bash'}",
    "{'code':'1','language':'javascript'}",
    "{'code':'1','stdin':'x'}",
    "{'code':'1','stdin':'xa'}",
    "{'code':'1','args':['']}",
    "{'code':'1','args':['','']}",
    "{'code':'1','args':['x']}",
    "{'code':'1','args':['xa']}",
    "{'code':'1','args':['x','a']}",
    "{'code':'1','args':['a','x']}",
    "{'code':'1','args':['xa','']}",
    "{'code':'1','args':['','xa']}",
    "{'code':'1','env':{'A':''}}",
    "{'code':'1','env':{'A':'B'}}",
    "{'code':'1','env':{'A':'B','B':''}}",
    "{'code':'1','env':{'AB':''}}",
    "{'code':'1','env':{'A':'B=','C':''}}",
    "{'code':'1','env':{'A':'B','C':'='}}",
    "{'code':'1','call':{'function':'f'}}",
    "{'code':'1','call':{'function':'g'}}",
    "{'code':'1','call':{'function':'f','args':[1]}}",
    "{'code':'1','call':{'function':'f','args':[1.0]}}",
    "{'code':'1','call':{'function':'f','args':['1']}}",
    "{'code':'1','call':{'function':'f','kwargs':{'a':1}}}",
    "{'code':'1','files':[{'path':'a','text':''}]}",
    "{'code':'1','files':[{'path':'a','text':'b'}]}",
    "{'code':'1','files':[{'path':'ab','text':''}]}",
    "{'code':'1','files':[{'path':'a','text':'','readonly':true}]}",
    "{'code':'1','files':[{'path':'a','text':''},{'path':'b','text':''}]}",
    "{'code':'1','files':[{'path':'a','text':'b'},{'path':'b','text':''}]}",
    "{'code':'1','files':[{'path':'a','text':''},{'path':'b','text':'b'}]}",
    "{'code':'1','files':[{'path':'a','base64':'AA=='}]}",
    "{'code':'1','profile':'analysis'}",
    "{'code':'1','seed':0}",
    "{'code':'1','seed':1}",
    "{'code':'1','on_output_limit':'stop'}",
    "{'code':'1','artifacts':'inline'}",
    "{'code':'1','limits':{'timeout_s':4}}",
    "{'code':'1','limits':{'timeout_s':4.001}}",
    "{'code':'1','limits':{'cpu_s':4}}",
    "{'code':'1','limits':{'memory_bytes':500000000}}",
    "{'code':'1','limits':{'disk_bytes':9000000}}",
    "{'code':'1','limits':{'pids':9}}",
    "{'code':'1','limits':{'cpus':2}}",
    "{'code':'1','limits':{'input_bytes':9000000}}",
    "{'code':'1','limits':{'stdout_bytes':9000}}",
    "{'code':'1','limits':{'stderr_bytes':9000}}",
    "{'code':'1','limits':{'artifact_bytes':9000}}",
    "{'code':'1','limits':{'artifact_files':9}}",
};

/* The texts have ' for " . */
static char *json(const char *text)
{
    char *copy = strdup(text);
    for (char *at = copy; *at; at++)
        *at = *at == '\'' ? '"' : *at;
    return copy;
}

static struct key key_of_quoted(const char *text)
{
    char *copy = json(text);
    struct key key = key_of(copy, DIGEST);
    free(copy);
    return key;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(((const struct key *)a)->hex, ((const struct key *)b)->hex);
}

TEST(cache_key_no_two_different_requests_share_one)
{
    struct key keys[array_len(different) + 2];
    size_t count = 0;
    for (; count < array_len(different); count++)
        keys[count] = key_of_quoted(different[count]);
    keys[count++] = key_of("{\"code\":\"1\"}", OTHER_DIGEST);
    keys[count++] = key_of("{\"code\":\"1\"}", "");
    qsort(keys, count, sizeof *keys, by_text);
    for (size_t i = 1; i < count; i++)
        CHECK(strcmp(keys[i - 1].hex, keys[i].hex) != 0);
    CHECK_INT(strlen(keys[0].hex), 64);
}

TEST(cache_key_the_spelling_of_a_request_does_not_matter)
{
    static const char *const same[][2] = {
        { "{'code':'1'}", "{'language':'python','code':'1'}" },
        { "{'code':'1','language':'py'}", "{'code':'1','language':'python'}" },
        { "{'code':'1','language':'js'}", "{'code':'1','language':'node'}" },
        { "{'code':'1'}", "{'code':'1','stdin':'','args':[],'env':{},'files':[]}" },
        { "{'code':'1'}", "{'code':'1','profile':'baseline','limits':{'timeout_s':5,'pids':64}}" },
        { "{'code':'1'}", "{'code':'1','on_output_limit':'truncate'}" },
        { "{'code':'1'}", "{'code':'1','cache':{'ttl_s':60}}" },
        { "{'code':'1','cache':{'ttl_s':9}}", "{'code':'1','cache':{'ttl_s':60}}" },
        { "{'code':'1','env':{'A':'1','B':'2'}}", "{'code':'1','env':{'B':'2','A':'1'}}" },
        { "{'code':'1','files':[{'path':'a','text':'1'},{'path':'b','text':'2'}]}",
          "{'code':'1','files':[{'path':'b','text':'2'},{'path':'a','text':'1'}]}" },
        { "{'code':'1','files':[{'path':'a','text':'1'}]}",
          "{'code':'1','files':[{'path':'a','base64':'MQ==','readonly':false}]}" },
        { "{'code':'1','call':{'function':'f','kwargs':{'a':1,'b':2}}}",
          "{'code':'1','call':{'kwargs':{'b':2,'a':1},'function':'f'}}" },
    };
    for (size_t i = 0; i < array_len(same); i++)
        CHECK_TEXT(key_of_quoted(same[i][0]).hex, key_of_quoted(same[i][1]).hex);
}

/* --- one text, cut at random into the fields that take text --- */

enum { FIELDS = 7, LETTERS = 8 };

static void write_cut(const size_t at[FIELDS + 1], const char *text, char *out, size_t room)
{
    static const char form[] = "{\"code\":\"%.*s\",\"stdin\":\"%.*s\",\"args\":[\"%.*s\",\"%.*s\"],"
                               "\"env\":{\"N%.*s\":\"%.*s\"},"
                               "\"files\":[{\"path\":\"f\",\"text\":\"%.*s\"}]}";
#define PART(i) (int)(at[(i) + 1] - at[i]), text + at[i]
    snprintf(out, room, form, PART(0), PART(1), PART(2), PART(3), PART(4), PART(5), PART(6));
#undef PART
}

/* Every way to cut eight letters into seven fields: 3,003 requests, and no two share a key. */
TEST(cache_key_knows_where_a_field_ends)
{
    static struct key keys[4096];
    size_t at[FIELDS + 1] = { 0 }, count = 0;
    char text[512];
    at[FIELDS] = LETTERS;
    for (;;) {
        write_cut(at, "aaaaaaaa", text, sizeof text);
        keys[count++] = key_of(text, DIGEST);
        int i = FIELDS - 1;
        while (i > 0 && at[i] == LETTERS)
            i--;
        if (i == 0)
            break;
        at[i]++;
        for (int j = i + 1; j < FIELDS; j++)
            at[j] = at[i];
    }
    CHECK_INT(count, 3003);
    qsort(keys, count, sizeof *keys, by_text);
    for (size_t i = 1; i < count; i++)
        CHECK(strcmp(keys[i - 1].hex, keys[i].hex) != 0);
}
