/* Requests of the contract's tests: each function ends the test where the answer is another. */
#ifndef TESTS_UNIT_REQUEST_ASK_H
#define TESTS_UNIT_REQUEST_ASK_H

#include "base/err.h"
#include "base/str.h"
#include "contract/request.h"

extern const struct request_ceilings ask_ceilings;

struct request ask_accepted(const char *text);
struct err ask_refused(const char *text);
struct err ask_refused_bytes(struct str text);
/* A request of one more member beside code. */
struct err ask_refused_with(const char *member);

#endif
