/* Anthropic's Messages: what is written, and what is understood. */
#include "test_llm_wire.h"

#define WIRE &llm_wire_anthropic
#define START                                                                                  \
    "{'type':'message_start','message':{'id':'msg_1','usage':{'input_tokens':10,"              \
    "'cache_read_input_tokens':5,'cache_creation_input_tokens':2,'output_tokens':1}}}\n"
#define BLOCK(index, block) \
    "{'type':'content_block_start','index':" index ",'content_block':" block "}\n"
#define DELTA(index, delta) \
    "{'type':'content_block_delta','index':" index ",'delta':" delta "}\n"
#define STOP(index) "{'type':'content_block_stop','index':" index "}\n"
#define END(reason)                                                                           \
    "{'type':'message_delta','delta':{'stop_reason':'" reason "'},'usage':{'output_tokens':9," \
    "'output_tokens_details':{'thinking_tokens':4}}}\n{'type':'message_stop'}"
#define CALL "{'type':'tool_use','id':'toolu_1','name':'python','input':{}}"

static const struct llm_dialect opus = { .model = "claude-opus-5" };

TEST(llm_anthropic_request)
{
    own_json body = llm_request_of(WIRE, "[" LLM_USER "]", LLM_TOOLS, opus);
    CHECK_SAME(body, "{'model':'claude-opus-5','max_tokens':32000,'stream':true,"
                     "'cache_control':{'type':'ephemeral'},"
                     "'system':[{'type':'text','text':'Be brief.',"
                     "'cache_control':{'type':'ephemeral'}}],"
                     "'tools':[{'name':'python','description':'runs it',"
                     "'input_schema':{'type':'object'}}],"
                     "'tool_choice':{'type':'auto','disable_parallel_tool_use':true},"
                     "'messages':[{'role':'user','content':[{'type':'text','text':'What?'}]}]}");
}

TEST(llm_anthropic_results_come_first_and_roles_alternate)
{
    own_json body = llm_request_of(
        WIRE,
        "[" LLM_USER ",{'role':'assistant','content':["
        "{'type':'raw','wire':'anthropic','block':{'type':'thinking','signature':'s'}},"
        "{'type':'raw','wire':'chat','block':{'reasoning':'other'}},"
        "{'type':'text','text':' \\n'}," LLM_CALL "]},"
        "{'role':'user','content':[{'type':'text','text':'And now?'}," LLM_RESULT "]},"
        "{'role':'user','content':[{'type':'text','text':'More.'}]}]",
        NULL, opus);
    CHECK_SAME(json_object_get(body, "messages"),
               "[{'role':'user','content':[{'type':'text','text':'What?'}]},"
               "{'role':'assistant','content':[{'type':'thinking','signature':'s'},"
               "{'type':'tool_use','id':'c1','name':'python','input':{'code':'1'}}]},"
               "{'role':'user','content':[{'type':'tool_result','tool_use_id':'c1',"
               "'is_error':false,'content':[{'type':'text','text':'2'},{'type':'image','source':"
               "{'type':'base64','media_type':'image/png','data':'aW1n'}}]},"
               "{'type':'text','text':'And now?'},{'type':'text','text':'More.'}]}]");
    CHECK(!json_object_get(body, "tools") && !json_object_get(body, "tool_choice"));
}

TEST(llm_anthropic_leaves_out_thinking_that_led_to_nothing)
{
    own_json body = llm_request_of(
        WIRE,
        "[" LLM_USER ",{'role':'assistant','content':["
        "{'type':'raw','wire':'anthropic','block':{'type':'thinking','signature':'s'}}]},"
        "{'role':'user','content':[{'type':'text','text':'Go on.'}]}]",
        NULL, opus);
    CHECK_SAME(json_object_get(body, "messages"),
               "[{'role':'user','content':[{'type':'text','text':'What?'},"
               "{'type':'text','text':'Go on.'}]}]");
}

TEST(llm_anthropic_an_error_is_a_text)
{
    own_json body = llm_request_of(
        WIRE,
        "[" LLM_USER ",{'role':'assistant','content':[" LLM_CALL "]},{'role':'user','content':["
        "{'type':'tool_result','id':'c1','is_error':true,'content':[]}]}]",
        NULL, opus);
    CHECK_SAME(json_array_get(json_object_get(body, "messages"), 2),
               "{'role':'user','content':[{'type':'tool_result','tool_use_id':'c1',"
               "'is_error':true,'content':[{'type':'text','text':'(nothing)'}]}]}");
}

TEST(llm_anthropic_stream_with_thinking_and_a_call)
{
    own_buf heard = BUF_INIT(1000);
    own_reply reply = llm_reply_of(
        WIRE,
        START BLOCK("0", "{'type':'thinking','thinking':'','signature':''}")
            DELTA("0", "{'type':'thinking_delta','thinking':'Let me '}") DELTA(
                "0", "{'type':'thinking_delta','thinking':'see.'}")
                DELTA("0", "{'type':'signature_delta','signature':'sig'}") STOP(
                    "0") "{'type':'ping'}\n{'type':'tomorrow'}\n" BLOCK("1",
                                                                        "{'type':'text','text':''}")
                    DELTA("1", "{'type':'text_delta','text':'Run'}") DELTA(
                        "1", "{'type':'text_delta','text':'ning.'}") STOP("1") BLOCK("2", CALL)
                        DELTA("2", "{'type':'input_json_delta','partial_json':''}")
                            DELTA("2", "{'type':'input_json_delta','partial_json':'{\\'code\\':'}")
                                DELTA("2", "{'type':'input_json_delta','partial_json':' \\'1\\'}'}")
                                    STOP("2") END("tool_use"),
        false, &heard);
    CHECK_INT(reply.outcome, LLM_OK);
    CHECK_INT(reply.stop, LLM_STOP_TOOLS);
    CHECK_TEXT(reply.text, "Running.");
    CHECK_TEXT(buf_str(&heard).at, "Running.");
    CHECK_SAME(reply.content,
               "[{'type':'raw','wire':'anthropic','block':{'type':'thinking',"
               "'thinking':'Let me see.','signature':'sig'}},{'type':'text','text':'Running.'},"
               "{'type':'tool_call','id':'toolu_1','name':'python','arguments':{'code':'1'}}]");
    CHECK_INT(reply.usage.input, 10);
    CHECK_INT(reply.usage.cache_read, 5);
    CHECK_INT(reply.usage.cache_write, 2);
    CHECK_INT(reply.usage.output, 9); /* not 1 + 9: counts are cumulative */
    CHECK_INT(reply.usage.reasoning, 4);
}

TEST(llm_anthropic_keeps_blocks_that_it_does_not_know)
{
    own_reply reply = llm_reply_of(
        WIRE, START BLOCK("0", "{'type':'hologram','rays':[1]}") STOP("0") END("pause_turn"), false,
        NULL);
    CHECK_INT(reply.outcome, LLM_OK);
    CHECK_INT(reply.stop, LLM_STOP_OTHER);
    CHECK_SAME(reply.content, "[{'type':'raw','wire':'anthropic',"
                              "'block':{'type':'hologram','rays':[1]}}]");
}

TEST(llm_anthropic_cut_calls_are_never_given)
{
    static const struct {
        const char *json, *reason;
        enum llm_outcome outcome;
    } rows[] = {
        { "{\\'code\\':\\'pri", "max_tokens", LLM_OK },
        { "", "max_tokens", LLM_OK },
        { "{\\'code\\':\\'1\\'}", "max_tokens", LLM_OK }, /* whole by chance only */
        { "{\\'code\\':\\'pri", "tool_use", LLM_GARBAGE },
        { "[1]", "tool_use", LLM_GARBAGE },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        own_buf text = BUF_INIT(4096);
        buf_printf(&text,
                   START BLOCK("0", CALL) DELTA("0", "{'partial_json':'%s'}") STOP("0") END("%s"),
                   rows[i].json, rows[i].reason);
        own_reply reply = llm_reply_of(WIRE, buf_str(&text).at, false, NULL);
        CHECK_INT(reply.outcome, rows[i].outcome);
        if (reply.outcome == LLM_OK) {
            CHECK_INT(reply.stop, LLM_STOP_LENGTH);
            CHECK_SAME(reply.content, "[]");
        }
    }
}

TEST(llm_anthropic_ends_that_are_none)
{
    static const struct {
        const char *text;
        enum llm_outcome outcome;
    } rows[] = {
        { START BLOCK("0", "{'type':'text','text':''}"), LLM_BROKEN },
        { START "{'type':'error','error':{'type':'overloaded_error','message':'Overloaded'}}",
          LLM_OVERLOADED },
        { "{'type':'error','error':{'type':'invalid_request_error','message':'no'}}",
          LLM_BAD_REQUEST },
        { START END("refusal"), LLM_REFUSED },
        { START END("model_context_window_exceeded"), LLM_CONTEXT },
        { "no json", LLM_GARBAGE },
        { "{'type':'ping'}", LLM_GARBAGE },
        { "", LLM_GARBAGE },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        own_reply reply = llm_reply_of(WIRE, rows[i].text, false, NULL);
        CHECK_INT(reply.outcome, rows[i].outcome);
        CHECK(!reply.content && !reply.text && reply.detail[0] && reply.hint[0]);
    }
}

TEST(llm_anthropic_whole_reply)
{
    own_reply reply = llm_reply_of(
        WIRE,
        "{'type':'message','content':[{'type':'text','text':'Hm.'},{'type':'tool_use','id':'t',"
        "'name':'python','input':{'code':'1'}}],'stop_reason':'tool_use',"
        "'usage':{'input_tokens':6,'output_tokens':4}}",
        true, NULL);
    CHECK_INT(reply.outcome, LLM_OK);
    CHECK_SAME(reply.content, "[{'type':'text','text':'Hm.'},{'type':'tool_call','id':'t',"
                              "'name':'python','arguments':{'code':'1'}}]");
    CHECK_INT(reply.usage.input, 6);
    CHECK_INT(reply.usage.cache_read, -1);
    own_reply other = llm_reply_of(WIRE, "{'hello':1}", true, NULL);
    CHECK_INT(other.outcome, LLM_GARBAGE);
}
