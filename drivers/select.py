# A part of trace.py: reads the inputs of the task.
