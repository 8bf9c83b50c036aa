/* The state folder, for what a command keeps there itself: history, transcripts. */
#ifndef CLI_LINK_STATE_FILES_H
#define CLI_LINK_STATE_FILES_H

/* Open the folder as the caller, at the place where the engine has it; made where it is
 * missing, as root for the private uid that doors and engine drop to. -1 where there is none. */
int cli_state_open(void);
/* Open a folder inside of it that belongs to whoever writes there after the drop; made where it
 * is missing, for its owner alone. -1 where that cannot be had. */
int cli_state_open_folder(const char *name);

#endif
