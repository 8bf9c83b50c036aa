"""The folder in which the processes of one run of the tests note what they saw; tests/suite.py makes it."""
import os

SEEN = os.environ.get("CUPEL_SEEN")
