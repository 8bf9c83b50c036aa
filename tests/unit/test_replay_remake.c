/* A recorded request made sendable again: contents, secrets, image, limits. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "contract/request.h"
#include "replay/calls.h"
#include "replay/remake.h"

#define SUM(digit) digit digit digit digit digit digit digit digit
#define A SUM("aaaaaaaa")
#define B SUM("bbbbbbbb")
#define D SUM("dddddddd")
#define DIGEST "sha256:" SUM("01234567")

/* A has text, B has bytes, D has a marker; nothing else is stored. */
static int content(void *user, const char *sha256, struct buf *out, struct err *err)
{
    (void)user;
    if (strcmp(sha256, A) == 0)
        return buf_add_text(out, "a,b\n");
    if (strcmp(sha256, B) == 0)
        return buf_add(out, "\xff\x00\xfe", 3);
    if (strcmp(sha256, D) == 0)
        return buf_add_text(out, "key [redacted:jwt:deadbeef]");
    return err_set(err, ERR_ABSENT, "there is no content");
}

static json_t *json_of(const char *text)
{
    own_str copy = buf_strdup(str_of(text));
    struct err err = ERR_INIT;
    for (char *at = copy; *at; at++)
        *at = *at == '\'' ? '"' : *at;
    json_t *value = json_read(str_of(copy), 1 << 20, &err);
    CHECK(value != NULL);
    return value;
}

/* The frame's text, or the err's. */
static char *made(const char *record, const char *secrets, bool any_image, struct err *err)
{
    own_json from = json_of(record);
    own_json given = json_of(secrets);
    const struct remake remake = { .content = content, .secrets = given, .any_image = any_image };
    *err = ERR_INIT;
    own_json frame = remake_run(&remake, from, NULL, err);
    CHECK((frame != NULL) == (err->kind == ERR_NONE));
    return frame ? json_write(frame, JSON_COMPACT | JSON_SORT_KEYS) : buf_strdup(str_of(err->text));
}

TEST(replay_remake_keeps_what_counts_and_drops_the_rest)
{
    struct err err;
    own_str text = made("{'run':'r_1','request':{'code':'1','language':'py','args':['x'],"
                        "'env':{'K':'v'},'seed':7,'profile':'analysis','limits':{'timeout_s':1},"
                        "'cache':{'ttl_s':5},'wait':false,'session':'s_1','stdin':null,"
                        "'inline_artifacts':true,'image':'host'},'result':{'provenance':"
                        "{'image_digest':'" DIGEST "','limits':{'timeout_s':2,'pids':9}}}}",
                        "{}", false, &err);
    CHECK_TEXT(text, "{\"request\":{\"args\":[\"x\"],\"code\":\"1\",\"env\":{\"K\":\"v\"},"
                     "\"image\":\"host@" DIGEST "\",\"language\":\"py\",\"limits\":{\"pids\":9,"
                     "\"timeout_s\":2},\"profile\":\"analysis\",\"seed\":7}}");
}

TEST(replay_remake_pins_the_image_unless_any_will_do)
{
    struct err err;
    static const char record[] = "{'request':{'code':'1'},'result':{'provenance':"
                                 "{'image_digest':'" DIGEST "'}}}";
    own_str pinned = made(record, "{}", false, &err);
    CHECK_TEXT(pinned, "{\"request\":{\"code\":\"1\",\"image\":\"host@" DIGEST "\"}}");
    own_str any = made(record, "{}", true, &err);
    CHECK_TEXT(any, "{\"request\":{\"code\":\"1\"}}");
    own_str bare = made("{'request':{'code':'1','image':'host@" DIGEST "'}}", "{}", true, &err);
    CHECK_TEXT(bare, "{\"request\":{\"code\":\"1\",\"image\":\"host\"}}");
}

TEST(replay_remake_reads_files_and_stdin_by_their_sums)
{
    struct err err;
    own_str text = made("{'request':{'code':'1','files':[{'path':'d.csv','sha256':'" A "',"
                        "'size_bytes':4,'readonly':true},{'path':'b','sha256':'" B "'}],"
                        "'stdin':{'sha256':'" A "'}}}",
                        "{}", false, &err);
    CHECK(strstr(text, "\"path\":\"d.csv\"") && strstr(text, "\"a,b\\n\"") &&
          strstr(text, "\"readonly\":true") && strstr(text, "\"base64\":\"/wD+\""));
    CHECK(strstr(text, "\"stdin\":\"a,b\\n\"") != NULL);
    own_str bytes = made("{'request':{'code':'1','stdin':{'sha256':'" B "'}}}", "{}", false, &err);
    CHECK(strstr(bytes, "\"stdin_base64\":\"/wD+\"") != NULL);
}

TEST(replay_remake_refuses_what_is_not_stored_by_name)
{
    static const struct {
        const char *record, *want;
        enum err_kind kind;
    } rows[] = {
        { "{'request':{'code':'1','files':[{'path':'d.csv','sha256':'" SUM("cccccccc") "'}]}}",
          "the bytes of 'd.csv' (sha256 cccccccccccc…) are not stored any more", ERR_ABSENT },
        { "{'request':{'code':'1','stdin':{'sha256':'" SUM("cccccccc") "'}}}",
          "the bytes of 'stdin' (sha256 cccccccccccc…) are not stored any more", ERR_ABSENT },
        { "{'request':{'code':'1','files':[{'path':'d.csv','sha256':null}]}}",
          "the bytes of 'd.csv' were not stored", ERR_ABSENT },
        { "{'request':{'code':'1','files':[{'path':'d.csv','sha256':'../../etc/passwd'}]}}",
          "the bytes of 'd.csv' were not stored", ERR_ABSENT },
        { "{'request':{'code':'1','files':[{'sha256':'" A "'}]}}",
          "file 1 of the record has no usable path", ERR_CONFLICT },
        { "{}", "the record has no request", ERR_CONFLICT },
        { "{'request':{'code':7}}", "the record has no request", ERR_CONFLICT },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        struct err err;
        own_str got = made(rows[i].record, "{}", false, &err);
        CHECK_TEXT(got, rows[i].want);
        CHECK_INT(err.kind, rows[i].kind);
        CHECK(err.hint[0] || rows[i].kind == ERR_CONFLICT);
    }
}

TEST(replay_remake_puts_secrets_in_the_place_of_their_markers)
{
    struct err err;
    static const char record[] =
        "{'request':{'code':'k = \\'[redacted:aws-key:0123abcd]\\' # [redacted:no]',"
        "'env':{'T':'[redacted:jwt:deadbeef][redacted:aws-key:0123abcd]'},"
        "'call':{'function':'f','args':[['[redacted:jwt:deadbeef]']]}}}";
    own_str quoted = buf_strdup(str_of(record));
    for (char *at = quoted; (at = strstr(at, "\\'")); at++)
        memcpy(at, "  ", 2);
    own_str without = made(quoted, "{'deadbeef':'x'}", false, &err);
    CHECK_TEXT(without, "'code' of the run has a secret that is not stored: "
                        "[redacted:aws-key:0123abcd]");
    CHECK_TEXT(err.field, "code");
    CHECK(strstr(err.hint, "--secret 0123abcd=VALUE") != NULL);
    own_str with = made(quoted, "{'deadbeef':'tok','0123abcd':'AKIA'}", false, &err);
    CHECK_TEXT(with, "{\"request\":{\"call\":{\"args\":[[\"tok\"]],\"function\":\"f\"},"
                     "\"code\":\"k =   AKIA   # [redacted:no]\",\"env\":{\"T\":\"tokAKIA\"}}}");
}

TEST(replay_remake_fills_secrets_into_stdin_but_not_into_files)
{
    struct err err;
    static const char record[] = "{'request':{'code':'1','stdin':{'sha256':'" D "'}}}";
    own_str without = made(record, "{}", false, &err);
    CHECK_TEXT(without, err.text);
    CHECK_TEXT(err.field, "stdin");
    own_str with = made(record, "{'deadbeef':'tok'}", false, &err);
    CHECK_TEXT(with, "{\"request\":{\"code\":\"1\",\"stdin\":\"key tok\"}}");
    own_str file = made("{'request':{'code':'1','files':[{'path':'f','sha256':'" D "'}]}}", "{}",
                        false, &err);
    CHECK(strstr(file, "[redacted:jwt:deadbeef]") != NULL);
    own_str path = made("{'request':{'code':'1','files':[{'path':'[redacted:jwt:deadbeef]',"
                        "'sha256':'" A "'}]}}",
                        "{}", false, &err);
    CHECK_TEXT(path, err.text);
    CHECK_TEXT(err.field, "files");
}

TEST(replay_remake_of_a_session_has_its_parts_and_files)
{
    struct err err = ERR_INIT;
    own_json recorded = json_of("{'language':'python','env':{'A':'b'},'limits':{'pids':8},"
                                "'files':[1],'code':'x','cache':{}}");
    own_json files = json_of("[{'path':'d.csv','sha256':'" A "'}]");
    const struct remake remake = { .content = content };
    own_json made_of = remake_session(&remake, recorded, files, DIGEST, &err);
    own_str text = json_write(made_of, JSON_COMPACT | JSON_SORT_KEYS);
    CHECK(strstr(text, "\"image\":\"host@" DIGEST "\"") && strstr(text, "a,b"));
    CHECK(!strstr(text, "code") && !strstr(text, "cache"));
    const struct request_ceilings ceilings = { .host_memory_bytes = INT64_C(8) << 30 };
    own_request request = REQUEST_INIT;
    CHECK_INT(request_from_session_json(made_of, &ceilings, &request, &err), 0);
}

TEST(replay_calls_are_definitions_that_ask_nobody)
{
    struct err err = ERR_INIT;
    own_replay_calls calls = { 0 };
    own_json record = json_of("{'redacted':1,'request':{'code':'1','tools':['db.*']}}");
    own_json stored = json_of(
        "{'whole':true,'tools':[{'name':'db.find','description':'d','input_schema':"
        "{'type':'object'},'effect':'irreversible','policy':'ask','command':['x'],'caps':"
        "{'calls':1}}],'calls':[{'number':1,'tool':'db.find','arguments':{'k':"
        "'[redacted:jwt:deadbeef]'},'outcome':{'value':1}}]}");
    own_json secrets = json_of("{'deadbeef':'tok'}");
    struct remake remake = { .content = content };
    CHECK_INT(replay_calls_open(&calls, &remake, record, stored, NULL, &err), -1);
    CHECK_TEXT(err.field, "calls");
    remake.secrets = secrets;
    CHECK_INT(replay_calls_open(&calls, &remake, record, stored, NULL, &err), 0);
    own_json frame = json_of("{'request':{'code':'1'}}");
    replay_calls_give(&calls, frame);
    own_str text = json_write(frame, JSON_COMPACT | JSON_SORT_KEYS);
    CHECK_TEXT(text, "{\"events\":true,\"request\":{\"code\":\"1\",\"tools\":[{\"caps\":{"
                     "\"at_once\":64,\"calls\":1000000,\"result_bytes\":16777216,"
                     "\"timeout_s\":3600},\"description\":\"d\",\"effect\":\"irreversible\","
                     "\"input_schema\":{\"type\":\"object\"},\"name\":\"db.find\","
                     "\"policy\":\"allow\"}]}}");
    own_json asked = json_of("{'k':'tok'}");
    CHECK(past_calls_take(calls.past, STR("db.find"), asked) != NULL);
}

TEST(replay_calls_that_are_not_stored_are_refused)
{
    static const struct {
        const char *record, *stored, *want;
        enum err_kind kind;
    } rows[] = {
        { "{'request':{'tools':['a']}}", NULL,
          "the run had tools, and its record does not have their calls", ERR_ABSENT },
        { "{'request':{}}", "{'whole':false,'tools':[],'calls':[]}",
          "the calls of the run's tools have more than 16 MiB: its record does not have them",
          ERR_CONFLICT },
        { "{'request':{}}", "{}",
          "the calls of the run's tools have more than 16 MiB: its record does not have them",
          ERR_CONFLICT },
        { "{'request':{'tools':[]}}", NULL, "", ERR_NONE },
        { "{}", NULL, "", ERR_NONE },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        struct err err = ERR_INIT;
        own_replay_calls calls = { 0 };
        own_json record = json_of(rows[i].record);
        own_json given = rows[i].stored ? json_of(rows[i].stored) : json_null();
        const struct remake remake = { .content = content };
        int rc = replay_calls_open(&calls, &remake, record, given, NULL, &err);
        CHECK_INT(rc, rows[i].kind == ERR_NONE ? 0 : -1);
        CHECK_TEXT(err.text, rows[i].want);
        CHECK_INT(err.kind, rows[i].kind);
        CHECK(rc == 0 || err.hint[0]);
        CHECK(calls.tools == NULL);
    }
}
