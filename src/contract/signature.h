/* A tool's definition as a line of Python: `db.query(sql: str, limit: int = 10) -> list`. */
#ifndef CONTRACT_SIGNATURE_H
#define CONTRACT_SIGNATURE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"

/* `python`: names as code writes them, with `_` for signs that a name may not have. */
void signature_add(const json_t *definition, bool python, struct buf *out);

#endif
