/* The state folder, for files of a command itself: history, transcripts. */
#ifndef CLI_LINK_STATE_FILES_H
#define CLI_LINK_STATE_FILES_H

/* Opens the folder as the caller, at the engine's place; makes a missing one, as root for the uid
 * that doors and engine drop to. -1 if there is none. */
int cli_state_open(void);
/* Opens a folder inside it that belongs to the uid after the drop of rights; makes a missing one,
 * for its owner alone. -1 on failure. */
int cli_state_open_folder(const char *name);

#endif
