/* OpenAI's Responses: what is written, and what is understood. */
#include "test_llm_wire.h"

#define WIRE &llm_wire_responses
#define DONE(item) "{'type':'response.output_item.done','item':" item "}\n"
#define LAST(status, more)                                                                   \
    "{'type':'response." status "','response':{'status':'" status "','output':[]," more      \
    "'usage':{'input_tokens':120,'input_tokens_details':{'cached_tokens':100},"               \
    "'output_tokens':30,'output_tokens_details':{'reasoning_tokens':12}}}}"
#define REASONING "{'type':'reasoning','id':'rs_1','summary':[],'encrypted_content':'gAAA'}"
#define MESSAGE "{'type':'message','content':[{'type':'output_text','text':'Running.'}]}"
#define CALL                                                                                   \
    "{'type':'function_call','id':'fc_1','call_id':'call_1','name':'python','arguments':"      \
    "'{\\'code\\':\\'1\\'}','status':'completed'}"

static const struct llm_dialect sol = { .model = "gpt-6.1-sol", .seals = true };

TEST(llm_responses_request)
{
    own_json body = llm_request_of(WIRE, "[" LLM_USER "]", LLM_TOOLS, sol);
    CHECK_SAME(body, "{'model':'gpt-6.1-sol','stream':true,'store':false,"
                     "'max_output_tokens':32000,'include':['reasoning.encrypted_content'],"
                     "'instructions':'Be brief.','tools':[{'type':'function','name':'python',"
                     "'description':'runs it','parameters':{'type':'object'},'strict':false}],"
                     "'parallel_tool_calls':false,"
                     "'input':[{'role':'user','content':[{'type':'input_text','text':'What?'}]}]}");
    own_json plain = llm_request_of(WIRE, "[" LLM_USER "]", NULL,
                                    (struct llm_dialect){ .model = "gpt-4.1" });
    CHECK(!json_object_get(plain, "include") && !json_object_get(plain, "tools"));
}

TEST(llm_responses_sends_back_reasoning_and_results_with_pictures)
{
    own_json body = llm_request_of(
        WIRE,
        "[" LLM_USER
        ",{'role':'assistant','content':[{'type':'raw','wire':'responses','block':" REASONING
        "},{'type':'text','text':'Running.'}," LLM_CALL "]},"
        "{'role':'user','content':[" LLM_RESULT ",{'type':'text','text':'So?'}]},"
        "{'role':'assistant','content':[{'type':'raw','wire':'responses','block':" REASONING "},"
        "{'type':'raw','wire':'anthropic','block':{'type':'thinking'}}]},"
        "{'role':'user','content':[{'type':'tool_result','id':'c2','content':["
        "{'type':'text','text':'a'},{'type':'text','text':'b'}]}]}]",
        NULL, sol);
    CHECK_SAME(json_object_get(body, "input"),
               "[{'role':'user','content':[{'type':'input_text','text':'What?'}]}," REASONING ","
               "{'role':'assistant','content':'Running.'},"
               "{'type':'function_call','call_id':'c1','name':'python',"
               "'arguments':'{\\'code\\':\\'1\\'}'},"
               "{'type':'function_call_output','call_id':'c1','output':["
               "{'type':'input_text','text':'2'},{'type':'input_image','detail':'auto',"
               "'image_url':'data:image/png;base64,aW1n'}]},"
               "{'role':'user','content':[{'type':'input_text','text':'So?'}]},"
               "{'type':'function_call_output','call_id':'c2','output':'a\\nb'}]");
}

TEST(llm_responses_stream)
{
    own_buf heard = BUF_INIT(1000);
    own_reply reply = llm_reply_of(
        WIRE,
        "{'type':'response.created','response':{'status':'in_progress','error':null}}\n" DONE(
            REASONING) "{'type':'response.output_text.delta','delta':'Runn'}\n"
                       "{'type':'response.output_text.delta','delta':'ing.'}\n"
                       "{'type':'response.function_call_arguments.delta','delta':'{'}\n"
                       "{'type':'response.of.tomorrow'}\n" DONE(MESSAGE) DONE(CALL)
                           LAST("completed", ""),
        false, &heard);
    CHECK_INT(reply.outcome, LLM_OK);
    CHECK_INT(reply.stop, LLM_STOP_TOOLS);
    CHECK_TEXT(buf_str(&heard).at, "Running.");
    CHECK_SAME(reply.content, "[{'type':'raw','wire':'responses','block':" REASONING "},"
                              "{'type':'text','text':'Running.'},{'type':'tool_call','id':'call_1',"
                              "'name':'python','arguments':{'code':'1'}}]");
    CHECK_INT(reply.usage.input, 20); /* the cached ones are counted in by the server */
    CHECK_INT(reply.usage.cache_read, 100);
    CHECK_INT(reply.usage.output, 30);
    CHECK_INT(reply.usage.reasoning, 12);
}

TEST(llm_responses_the_last_event_alone_is_enough)
{
    own_reply reply = llm_reply_of(
        WIRE,
        "{'type':'response.completed','response':{'status':'completed','output':[" MESSAGE "]}}",
        false, NULL);
    CHECK_INT(reply.outcome, LLM_OK);
    CHECK_TEXT(reply.text, "Running.");
    CHECK_INT(reply.usage.input, -1);
}

TEST(llm_responses_ends)
{
    static const struct {
        const char *text;
        enum llm_outcome outcome;
    } rows[] = {
        { "{'type':'response.created','response':{}}\n" DONE(MESSAGE), LLM_BROKEN },
        { LAST("incomplete", "'incomplete_details':{'reason':'content_filter'},"), LLM_REFUSED },
        { LAST("failed", "'error':{'code':'context_length_exceeded','message':'long'},"),
          LLM_CONTEXT },
        { LAST("failed", "'error':{'code':'server_error','message':'oh'},"), LLM_OVERLOADED },
        { "{'type':'error','code':'rate_limit_exceeded','message':'slow'}", LLM_RATE },
        { DONE("{'type':'message','content':[{'type':'refusal','refusal':'I will not.'}]}")
              LAST("completed", ""),
          LLM_REFUSED },
        { DONE("{'type':'function_call','call_id':'c','name':'f','arguments':'{cut'}")
              LAST("completed", ""),
          LLM_GARBAGE },
        { "[]", LLM_GARBAGE },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        own_reply reply = llm_reply_of(WIRE, rows[i].text, false, NULL);
        CHECK_INT(reply.outcome, rows[i].outcome);
        CHECK(!reply.content && reply.detail[0] && reply.hint[0]);
    }
}

TEST(llm_responses_of_full_length_keep_the_text_and_no_call)
{
    own_reply reply = llm_reply_of(
        WIRE,
        DONE(MESSAGE) DONE("{'type':'function_call','call_id':'c','name':'f',"
                           "'arguments':'{cut','status':'incomplete'}")
            LAST("incomplete", "'incomplete_details':{'reason':'max_output_tokens'},"),
        false, NULL);
    CHECK_INT(reply.outcome, LLM_OK);
    CHECK_INT(reply.stop, LLM_STOP_LENGTH);
    CHECK_SAME(reply.content, "[{'type':'text','text':'Running.'}]");
}

TEST(llm_responses_whole_reply)
{
    own_reply reply = llm_reply_of(
        WIRE, "{'status':'completed','error':null,'output':[" REASONING "," CALL "]}", true, NULL);
    CHECK_INT(reply.outcome, LLM_OK);
    CHECK_INT(json_array_size(reply.content), 2);
    CHECK_INT(reply.stop, LLM_STOP_TOOLS);
}
