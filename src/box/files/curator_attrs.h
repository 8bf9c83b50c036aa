/* Extended attributes that code can set: user.* and access lists. Only the curator's files
 * use this. */
#ifndef BOX_FILES_CURATOR_ATTRS_H
#define BOX_FILES_CURATOR_ATTRS_H

#include <stdbool.h>
#include <stddef.h>

/* Do both have the same ones? */
bool curator_attrs_same(int one, int other);
/* Make those of `to` what those of `from` are: 0 or errno. Where a mode stands in the way
 * it is lent; set the mode of `to` afterwards. */
int curator_attrs_copy(int from, int to, bool *out_wrote);
/* Over a stream socket. `say` and `hear` move bytes: 0 or errno. */
int curator_attrs_send(int from, int to, int (*say)(int to, const void *bytes, size_t len));
int curator_attrs_receive(int to, int from, int (*hear)(int from, void *bytes, size_t len));

#endif
