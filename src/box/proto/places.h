/* The list of places that a CREATE call may bring (struct box_folder in proto.h). No heap. */
#ifndef BOX_PROTO_PLACES_H
#define BOX_PROTO_PLACES_H

#include <stddef.h>

enum place_kind { PLACE_HIDDEN = 'h', PLACE_READ_ONLY = 'r', PLACE_FILE = 'f',
                  PLACE_TREE = 'd', PLACE_IN_BOX = 'v' };

/* The next record from *at on; its path is a string in `list`. 1, 0 at the end, -1: it is
 * malformed. A path is relative, at most BOX_PATH_MAX - 1 bytes, without empty, "." and ".."
 * parts. */
int places_next(const char *list, size_t len, size_t *at, enum place_kind *out_kind,
                const char **out_path);

#endif
