/* Differences of records: each kind is made, and seen; what does not count makes none. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "replay/diff.h"
#include "store/records/look.h"

static const char base[] =
    "{'run':'r_a','status':'ok','started_at':1.5,'engine':'cupel 1','owner':'','session':null,"
    "'request':{'language':'py','code':'one\\ntwo\\nthree\\n','args':['a'],'env':{'K':'v'},"
    "'stdin':{'sha256':'11','size_bytes':2},'seed':7,"
    "'files':[{'path':'in.csv','size_bytes':3,'sha256':'aa','readonly':false}]},"
    "'result':{'run':'r_a','exit_code':0,'signal':null,'limits_hit':[],'stdout':'a\\nb\\nc\\nd\\n',"
    "'stderr':'','stdout_bytes':8,'stderr_bytes':0,'truncated':false,"
    "'results':[{'text/plain':'1','image/png':'AAAA','application/json':{'x':[1,2]}}],"
    "'error':null,'denied':[],'artifacts':[{'path':'o.txt','size_bytes':1,'sha256':'bb'}],"
    "'skipped':[],'state':'none','metrics':{'wall_ms':1},"
    "'provenance':{'image_digest':'sha256:1','limits':{'timeout_s':5}}},'error':null}";

/* JSON in single quotes, for tests. */
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

/* The base with an edit. */
static json_t *edited(const char *edit)
{
    json_t *record = json_of(base);
    own_json change = json_of(edit);
    CHECK_INT(json_object_update_recursive(record, change), 0);
    return record;
}

/* "field kind, field kind" of all differences. */
static char *summary(const json_t *list)
{
    size_t i;
    json_t *row;
    struct buf out = BUF_INIT(10000);
    json_array_foreach (list, i, row) {
        buf_printf(&out, "%s%s %s", i ? ", " : "", json_string_value(json_object_get(row, "field")),
                   json_string_value(json_object_get(row, "kind")));
        CHECK(json_object_get(row, "was") && json_object_get(row, "is"));
    }
    return buf_take(&out);
}

static json_t *against_base(const char *edit)
{
    own_json was = json_of(base);
    own_json is = edited(edit);
    return diff_records(was, is);
}

TEST(replay_diff_sees_each_kind_of_difference)
{
    static const struct {
        const char *edit, *want;
    } rows[] = {
        { "{'status':'error'}", "status value" },
        { "{'result':{'exit_code':3}}", "exit_code value" },
        { "{'result':{'signal':9}}", "signal value" },
        { "{'result':{'state':'rolled_back'}}", "state value" },
        { "{'result':{'stdout':'a\\nB\\nc\\nd\\n'}}", "stdout text" },
        { "{'result':{'stderr':'oh'}}", "stderr text" },
        { "{'result':{'stdout_bytes':9}}", "stdout_bytes value" },
        { "{'result':{'stdout_base64':'AAAA'}}", "stdout bytes" },
        { "{'result':{'truncated':true}}", "truncated value" },
        { "{'result':{'results':[]}}", "results[0] gone" },
        { "{'result':{'results':[{'text/plain':'2','image/png':'AAAA','application/json':"
          "{'x':[1,2]}}]}}",
          "results[0].text/plain text" },
        { "{'result':{'results':[{'text/plain':'1','image/png':'AAAB','application/json':"
          "{'x':[1,2]}}]}}",
          "results[0].image/png bytes" },
        { "{'result':{'results':[{'text/plain':'1','image/png':'AAAA','application/json':"
          "{'x':[1,3]}}]}}",
          "results[0].application/json value" },
        { "{'result':{'results':[{'text/plain':'1','application/json':{'x':[1,2]},"
          "'text/html':'<p>'}]}}",
          "results[0].image/png gone, results[0].text/html added" },
        { "{'result':{'error':{'kind':'exception','name':'E','message':'m'}}}", "error added" },
        { "{'result':{'artifacts':[]}}", "artifacts gone" },
        { "{'result':{'artifacts':[{'path':'o.txt','size_bytes':1,'sha256':'cc'}]}}",
          "artifacts bytes" },
        { "{'result':{'artifacts':[{'path':'o.txt','size_bytes':1,'sha256':'bb'},"
          "{'path':'p','size_bytes':1,'sha256':'bb'}]}}",
          "artifacts added" },
        { "{'result':{'skipped':[{'path':'x','reason':'link'}]}}", "skipped added" },
        { "{'result':{'denied':[{'call':'mount','count':1}]}}", "denied added" },
        { "{'result':{'limits_hit':['memory']}}", "limits_hit added" },
        { "{'result':null}", "result gone" },
        { "{'request':{'code':'one\\ntwo\\nTHREE\\n'}}", "code text" },
        { "{'request':{'language':'bash'}}", "language value" },
        { "{'request':{'args':['a','b']}}", "args value" },
        { "{'request':{'env':{'K':'w'}}}", "env.K text" },
        { "{'request':{'env':{'L':'w'}}}", "env.L added" },
        { "{'request':{'stdin':{'sha256':'12'}}}", "stdin value" },
        { "{'request':{'call':{'function':'f'}}}", "call value" },
        { "{'request':{'seed':8}}", "seed value" },
        { "{'request':{'profile':'analysis'}}", "profile value" },
        { "{'request':{'on_error':'rollback'}}", "on_error value" },
        { "{'request':{'files':[{'path':'in.csv','size_bytes':3,'sha256':'ab'}]}}",
          "files bytes" },
        { "{'request':{'files':[]}}", "files gone" },
        { "{'result':{'provenance':{'image_digest':'sha256:2'}}}", "image value" },
        { "{'result':{'provenance':{'limits':{'timeout_s':6}}}}", "limits.timeout_s value" },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        own_json list = against_base(rows[i].edit);
        own_str got = summary(list);
        CHECK_TEXT(got, rows[i].want);
    }
}

TEST(replay_diff_ignores_ids_times_and_metrics)
{
    static const char *const rows[] = {
        "{}",
        "{'run':'r_b','started_at':9.5,'engine':'cupel 2','owner':'x','session':'s_1','cell':3,"
        "'replay_of':'r_a','pinned':true,'redacted':4,'task':'t_1','step':2,'door':'http'}",
        "{'result':{'run':'r_b','metrics':{'wall_ms':99},'session':'s_1','cell':9,'cached':true,"
        "'isolation':{'walls':[]},'outputs':[1],'late':[],'names_added':[1]}}",
        "{'request':{'language':'python','profile':'baseline','on_error':'keep'}}",
        "{'result':{'provenance':{'limits':{'timeout_s':5.0},'engine':'x'}}}",
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        own_json list = against_base(rows[i]);
        own_str got = summary(list);
        CHECK_TEXT(got, "");
    }
}

static json_t *texts(const char *was, const char *is)
{
    struct diff diff = { .list = json_array() };
    diff_text(&diff, "stdout", str_of(was), str_of(is));
    return diff.list;
}

static const char *member(const json_t *list, const char *name)
{
    return json_string_value(json_object_get(json_array_get(list, 0), name));
}

TEST(replay_diff_of_a_text_names_the_first_line_that_differs)
{
    own_json list = texts("1\n2\n3\n4\n5\n6\n", "1\n2\n3\n4\nfive\n6\n");
    CHECK_INT(json_array_size(list), 1);
    CHECK_INT(json_integer_value(json_object_get(json_array_get(list, 0), "line")), 5);
    CHECK_TEXT(member(list, "before"), "2\n3\n4\n");
    CHECK_TEXT(member(list, "was"), "5\n");
    CHECK_TEXT(member(list, "is"), "five\n");
}

TEST(replay_diff_of_a_text_is_cut)
{
    own_buf was = BUF_INIT(100000), is = BUF_INIT(100000);
    for (int i = 0; i < 20; i++) {
        buf_printf(&was, "%0500d\n", i);
        buf_printf(&is, "%0500d\n", i + 100);
    }
    own_json list = texts(was.at, is.at);
    const json_t *row = json_array_get(list, 0);
    CHECK_INT(json_integer_value(json_object_get(row, "was_more")), 15);
    CHECK(strlen(member(list, "was")) < (DIFF_WIDTH + 10) * DIFF_LINES);
    CHECK(strncmp(member(list, "was"), "…", 3) == 0); /* around the byte that differs */
}

TEST(replay_diff_of_a_text_sees_a_last_newline_and_added_lines)
{
    own_json newline = texts("a\nb", "a\nb\n");
    CHECK_TEXT(member(newline, "was"), "b");
    CHECK_TEXT(member(newline, "is"), "b\n");
    own_json more = texts("a\nc\n", "a\nb\nc\n");
    CHECK(json_is_null(json_object_get(json_array_get(more, 0), "was")));
    CHECK_TEXT(member(more, "is"), "b\n");
}

TEST(replay_diff_passes_over_addresses_and_cell_numbers)
{
    static const struct {
        const char *was, *is;
        int differences;
    } rows[] = {
        { "<A at 0x7f1234567890>", "<A at 0x7faaaaaaaaaa>", 0 },
        { "File \"<cell 3>\", line 1", "File \"<cell 12>\", line 1", 0 },
        { "File \"<cell 3>\", line 1", "File \"<cell 3>\", line 2", 1 },
        { "0x7f1234567890", "0x7faaaaaaaaaa", 1 },
        { "at 0x12", "at 0x13", 1 },
        { "<cell x>", "<cell y>", 1 },
        { "at 0x7f1234567890 a", "at 0x7faaaaaaaaaa b", 1 },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        own_json list = texts(rows[i].was, rows[i].is);
        CHECK_INT(json_array_size(list), rows[i].differences);
    }
}

/* A record with a tool and these calls, whole or as a result lists them. */
static json_t *with_calls(const char *calls, bool whole)
{
    own_json list = json_of(calls);
    return whole ? json_pack("{s:{s:b, s:[{s:s, s:s}], s:O}}", LOOK_CALLS, "whole", 1, "tools",
                             "name", "t", "description", "d", "calls", list)
                 : json_pack("{s:{s:O}}", "result", "calls", list);
}

#define CALL(number, arguments, outcome)                                                         \
    "{'number':" #number ",'tool':'t','arguments':" arguments ",'outcome':" outcome              \
    ",'verdict':'allow','ms':" #number ",'line':1}"
#define GONE "{'error':{'kind':'cancelled','message':'"

TEST(replay_diff_compares_calls_of_tools)
{
    static const struct {
        const char *was, *is, *want;
    } rows[] = {
        { "[]", "[]", "" },
        { "[" CALL(1, "{'a':1}", "{'value':1}") "," CALL(2, "{}", "{'value':2}") "]",
          "[" CALL(1, "{}", "{'value':2}") "," CALL(2, "{'a':1}", "{'value':1}") "]", "" },
        { "[" CALL(1, "{}", "{'value':1}") "," CALL(2, "{}", "{'value':2}") "]",
          "[" CALL(2, "{}", "{'value':2}") "," CALL(1, "{}", "{'value':1}") "]", "" },
        { "[" CALL(1, "{}", "{'value':1}") "]", "[]", "calls gone" },
        { "[]", "[" CALL(1, "{}", "{'value':1}") "]", "calls added" },
        { "[" CALL(1, "{}", "{'value':1}") "]", "[" CALL(1, "{'a':1}", "{'value':1}") "]",
          "calls gone, calls added" },
        { "[" CALL(1, "{}", "{'value':1}") "]", "[" CALL(1, "{}", "{'value':2}") "]",
          "calls[1].outcome value" },
        { "[" CALL(7, "{}", "{'value':1}") "]",
          "[" CALL(1, "{}", "{'error':{'kind':'denied','message':'no'}}") "]",
          "calls[7].outcome value" },
        { "[" CALL(1, "{}", GONE "the run ended'}}") "]",
          "[" CALL(1, "{}", GONE "nobody waited'}}") "]", "" },
        { "[" CALL(1, "{}", GONE "the run ended'}}") "]", "[" CALL(1, "{}", "{'value':1}") "]",
          "calls[1].outcome value" },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        for (int whole = 0; whole < 2; whole++) {
            own_json was = with_calls(rows[i].was, whole);
            own_json is = with_calls(rows[i].is, whole);
            own_json list = diff_records(was, is);
            own_str got = summary(list);
            CHECK_TEXT(got, rows[i].want);
        }
    }
    own_json long_one = with_calls("[{'number':1,'tool':'t','arguments':null,'arguments_bytes':9,"
                                   "'outcome':null,'outcome_bytes':5}]",
                                   false);
    own_json other = with_calls("[{'number':1,'tool':'t','arguments':null,'arguments_bytes':9,"
                                "'outcome':null,'outcome_bytes':6}]",
                                false);
    own_json list = diff_records(long_one, other);
    own_str got = summary(list);
    CHECK_TEXT(got, "calls[1].outcome value");
}

TEST(replay_diff_compares_definitions_of_tools)
{
    own_json was = with_calls("[]", true);
    own_json is = with_calls("[]", true);
    own_json none = json_object();
    json_t *tools = json_object_get(json_object_get(is, LOOK_CALLS), "tools");
    json_object_set_new(json_array_get(tools, 0), "description", json_string("other"));
    json_array_append_new(tools, json_pack("{s:s, s:s}", "name", "u", "effect", "read"));
    own_json list = diff_records(was, is);
    own_str got = summary(list);
    CHECK_TEXT(got, "tools.t value, tools.u added");
    own_json less = diff_records(was, none);
    own_str gone = summary(less);
    CHECK_TEXT(gone, "tools.t gone");
}

TEST(replay_diff_takes_records_of_any_shape)
{
    static const char *const rows[] = {
        ("{'calls_whole':{'whole':true,'tools':[7,{'name':3}],'calls':[7,{'tool':'t'},{'tool':'t',"
         "'arguments':{},'outcome':{},'number':'x'}]},'result':{'calls':'x'}}"),
        "{}", "{'result':[],'request':7}", "{'result':{'results':{},'artifacts':'x','error':3}}",
        "{'request':{'code':7,'env':[],'files':[1,null,{'path':3}],'language':9,'seed':'x'}}",
        "{'result':{'stdout':7,'stdout_base64':7,'results':[7,[],null],'denied':[[]]}}",
    };
    own_json was = json_of(base);
    for (size_t i = 0; i < array_len(rows); i++) {
        own_json is = json_of(rows[i]);
        own_json there = diff_records(was, is);
        own_json back = diff_records(is, was);
        own_json same = diff_records(is, is);
        CHECK(json_array_size(there) > 0 && json_array_size(back) > 0);
        CHECK_INT(json_array_size(same), 0);
    }
}
