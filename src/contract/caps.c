/* The table of the HTTP door's maximums as data. Runs in any process; pure. */
#include "contract/caps.h"

const struct http_cap_row http_caps[HTTP_CAP_COUNT] = {
#define X(id, name, fallback, least, most, doc) { name, fallback, least, most, doc },
    HTTP_CAPS(X)
#undef X
};
