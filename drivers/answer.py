# The agent's answer: answer(template, **values), cannot_answer(reason) and ask_user(question) for the code of a session
# or run whose environment has CUPEL_AGENT=1. Runs as the occupant.


def open():
    """Give the code the functions."""
