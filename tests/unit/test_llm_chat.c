/* Chat Completions: what is written, and what is understood of its many accents. */
#include "test_llm_wire.h"

#define WIRE &llm_wire_chat
#define CHUNK(delta) "{'choices':[{'index':0,'delta':" delta ",'finish_reason':null}]}\n"
#define FINISH(reason) "{'choices':[{'index':0,'delta':{},'finish_reason':'" reason "'}]}\n"
#define USAGE                                                                                 \
    "{'choices':[],'usage':{'prompt_tokens':120,'completion_tokens':30,"                      \
    "'prompt_tokens_details':{'cached_tokens':100},"                                          \
    "'completion_tokens_details':{'reasoning_tokens':12}}}\n"
#define DONE "[DONE]"
#define ONE_CALL(id, code)                                                   \
    "{'type':'tool_call','id':'" id "','name':'python','arguments':{'code':'" code "'}}"

static const struct llm_dialect local = { .model = "qwen3" };

TEST(llm_chat_request)
{
    own_json body = llm_request_of(WIRE, "[" LLM_USER "]", LLM_TOOLS, local);
    CHECK_SAME(body, "{'model':'qwen3','stream':true,'stream_options':{'include_usage':true},"
                     "'tools':[{'type':'function','function':{'name':'python',"
                     "'description':'runs it','parameters':{'type':'object'}}}],"
                     "'parallel_tool_calls':false,"
                     "'messages':[{'role':'system','content':'Be brief.'},"
                     "{'role':'user','content':'What?'}]}");
}

TEST(llm_chat_names_follow_the_model)
{
    own_json said = llm_json("[" LLM_USER "]");
    struct llm_request request = { .instructions = "x", .messages = said, .max_output_tokens = 9 };
    struct llm_dialect hosted = { .model = "gpt-6", .new_names = true };
    own_json old = llm_wire_chat.encode(&local, &request);
    own_json new = llm_wire_chat.encode(&hosted, &request);
    CHECK_INT(json_integer_value(json_object_get(old, "max_tokens")), 9);
    CHECK_INT(json_integer_value(json_object_get(new, "max_completion_tokens")), 9);
    CHECK(!json_object_get(new, "max_tokens"));
    CHECK_SAME(json_array_get(json_object_get(new, "messages"), 0),
               "{'role':'developer','content':'x'}");
}

TEST(llm_chat_pictures_of_results_follow_in_a_message)
{
    own_json body = llm_request_of(
        WIRE,
        "[{'role':'assistant','content':[{'type':'raw','wire':'chat','block':"
        "{'reasoning_content':'hm'}}," LLM_CALL "]},{'role':'user','content':["
        "{'type':'text','text':'So?'}," LLM_RESULT "]},"
        "{'role':'assistant','content':[{'type':'text','text':'Two.'}]}]",
        NULL, local);
    CHECK_SAME(json_object_get(body, "messages"),
               "[{'role':'system','content':'Be brief.'},"
               "{'role':'assistant','reasoning_content':'hm','content':null,'tool_calls':["
               "{'id':'c1','type':'function','function':{'name':'python',"
               "'arguments':'{\\'code\\':\\'1\\'}'}}]},"
               "{'role':'tool','tool_call_id':'c1','content':'2'},"
               "{'role':'user','content':[{'type':'image_url','image_url':"
               "{'url':'data:image/png;base64,aW1n'}},{'type':'text','text':'So?'}]},"
               "{'role':'assistant','content':'Two.'}]");
}

TEST(llm_chat_messages_that_say_nothing_are_left_out)
{
    own_json body = llm_request_of(
        WIRE,
        "[" LLM_USER ",{'role':'assistant','content':[{'type':'raw','wire':'chat','block':"
        "{'reasoning':'hm'}}]},{'role':'user','content':[{'type':'text','text':'Go on.'}]},"
        "{'role':'assistant','content':[{'type':'text','text':'Yes.'}]},"
        "{'role':'user','content':[{'type':'text','text':''}]}]",
        NULL, local);
    CHECK_SAME(json_object_get(body, "messages"), "[{'role':'system','content':'Be brief.'},"
                                                  "{'role':'user','content':'What?\\n\\nGo on.'},"
                                                  "{'role':'assistant','content':'Yes.'}]");
}

TEST(llm_chat_stream)
{
    own_buf heard = BUF_INIT(1000);
    own_reply reply = llm_reply_of(
        WIRE,
        CHUNK("{'role':'assistant','content':null}") CHUNK("{'content':'Runn'}")
            CHUNK("{'content':'ing.'}")
                CHUNK("{'tool_calls':[{'index':0,'id':'c1','function':{'name':'python',"
                      "'arguments':''}}]}")
                    CHUNK("{'tool_calls':[{'index':0,'function':{'arguments':'{\\'code'}}]}")
                        CHUNK("{'tool_calls':[{'index':0,'function':{'arguments':"
                              "'\\':\\'1\\'}'}}]}") FINISH("tool_calls") USAGE DONE,
        false, &heard);
    CHECK_INT(reply.outcome, LLM_OK);
    CHECK_INT(reply.stop, LLM_STOP_TOOLS);
    CHECK_TEXT(buf_str(&heard).at, "Running.");
    CHECK_SAME(reply.content, "[{'type':'text','text':'Running.'}," ONE_CALL("c1", "1") "]");
    CHECK_INT(reply.usage.input, 20);
    CHECK_INT(reply.usage.cache_read, 100);
    CHECK_INT(reply.usage.output, 30);
    CHECK_INT(reply.usage.reasoning, 12);
}

TEST(llm_chat_accents)
{
    static const struct {
        const char *text, *content;
    } rows[] = {
        /* No id, no index, arguments that are an object, and a finish that does not say so. */
        { CHUNK("{'tool_calls':[{'function':{'name':'python','arguments':{'code':'1'}}}]}")
              FINISH("stop"),
          "[" ONE_CALL("call_1", "1") "]" },
        /* Index 0 for all. */
        { CHUNK("{'tool_calls':[{'index':0,'id':'a','function':{'name':'python','arguments':"
                "'{\\'code\\':\\'1\\'}'}}]}")
              CHUNK("{'tool_calls':[{'index':0,'id':'b','function':{'name':'python','arguments':"
                    "'{\\'code\\':\\'2\\'}'}}]}") FINISH("tool_calls") DONE,
          "[" ONE_CALL("a", "1") "," ONE_CALL("b", "2") "]" },
        /* Both names of reasoning; no [DONE]. */
        { CHUNK("{'reasoning_content':'h','reasoning':'h'}") CHUNK("{'reasoning_content':'m'}")
              CHUNK("{'content':'42'}") FINISH("stop"),
          "[{'type':'raw','wire':'chat','block':{'reasoning_content':'hm'}},"
          "{'type':'text','text':'42'}]" },
        { CHUNK("{'content':'','reasoning':'hm'}") CHUNK("{'content':'42'}") DONE,
          "[{'type':'raw','wire':'chat','block':{'reasoning':'hm'}},"
          "{'type':'text','text':'42'}]" },
        /* Thinking that its server left in the text; and a name that no tool has. */
        { CHUNK("{'content':'\\n<think>hm'}") CHUNK("{'content':'</think>\\n\\n42'}")
              FINISH("stop"),
          "[{'type':'text','text':'42'}]" },
        { CHUNK("{'content':'<think>hm'}") FINISH("stop"),
          "[{'type':'text','text':'<think>hm'}]" },
        { CHUNK("{'tool_calls':[{'id':'a','function':{'name':'functions.py','arguments':'{}'}}]}")
              FINISH("stop"),
          "[{'type':'tool_call','id':'a','name':'functions_py','arguments':{}}]" },
        { CHUNK("{'content':[{'type':'text','text':'42'}]}") FINISH("stop"),
          "[{'type':'text','text':'42'}]" },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        own_reply reply = llm_reply_of(WIRE, rows[i].text, false, NULL);
        CHECK_INT(reply.outcome, LLM_OK);
        CHECK_SAME(reply.content, rows[i].content);
    }
}

TEST(llm_chat_ends)
{
    static const struct {
        const char *text;
        enum llm_outcome outcome;
    } rows[] = {
        { CHUNK("{'content':'x'}"), LLM_BROKEN },
        { CHUNK("{'content':'x'}") "{'error':{'code':500,'message':'oh','type':'server_error'}}",
          LLM_OVERLOADED },
        { "{'object':'error','message':'maximum context length is 1','code':400}", LLM_CONTEXT },
        { CHUNK("{'refusal':'I will '}") CHUNK("{'refusal':'not.'}") FINISH("stop"),
          LLM_REFUSED },
        { CHUNK("{'content':'x'}") FINISH("content_filter"), LLM_REFUSED },
        /* Cut, though it is said to be whole. */
        { CHUNK("{'tool_calls':[{'index':0,'id':'a','function':{'name':'f','arguments':'{cut'}}]}")
              FINISH("tool_calls") DONE,
          LLM_GARBAGE },
        { CHUNK("{'tool_calls':[{'index':0,'id':'a','function':{'arguments':'{}'}}]}")
              FINISH("tool_calls"),
          LLM_GARBAGE },
        { DONE, LLM_GARBAGE },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        own_reply reply = llm_reply_of(WIRE, rows[i].text, false, NULL);
        CHECK_INT(reply.outcome, rows[i].outcome);
        CHECK(!reply.content && reply.detail[0] && reply.hint[0]);
        if (reply.outcome == LLM_REFUSED && strstr(rows[i].text, "refusal"))
            CHECK_TEXT(reply.detail, "I will not.");
    }
}

TEST(llm_chat_of_full_length_gives_no_cut_call)
{
    own_reply reply = llm_reply_of(
        WIRE,
        CHUNK("{'content':'half'}")
            CHUNK("{'tool_calls':[{'index':0,'id':'a','function':{'name':'f','arguments':'{}'}}]}")
                FINISH("length") DONE,
        false, NULL);
    CHECK_INT(reply.outcome, LLM_OK);
    CHECK_INT(reply.stop, LLM_STOP_LENGTH);
    CHECK_SAME(reply.content, "[{'type':'text','text':'half'}]");
}

TEST(llm_chat_whole_reply)
{
    own_reply reply = llm_reply_of(
        WIRE,
        "{'choices':[{'message':{'content':null,'tool_calls':[{'function':{'name':'python',"
        "'arguments':'{\\'code\\':\\'1\\'}'}},{'function':{'name':'python','arguments':"
        "{'code':'2'}}}]},'finish_reason':'stop'}]}",
        true, NULL);
    CHECK_INT(reply.outcome, LLM_OK);
    CHECK_SAME(reply.content, "[" ONE_CALL("call_1", "1") "," ONE_CALL("call_2", "2") "]");
    CHECK_TEXT(reply.text, "");
}

TEST(llm_chat_reply_without_end_is_cut_off)
{
    own_buf text = BUF_INIT(64u << 20);
    own_str words = buf_alloc(1001);
    memset(words, 'x', 1000);
    words[1000] = 0;
    for (size_t i = 0; i < LLM_CONTENT_MAX / 1000 + 2; i++)
        buf_printf(&text, CHUNK("{'content':'%s'}"), words);
    own_reply reply = llm_reply_of(WIRE, buf_str(&text).at, false, NULL);
    CHECK_INT(reply.outcome, LLM_TOO_LONG);
}
