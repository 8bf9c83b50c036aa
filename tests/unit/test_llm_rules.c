/* Models: names, keys, prices, what errors mean, when to try again. */
#include "test_llm_wire.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "llm/prices.h"
#include "llm/retry.h"
#include "llm/target.h"

/* ---- a configuration of the test's own, gone at its end ---- */

struct config {
    char root[64], folder[128], file[192];
};

static void gone(struct config *config)
{
    unlink(config->file);
    rmdir(config->folder);
    rmdir(config->root);
}
#define own_config                                                                                 \
    attr_unused attr_cleanup(gone)                                                                 \
    struct config

static struct config configured(const char *name, const char *text, mode_t mode)
{
    static const char *const variables[] = {
        "ANTHROPIC_API_KEY", "OPENAI_API_KEY",  "OPENROUTER_API_KEY", "CUPEL_API_KEY",
        "CUPEL_MODEL",       "CUPEL_BASE_URL",  "ANTHROPIC_BASE_URL", "OPENAI_BASE_URL",
        "OLLAMA_HOST",       "OLLAMA_API_KEY",
    };
    for (size_t i = 0; i < array_len(variables); i++)
        unsetenv(variables[i]);
    struct config config = { .root = "/tmp/cupel-unit-XXXXXX" };
    CHECK(mkdtemp(config.root));
    snprintf(config.folder, sizeof config.folder, "%s/cupel", config.root);
    snprintf(config.file, sizeof config.file, "%s/%s", config.folder, name);
    CHECK(mkdir(config.folder, 0700) == 0);
    own_str quoted = llm_quoted(text);
    own_fd fd = open(config.file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && io_write_all(fd, quoted, strlen(quoted)) == 0 && fchmod(fd, mode) == 0);
    setenv("XDG_CONFIG_HOME", config.root, 1);
    return config;
}

#define own_target attr_cleanup(llm_target_done) struct llm_target

static struct llm_target found(const char *spec)
{
    struct err err = ERR_INIT;
    struct llm_target target = { 0 };
    if (llm_target_find(spec, &target, &err) < 0 || llm_target_find_key(&target, &err) < 0)
        check_failed(__FILE__, __LINE__, "%s: %s", spec, err.text);
    return target;
}

/* ---- names ---- */

TEST(llm_names)
{
    own_config config = configured("keys.json", "{}", 0600);
    static const struct {
        const char *spec, *name, *wire, *base, *model;
        bool sees, calls;
    } rows[] = {
        { "anthropic/claude-opus-5", "anthropic/claude-opus-5", "anthropic",
          "https://api.anthropic.com", "claude-opus-5", true, true },
        { "claude-sonnet-5", "anthropic/claude-sonnet-5", "anthropic",
          "https://api.anthropic.com", "claude-sonnet-5", true, true },
        { "openai", "openai/gpt-6.1-sol", "responses", "https://api.openai.com/v1", "gpt-6.1-sol",
          true, true },
        { "openrouter/qwen/qwen3", "openrouter/qwen/qwen3", "chat", "https://openrouter.ai/api/v1",
          "qwen/qwen3", false, true },
        { "ollama/qwen3:8b", "ollama/qwen3:8b", "chat", "http://127.0.0.1:11434/v1", "qwen3:8b",
          false, false },
        { "ollama/llava", "ollama/llava", "chat", "http://127.0.0.1:11434/v1", "llava", true,
          false },
        { "chat+http://[::1]:9/v1/#a#b", "chat+http://[::1]:9/v1/#a#b", "chat", "http://[::1]:9/v1",
          "a#b", false, false },
        { "anthropic+https://x.example#m", "anthropic+https://x.example#m", "anthropic",
          "https://x.example", "m", true, true },
        { "responses+https://x.example/v1#m", "responses+https://x.example/v1#m", "responses",
          "https://x.example/v1", "m", true, true },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        own_target target = found(rows[i].spec);
        CHECK_TEXT(target.name, rows[i].name);
        CHECK_TEXT(target.wire->name, rows[i].wire);
        CHECK_TEXT(target.base_url, rows[i].base);
        CHECK_TEXT(target.model, rows[i].model);
        CHECK_INT(target.sees, rows[i].sees);
        CHECK_INT(target.calls_tools, rows[i].calls);
        CHECK(!target.key);
    }
}

TEST(llm_names_that_are_none)
{
    own_config config = configured("keys.json", "{}", 0600);
    static const struct {
        const char *spec, *said;
    } rows[] = {
        { "nothing", "unknown model 'nothing'" },
        { "", "unknown model" },
        { "ollama", "needs the name of a model" },
        { "ollama/", "needs the name of a model" },
        { "chat/m", "needs the server's base URL" },
        { "chat+http://h/v1", "does not name a model" },
        { "chat+http://h/v1#", "a model's name" },
        { "chat+http://h/v1#a b", "a model's name" },
        { "chat+ftp://h/v1#m", "not a base URL" },
        { "chat+http://user:secret@h/v1#m", "no user name or password" },
        { "chat+http://h/v1\n#m", "plain characters" },
        { "anthropic/\x1b[31m", "a model's name" },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        struct err err = ERR_INIT;
        struct llm_target target;
        CHECK_INT(llm_target_find(rows[i].spec, &target, &err), -1);
        if (!strstr(err.text, rows[i].said) || strstr(err.text, "secret"))
            check_failed(__FILE__, __LINE__, "%s: %s", rows[i].spec, err.text);
    }
    struct err err = ERR_INIT;
    struct llm_target target;
    CHECK(llm_target_find("anthopic/claude-opus-5", &target, &err) < 0);
    CHECK_TEXT(err.hint, "did you mean anthropic/claude-opus-5?");
}

TEST(llm_base_urls_come_from_the_environment)
{
    own_config config = configured("keys.json", "{}", 0600);
    static const struct {
        const char *variable, *value, *spec, *base;
    } rows[] = {
        { "ANTHROPIC_BASE_URL", "http://127.0.0.1:1/", "anthropic/m", "http://127.0.0.1:1" },
        { "OPENAI_BASE_URL", "http://127.0.0.1:1/v1", "openai/m", "http://127.0.0.1:1/v1" },
        { "CUPEL_BASE_URL", "http://127.0.0.1:1/v1", "chat/m", "http://127.0.0.1:1/v1" },
        { "VLLM_BASE_URL", "http://127.0.0.1:1", "vllm/m", "http://127.0.0.1:1/v1" },
        { "VLLM_BASE_URL", "http://127.0.0.1:1/", "vllm/m", "http://127.0.0.1:1/v1" },
        { "VLLM_BASE_URL", "http://127.0.0.1:1/v1/", "vllm/m", "http://127.0.0.1:1/v1" },
        { "VLLM_BASE_URL", "http://127.0.0.1:1/of/mine", "vllm/m", "http://127.0.0.1:1/of/mine" },
        { "OPENAI_BASE_URL", "http://127.0.0.1:1", "openai/m", "http://127.0.0.1:1/v1" },
        { "ANTHROPIC_BASE_URL", "http://127.0.0.1:1/v1", "anthropic/m", "http://127.0.0.1:1" },
        { "ANTHROPIC_BASE_URL", "http://127.0.0.1:1/a/v1/", "anthropic/m", "http://127.0.0.1:1/a" },
        { "OLLAMA_HOST", "192.0.2.7", "ollama/m", "http://192.0.2.7:11434/v1" },
        { "OLLAMA_HOST", "0.0.0.0:5000", "ollama/m", "http://127.0.0.1:5000/v1" },
        { "OLLAMA_HOST", ":5000", "ollama/m", "http://127.0.0.1:5000/v1" },
        { "OLLAMA_HOST", "https://o.example/", "ollama/m", "https://o.example/v1" },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        setenv(rows[i].variable, rows[i].value, 1);
        own_target target = found(rows[i].spec);
        CHECK_TEXT(target.base_url, rows[i].base);
        unsetenv(rows[i].variable);
    }
    setenv("OPENAI_BASE_URL", "nonsense", 1);
    struct err err = ERR_INIT;
    struct llm_target target;
    CHECK(llm_target_find("openai/m", &target, &err) < 0);
    CHECK(strstr(err.text, "OPENAI_BASE_URL"));
}

/* ---- keys ---- */

TEST(llm_keys_from_environment_and_file)
{
    own_config config = configured(
        "keys.json", "{'anthropic':' sk-file\\n','127.0.0.1:9':'sk-place','openai':7}", 0600);
    own_target file = found("anthropic/m");
    CHECK_TEXT(file.key, "sk-file");
    CHECK_INT(file.key_from, LLM_KEY_FILE);
    setenv("ANTHROPIC_API_KEY", "sk-set", 1);
    own_target set = found("anthropic/m");
    CHECK_TEXT(set.key, "sk-set");
    CHECK_INT(set.key_from, LLM_KEY_ENVIRONMENT);
    own_target none = found("openai/m");
    CHECK(!none.key);
    CHECK_INT(none.key_from, LLM_KEY_MISSING);
    own_target place = found("chat+http://127.0.0.1:9/v1#m");
    CHECK_TEXT(place.key, "sk-place");
    own_target local = found("ollama/m");
    CHECK_INT(local.key_from, LLM_KEY_NONE);
}

TEST(llm_keys_go_to_no_other_server)
{
    own_config config = configured("keys.json", "{}", 0600);
    setenv("ANTHROPIC_API_KEY", "sk-ant", 1);
    setenv("OPENAI_API_KEY", "sk-oai", 1);
    own_target other = found("chat+https://elsewhere.example/v1#m");
    CHECK(!other.key);
    own_target own = found("chat+https://api.openai.com/v1#gpt-4.1");
    CHECK_TEXT(own.key, "sk-oai");
}

TEST(llm_key_file_open_to_others_is_refused)
{
    static const mode_t modes[] = { 0640, 0604, 0660, 0666, 0644 };
    for (size_t i = 0; i < array_len(modes); i++) {
        own_config config = configured("keys.json", "{'anthropic':'sk-file'}", modes[i]);
        struct err err = ERR_INIT;
        own_str key = NULL;
        enum llm_key_from from;
        CHECK_INT(llm_key_find(NULL, "anthropic", &key, &from, &err), -1);
        CHECK(strstr(err.text, "open to others") && strstr(err.hint, "chmod 600"));
        CHECK(!key);
    }
    own_config config = configured("keys.json", "{'anthropic':'sk-file'}", 0400);
    struct err err = ERR_INIT;
    own_str key = NULL;
    enum llm_key_from from;
    CHECK_INT(llm_key_find(NULL, "anthropic", &key, &from, &err), 0);
    CHECK_TEXT(key, "sk-file");
}

TEST(llm_keys_that_are_none_are_not_repeated)
{
    static const char *const files[] = { "{'anthropic':'sk-se\\ncret'}", "{'anthropic':'sk-secret'",
                                         "['sk-secret']", "{'anthropic':'sk-s\\u00e9cret'}",
                                         "{'sk-secret':1,'sk-secret':2}" };
    for (size_t i = 0; i < array_len(files); i++) {
        own_config config = configured("keys.json", files[i], 0600);
        struct err err = ERR_INIT;
        own_str key = NULL;
        enum llm_key_from from;
        CHECK_INT(llm_key_find(NULL, "anthropic", &key, &from, &err), -1);
        CHECK(!strstr(err.text, "sk-") && !strstr(err.hint, "sk-") && !strstr(err.value, "sk-") &&
              !strstr(err.field, "sk-"));
    }
}

TEST(llm_the_usual_model_is_the_named_one_or_by_key)
{
    own_config config = configured("keys.json", "{'openai':'sk-file'}", 0600);
    struct err err = ERR_INIT;
    own_str by_file = NULL;
    CHECK_INT(llm_target_usual(&by_file, &err), 0);
    CHECK_TEXT(by_file, "openai/gpt-6.1-sol");
    setenv("ANTHROPIC_API_KEY", "k", 1);
    own_str by_key = NULL;
    CHECK_INT(llm_target_usual(&by_key, &err), 0);
    CHECK_TEXT(by_key, "anthropic/claude-opus-5");
    setenv("CUPEL_MODEL", "exec:./m", 1);
    own_str named = NULL;
    CHECK_INT(llm_target_usual(&named, &err), 0);
    CHECK_TEXT(named, "exec:./m");
}

/* ---- prices ---- */

static struct llm_price price_of(const char *name)
{
    struct err err = ERR_INIT;
    struct llm_price price;
    if (llm_price_find(name, &price, &err) < 0)
        check_failed(__FILE__, __LINE__, "%s: %s", name, err.text);
    return price;
}

TEST(llm_prices_of_known_models)
{
    own_config config = configured("keys.json", "{}", 0600);
    CHECK(price_of("anthropic/claude-opus-5").output == 25);
    CHECK(price_of("anthropic/claude-opus-5-20261021").output == 25);
    CHECK(price_of("anthropic/claude-opus-5-2026-10-21").output == 25);
    CHECK(price_of("anthropic/claude-opus-5-latest").output == 25);
    CHECK(price_of("openai/gpt-6.1-terra").input == 1);
    static const char *const unknown[] = { "anthropic/claude-opus-5-5", "anthropic/claude-opus-55",
                                           "anthropic/claude", "ollama/qwen3", "exec:./m",
                                           "chat+http://h/v1#claude-opus-5" };
    for (size_t i = 0; i < array_len(unknown); i++)
        CHECK(price_of(unknown[i]).input < 0);
}

TEST(llm_prices_of_the_user_come_first)
{
    own_config config = configured("prices.json",
                                   "{'anthropic/claude-opus-5':{'input':1,'output':2},"
                                   "'anthropic/':{'input':3,'output':4},"
                                   "'exec:':{'input':0,'output':0.5}}",
                                   0644);
    CHECK(price_of("anthropic/claude-opus-5").input == 1);
    CHECK(price_of("anthropic/claude-haiku-4-5").input == 3);
    CHECK(price_of("exec:./m").output == 0.5);
    CHECK(price_of("openai/gpt-6.1-sol").input == 2);
}

TEST(llm_prices_that_are_none_are_refused)
{
    static const char *const files[] = { "{'m':{'input':-1,'output':1}}", "{'m':{'input':1}}",
                                         "{'m':5}", "{'m':{'input':'1','output':1}}", "[]",
                                         "{'m':{'input':1,'output':1,'extra':2}}" };
    for (size_t i = 0; i < array_len(files); i++) {
        own_config config = configured("prices.json", files[i], 0644);
        struct err err = ERR_INIT;
        struct llm_price price;
        CHECK_INT(llm_price_find("m", &price, &err), -1);
        CHECK(strstr(err.text, "prices.json"));
    }
}

static bool near(double a, double b)
{
    return a > b - 1e-9 && a < b + 1e-9;
}

TEST(llm_costs)
{
    struct llm_price opus = { 5, 0.5, 6.25, 25, -1 }, sol = { 2, 0.1, -1, 10, 272000 };
    struct llm_usage usage = { 1000, 2000, 400, 100, 50 }, none = LLM_USAGE_UNKNOWN;
    struct llm_price unknown = LLM_PRICE_UNKNOWN;
    CHECK(near(llm_price_of(&opus, &usage), 0.005 + 0.001 + 0.0025 + 0.0025));
    CHECK(near(llm_price_of(&sol, &usage), 0.002 + 0.0002 + 0.0008 + 0.001));
    CHECK(near(llm_price_of(&sol, &(struct llm_usage){ 300000, -1, -1, 100, -1 }), 1.2 + 0.0015));
    CHECK(llm_price_of(&opus, &none) < 0);
    CHECK(llm_price_of(&unknown, &usage) < 0);
    own_json messages = llm_json("[" LLM_USER "]");
    struct llm_request request = { .messages = messages, .max_output_tokens = 1000 };
    double bound = llm_price_bound(&opus, &request);
    CHECK(bound > 0.025 && bound < 0.026);
    CHECK(llm_price_bound(&unknown, &request) < 0);
}

/* ---- errors ---- */

TEST(llm_errors_by_status_and_word)
{
    static const struct {
        int status;
        const char *body;
        enum llm_outcome outcome;
    } rows[] = {
        { 400, "{'error':{'type':'invalid_request_error','message':'no'}}", LLM_BAD_REQUEST },
        { 400, "{'error':{'type':'invalid_request_error','message':'prompt is too long: 2 > 1'}}",
          LLM_CONTEXT },
        { 400, "{'error':{'code':400,'type':'exceed_context_size_error','message':'x'}}",
          LLM_CONTEXT },
        { 400, "{'object':'error','message':'maximum context length is 4096','code':400}",
          LLM_CONTEXT },
        { 400, "{'error':{'message':'Your credit balance is too low to access'}}", LLM_QUOTA },
        { 400, "{'error':'model is required'}", LLM_BAD_REQUEST },
        { 401, "{}", LLM_AUTH },
        { 402, "{}", LLM_QUOTA },
        { 403, "{}", LLM_AUTH },
        { 404, "{'error':{'code':'model_not_found'}}", LLM_UNKNOWN_MODEL },
        { 408, "{}", LLM_OVERLOADED },
        { 413, "{}", LLM_CONTEXT },
        { 422, "{'detail':'bad'}", LLM_BAD_REQUEST },
        { 429, "{'error':{'type':'rate_limit_error'}}", LLM_RATE },
        { 429, "{'error':{'type':'insufficient_quota','code':'credit_balance_exhausted'}}",
          LLM_QUOTA },
        { 429,
          "{'error':{'type':'rate_limit_error','details':"
          "{'error_code':'enforced_spend_limit_reached'}}}",
          LLM_QUOTA },
        { 500, "{}", LLM_OVERLOADED },
        { 503, "{'error':{'code':503,'type':'unavailable_error','message':'Loading model'}}",
          LLM_OVERLOADED },
        { 529, "{'error':{'type':'overloaded_error'}}", LLM_OVERLOADED },
        { 302, "{}", LLM_GARBAGE },
        { 0, "{'error':{'type':'overloaded_error'}}", LLM_OVERLOADED },
        { 0, "{'error':{'code':'context_length_exceeded'}}", LLM_CONTEXT },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        own_json body = llm_json(rows[i].body);
        struct llm_reply reply = { .outcome = LLM_OK };
        llm_error_judge(&reply, rows[i].status, body);
        if (reply.outcome != rows[i].outcome)
            check_failed(__FILE__, __LINE__, "%d %s is %s", rows[i].status, rows[i].body,
                         llm_outcome_name(reply.outcome));
        CHECK(reply.detail[0] && reply.hint[0]);
    }
    struct llm_reply reply = { .outcome = LLM_OK };
    llm_error_judge(&reply, 500, NULL);
    CHECK_TEXT(reply.detail, "HTTP 500");
}

TEST(llm_words_of_servers_are_made_plain)
{
    static const struct {
        struct str text;
        const char *plain;
    } rows[] = {
        { STR("a\x1b[31mb\nc\x7f\0d"), "a [31mb c  d" },
        { STR("\xff\xc2\x9b" "x"), "? x" },
        { STR("0123456\u00e9"), "0123456" },
        { STR("012345\u00e9"), "012345\u00e9" },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        char shown[16] = "", small[9];
        bool cut = rows[i].text.at[0] == '0';
        str_plain(cut ? small : shown, cut ? sizeof small : sizeof shown, rows[i].text);
        CHECK_TEXT(cut ? small : shown, rows[i].plain);
    }
}

/* ---- trying again ---- */

static struct llm_try failed(struct llm_reply *reply, const struct llm_request *request,
                             enum llm_outcome outcome)
{
    reply->outcome = outcome;
    return (struct llm_try){ .request = request, .reply = reply, .least_wait_s = -1 };
}

TEST(llm_retries_what_may_be_retried)
{
    struct llm_request request = { .deadline_ms = 0 };
    struct llm_reply reply = { .outcome = LLM_OK };
    for (int outcome = 0; outcome < LLM_OUTCOME_COUNT; outcome++) {
        struct llm_try try = failed(&reply, &request, (enum llm_outcome)outcome);
        bool again = outcome == LLM_RATE || outcome == LLM_OVERLOADED || outcome == LLM_NETWORK;
        CHECK_INT(llm_retry_wait(&try, 1, 0.5) >= 0, again);
        try.streamed = true;
        CHECK(llm_retry_wait(&try, 1, 0.5) < 0);
        try.streamed = false;
        try.never_retry = true;
        CHECK(llm_retry_wait(&try, 1, 0.5) < 0);
    }
}

TEST(llm_waits_grow_and_are_at_least_what_was_asked_for)
{
    struct llm_request request = { .deadline_ms = 0 };
    struct llm_reply reply = { .outcome = LLM_OK };
    struct llm_try try = failed(&reply, &request, LLM_RATE);
    CHECK(near(llm_retry_wait(&try, 1, 1), 0.5));
    CHECK(near(llm_retry_wait(&try, 2, 1), 1));
    CHECK(near(llm_retry_wait(&try, 3, 1), 2));
    CHECK(near(llm_retry_wait(&try, 3, 0), 0));
    CHECK(llm_retry_wait(&try, 4, 1) < 0);
    try.least_wait_s = 7;
    CHECK(near(llm_retry_wait(&try, 1, 0), 7));
    CHECK(llm_retry_wait(&try, 3, 1) > 7);
    try.least_wait_s = 3600;
    CHECK(llm_retry_wait(&try, 1, 0) < 0);
    try.least_wait_s = 7;
    request.deadline_ms = clock_now_ns() / 1000000 + 5000;
    CHECK(llm_retry_wait(&try, 1, 0) < 0);
}

TEST(llm_keys_are_taken_out_of_an_environment)
{
    CHECK(llm_is_key_variable("ANTHROPIC_API_KEY=x"));
    CHECK(llm_is_key_variable("OPENROUTER_API_KEY="));
    CHECK(!llm_is_key_variable("ANTHROPIC_API_KEY_FILE=x"));
    CHECK(!llm_is_key_variable("PATH=/bin"));
}
