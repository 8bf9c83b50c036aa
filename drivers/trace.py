# The agent's analysis of the kept cells: where each value of an answer comes from. Runs as the occupant, in a box that
# runs none of them.
