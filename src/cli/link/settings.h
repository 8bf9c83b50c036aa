/* The configuration as this caller has it: defaults, /etc/cupel/config.json, the user's file, the
 * environment. Opened as the caller; commands add their options. */
#ifndef CLI_LINK_SETTINGS_H
#define CLI_LINK_SETTINGS_H

#include "base/err.h"
#include "contract/config.h"

/* The path of the user's file, heap; NULL: there is no home. */
char *cli_settings_user_file(void);
/* One file; a missing one is no error unless `named`. */
int cli_settings_take_file(struct config *config, const char *path, bool named, struct err *err);
/* The same for an open descriptor, which stays the caller's. */
int cli_settings_take_fd(struct config *config, int fd, const char *path, struct err *err);
/* The values of variables that the table names. */
int cli_settings_take_environment(struct config *config, struct err *err);
/* All layers, into a configuration that config_init made. `file` replaces both files; NULL: they
 * are read. */
int cli_settings_read(const char *file, struct config *config, struct err *err);
/* Makes the configured image the default one of this process, in the environment: before the
 * rights are dropped. */
int cli_settings_use_image(struct err *err);
/* Makes the configured model the default one of this process: src/llm looks for it in the
 * environment. */
int cli_settings_use_model(struct err *err);

#endif
