/* A run's result as a tool's answer; arguments against a schema; the names of resources. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "mcp/answer.h"
#include "mcp/args.h"
#include "mcp/tool.h"
#include "mcp/uri.h"

/* JSON in single quotes. */
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

static const char *type_at(const struct mcp_answer *answer, size_t i)
{
    return json_string_value(json_object_get(json_array_get(answer->content, i), "type"));
}

/* The members that a tool's output schema requires, and no others. */
static void check_schema_of(const char *name, const json_t *structured)
{
    own_json root = json_read(str_of(mcp_definitions), 1 << 20, &(struct err){ 0 });
    size_t i;
    json_t *tool, *needed = NULL, *member;
    json_array_foreach (json_object_get(root, "tools"), i, tool)
        if (str_is(json_get_str(tool, "name"), name))
            needed = json_object_get(json_object_get(tool, "outputSchema"), "required");
    json_array_foreach (needed, i, member)
        CHECK(json_object_get(structured, json_string_value(member)) != NULL);
    CHECK_INT(json_object_size(structured), json_array_size(needed));
}

static void check_schema(const json_t *structured)
{
    check_schema_of("run_code", structured);
}

static void done(struct mcp_answer *answer)
{
    json_decref(answer->content);
    json_decref(answer->structured);
}

static const char good[] =
    "{'run':'r_1','status':'ok','exit_code':0,'stdout':'hi\\n','stderr':'','truncated':false,"
    "'results':[{'text/plain':'<Figure>','image/png':'%s'},{'text/plain':'42'}],'text':'42',"
    "'error':null,'artifacts':[{'path':'a b.csv','size_bytes':3,'mime':'text/csv'}],'skipped':[],"
    "'session':'s_1','cell':2,'state':'kept','metrics':{'wall_ms':12.5}}";
#define SMALL_PNG "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"
#define WIDE_PNG "iVBORw0KGgoAAAANSUhEUgAAI4AAACOACAYAAAAfFcSJ" /* 9088 pixels wide */

TEST(mcp_a_result_becomes_text_pictures_and_links)
{
    char text[1024];
    struct mcp_answer answer;
    snprintf(text, sizeof text, good, SMALL_PNG);
    own_json result = json_of(text);
    mcp_answer_make(result, "r_1", "s_1", "", &answer);
    CHECK(!answer.is_error);
    CHECK_INT(json_array_size(answer.content), 3);
    CHECK_TEXT(json_get_str(json_array_get(answer.content, 0), "text").at,
               "ok (session s_1, cell 2)\nstdout:\nhi\nvalue:\n42\nfiles written:\n"
               "  a b.csv (3 bytes)\n");
    CHECK_TEXT(type_at(&answer, 1), "image");
    CHECK_TEXT(type_at(&answer, 2), "resource_link");
    CHECK_TEXT(json_get_str(json_array_get(answer.content, 2), "uri").at, "cupel://s_1/a%20b.csv");
    check_schema(answer.structured);
    done(&answer);
}

TEST(mcp_a_picture_with_too_many_pixels_is_a_link)
{
    char text[1024];
    struct mcp_answer answer;
    snprintf(text, sizeof text, good, WIDE_PNG);
    own_json result = json_of(text);
    mcp_answer_make(result, "r_1", "s_1", "", &answer);
    CHECK_TEXT(json_get_str(json_array_get(answer.content, 1), "uri").at, "cupel://r_1/.shown/0");
    CHECK_INT(json_integer_value(json_object_get(answer.structured, "pictures")), 0);
    done(&answer);
}

TEST(mcp_an_empty_or_odd_result_still_obeys_the_schema)
{
    static const char *const odd[] = {
        "{}", "{'status':3,'results':7,'artifacts':[{}],'error':{},'metrics':[],'session':{}}",
        ("{'results':[7,{'image/png':''},{'image/png':'!'}],'error':{'traceback':'t','hint':'h'},"
         "'skipped':[{}]}"),
    };
    for (size_t i = 0; i < array_len(odd); i++) {
        struct mcp_answer answer;
        own_json result = json_of(odd[i]);
        mcp_answer_make(result, "r_1", NULL, "", &answer);
        CHECK(answer.is_error);
        check_schema(answer.structured);
        done(&answer);
    }
    struct mcp_answer answer;
    mcp_answer_running("c_1", NULL, 45, STR("so far \xff"), STR(""), &answer);
    CHECK(!answer.is_error);
    check_schema(answer.structured);
    done(&answer);
}

TEST(mcp_a_long_output_keeps_its_head_and_its_tail)
{
    struct mcp_answer answer;
    own_buf text = BUF_INIT(1 << 20);
    buf_add_text(&text, "begin");
    for (int i = 0; i < 50000; i++)
        buf_add_text(&text, "\xc3\xa9");
    buf_add_text(&text, "end");
    own_json result = json_pack("{s:s, s:o}", "status", "ok", "stdout", json_text(buf_str(&text)));
    mcp_answer_make(result, "r_1", NULL, "", &answer);
    struct str out = json_get_str(answer.structured, "stdout");
    CHECK(out.len < 41000 && strncmp(out.at, "begin", 5) == 0 && str_ends(out, STR("end")));
    CHECK(strstr(out.at, "bytes left out") != NULL && str_is_utf8(out));
    done(&answer);
}

TEST(mcp_a_report_becomes_a_verdict_with_its_evidence)
{
    struct mcp_answer answer;
    own_json report = json_of(
        "{'status':'computed','answer':'It is 6.','values':{'n':6},'steps':2,'reason':null,"
        "'trace':[{'name':'n','origin':'data','files':['a.csv'],'slice':["
        "{'cell':1,'line':2,'end':2},{'cell':1,'line':4,'end':6},{'cell':2,'line':1,'end':1}]}],"
        "'checks':[{'check':'rerun','outcome':'pass','detail':'same'}],'cost':{'wall_s':1.25},"
        "'artifacts':[{'path':'o.txt','size_bytes':3,'mime':'text/plain'}]}");
    mcp_ask_answer_over("t_1", report, &answer);
    CHECK(!answer.is_error);
    CHECK_TEXT(json_get_str(json_array_get(answer.content, 0), "text").at,
               "computed: every value is computed, and the code gave the same again; nobody judged "
               "whether it is what was asked (task t_1)\nanswer:\nIt is 6.\nevidence:\n"
               "  n: data from a.csv; by cell 1 line 2, 4-6, cell 2 line 1\nchecks: rerun pass\n"
               "files written:\n  o.txt (3 bytes)\n");
    CHECK_TEXT(json_get_str(json_array_get(answer.content, 1), "uri").at, "cupel://t_1/o.txt");
    CHECK_INT(
        json_integer_value(json_object_get(json_object_get(answer.structured, "values"), "n")), 6);
    check_schema_of("ask", answer.structured);
    done(&answer);
}

TEST(mcp_every_state_of_a_task_obeys_the_schema)
{
    static const char *const odd[] = {
        "{}", "{'status':'failed','reason':'no model','hint':'set one'}",
        ("{'status':[],'answer':{},'values':[],'trace':[7,{}],'checks':[3],'artifacts':[{}],"
         "'cost':7,'steps':'x','reason':{},'hint':1}"),
        "{'status':'none such','trace':{},'checks':'x','artifacts':{'a':1}}",
    };
    struct mcp_answer answer;
    for (size_t i = 0; i < array_len(odd); i++) {
        own_json report = json_of(odd[i]);
        mcp_ask_answer_over("t_1", report, &answer);
        CHECK(answer.is_error);
        check_schema_of("ask", answer.structured);
        done(&answer);
    }
    mcp_ask_answer_running("t_1", "execute", 2, 45, &answer);
    CHECK(!answer.is_error);
    check_schema_of("ask", answer.structured);
    done(&answer);
    mcp_ask_answer_asks("t_1", "which \xff?", 0, 1, &answer);
    CHECK_TEXT(json_get_str(answer.structured, "question").at, "which \xef\xbf\xbd?");
    check_schema_of("ask", answer.structured);
    done(&answer);
}

TEST(mcp_arguments_are_named_when_they_are_wrong)
{
    own_json schema = json_of(
        "{'type':'object','properties':{'a':{'type':'integer','minimum':1,'maximum':9},"
        "'b':{'type':'string','enum':['x','y']},'c':{'type':'array','maxItems':2,'items':"
        "{'type':'object','properties':{'p':{'type':'string'}},'required':['p'],"
        "'additionalProperties':false}}},'required':['a'],'additionalProperties':false}");
    static const struct {
        const char *args, *field; /* NULL: good */
    } rows[] = {
        { "{'a':1}", NULL },        { "{'a':9,'b':'x','c':[{'p':'q'}]}", NULL },
        { "{}", "a" },              { "{'a':0}", "a" },
        { "{'a':10}", "a" },        { "{'a':1.5}", "a" },
        { "{'a':'1'}", "a" },       { "{'a':1,'b':'z'}", "b" },
        { "{'a':1,'d':1}", "d" },   { "{'a':1,'c':{}}", "c" },
        { "{'a':1,'c':[1]}", "c[0]" }, { "{'a':1,'c':[{'p':'q'},{}]}", "p" },
        { "{'a':1,'c':[{'p':1}]}", "c[0].p" }, { "{'a':1,'c':[1,2,3]}", "c" },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        struct err err = ERR_INIT;
        own_json args = json_of(rows[i].args);
        CHECK_INT(mcp_args_check(schema, args, &err), rows[i].field ? -1 : 0);
        if (rows[i].field)
            CHECK_TEXT(err.field, rows[i].field);
    }
}

TEST(mcp_the_name_of_a_resource_can_be_read_back)
{
    static const char *const bad[] = { "", "cupel:", "cupel://", "cupel://s", "cupel://s/",
                                       "cupel:///x", "file://s/x", "cupel://s/%", "cupel://s/%0",
                                       "cupel://s/%00", "cupel://s/%zz", "cupel://s/%ff",
                                       "cupel://ssssssssssssssssssssssssssssssssssssssssssss/x" };
    char owner[MCP_OWNER_ROOM];
    own_str uri = mcp_uri_make("s_1", STR("d/\xc3\xa9 #?%.csv"));
    own_str path = NULL;
    CHECK_TEXT(uri, "cupel://s_1/d/%C3%A9%20%23%3F%25.csv");
    CHECK_INT(mcp_uri_read(uri, owner, &path), 0);
    CHECK_TEXT(owner, "s_1");
    CHECK_TEXT(path, "d/\xc3\xa9 #?%.csv");
    for (size_t i = 0; i < array_len(bad); i++) {
        own_str none = NULL;
        CHECK_INT(mcp_uri_read(bad[i], owner, &none), -1);
    }
}
