/* The questions of one conversation, within the loop. */
#ifndef AGENT_LOOP_FOLLOW_H
#define AGENT_LOOP_FOLLOW_H

struct agent;

/* Everything that belongs to one question, as at its start; counts the question as asked. */
void agent_turn_begin(struct agent *agent);
/* Before a question of a conversation: it can be taken back to here. */
void agent_turn_mark(struct agent *agent);
/* Writes the conversation to the record, for agent_resume. */
void agent_turn_end(struct agent *agent);

#endif
