/* Extended attributes that code can set: user.* and access lists. Only the curator's files use this
 * header. */
#ifndef BOX_FILES_CURATOR_ATTRS_H
#define BOX_FILES_CURATOR_ATTRS_H

#include <stdbool.h>
#include <stddef.h>

/* Do both files have the same attributes? */
bool curator_attrs_same(int one, int other);
/* Make the attributes of `to` equal to those of `from`: 0 or errno. A mode that forbids it is
 * changed for a moment; set the mode of `to` afterwards. */
int curator_attrs_copy(int from, int to, bool *out_wrote);
/* Over a stream socket. `say` and `hear` move bytes and return 0 or errno. */
int curator_attrs_send(int from, int to, int (*say)(int to, const void *bytes, size_t len));
int curator_attrs_receive(int to, int from, int (*hear)(int from, void *bytes, size_t len));

#endif
