/* Columns of a row as members of JSON. Any process with a connection. */
#include "base/json.h"
#include "store/records/look_int.h"

json_t *look_text(struct db_query *query, int column)
{
    return db_is_null(query, column) ? json_null() : json_text(db_text(query, column));
}

json_t *look_int(struct db_query *query, int column)
{
    return db_is_null(query, column) ? json_null() : json_integer(db_int(query, column));
}

json_t *look_real(struct db_query *query, int column)
{
    double value = db_real(query, column);
    bool fits = value < 1e12 && value > -1e12; /* three decimals: measured no finer */
    if (db_is_null(query, column))
        return json_null();
    return json_real(fits ? (double)(int64_t)(value * 1000 + 0.5) / 1000 : value);
}

json_t *look_seconds(struct db_query *query, int column)
{
    return db_is_null(query, column) ? json_null()
                                     : json_real((double)db_int(query, column) / 1000);
}

json_t *look_flag(struct db_query *query, int column)
{
    return json_boolean(db_int(query, column) != 0);
}

json_t *look_stored(struct db_query *query, int column)
{
    struct str text = db_text(query, column);
    json_t *value = json_loadb(text.at, text.len, JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL);
    return value ? value : json_null();
}

json_t *look_row(struct db_query *query, const struct look_member *members, size_t count, int first)
{
    json_t *row = json_object();
    for (size_t i = 0; i < count; i++)
        json_object_set_new(row, members[i].name, members[i].make(query, first + (int)i));
    return row;
}
