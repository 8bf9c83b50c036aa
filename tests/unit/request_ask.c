/* Requests of the contract's tests. */
#include "request_ask.h"

#include <stdio.h>

#include "check.h"

const struct request_ceilings ask_ceilings = { .host_memory_bytes = (int64_t)64 << 30 };

struct request ask_accepted(const char *text)
{
    struct request request = REQUEST_INIT;
    struct err err = ERR_INIT;
    if (request_parse(str_of(text), &ask_ceilings, &request, &err) < 0)
        check_failed(__FILE__, __LINE__, "%s refused: %s", text, err.text);
    return request;
}

struct err ask_refused_bytes(struct str text)
{
    struct request request = REQUEST_INIT;
    struct err err = ERR_INIT;
    if (request_parse(text, &ask_ceilings, &request, &err) == 0)
        check_failed(__FILE__, __LINE__, "%.60s was accepted", text.at);
    CHECK_INT(err.kind, ERR_INPUT);
    CHECK(*err.text);
    CHECK(!request.root && !request.files && !request.args && !request.env);
    return err;
}

struct err ask_refused(const char *text)
{
    return ask_refused_bytes(str_of(text));
}

struct err ask_refused_with(const char *member)
{
    char text[1024];
    snprintf(text, sizeof text, "{\"code\": \"1\", %s}", member);
    return ask_refused(text);
}
