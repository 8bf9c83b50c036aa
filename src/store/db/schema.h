/* The numbered migrations of the database. Private to src/store/db. */
#ifndef STORE_DB_SCHEMA_H
#define STORE_DB_SCHEMA_H

/* Statements of migration I + 1; the database's user_version counts those that ran. A migration
 * that was released never changes: a change is a new one at the end. */
extern const char *const schema_migrations[];
extern const int schema_newest;

#endif
