/* WWW-Authenticate: how a registry wants to be asked. Pure. */
#ifndef IMAGE_PULL_CHALLENGE_H
#define IMAGE_PULL_CHALLENGE_H

#include <stdbool.h>

#include "base/str.h"

struct pull_challenge {
    bool basic, bearer;
    /* Of the first Bearer challenge; "" for one that is missing. */
    char realm[2048], service[256], scope[1024];
};

/* Adds one header's challenges (RFC 9110, section 11): what it cannot read it passes over, and a
 * parameter that does not fit makes its challenge none. */
void pull_challenge_add(struct pull_challenge *challenge, struct str header);

#endif
